"""Audit records as a table of DuckDB, for SQL and Parquet.

The records are loaded in pieces, so that neither memory nor the temporary folder holds the text of all of them.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, NamedTuple

import click

from webhook.analysis.log_lines import skippable, unreadable_line
from webhook.audit.reading import InvalidLine
from webhook.audit.record import moment
from webhook.audit.sources import Sources
from webhook.cli.records.audit_following import BrokenLines
from webhook.documents.field import InvalidInput, invalid

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_PIECE = 5000
_MOST_MEMORY = "512MB"
_ROWS_AT_ONCE = 1000
_REMEDY = "the table is kept there while the command runs: set TMPDIR to a folder with more room"
# JSON can name halves of surrogate pairs, which are no text.
_SURROGATE = b"\\ud"
_RULES = "STRUCT(name VARCHAR, edits VARCHAR[], skipped VARCHAR)[]"
_PATCH = "STRUCT(op VARCHAR, path VARCHAR, value JSON)[]"


class TableColumn(NamedTuple):
    """A column of the table `records`: its type, where a record has it, and its meaning."""

    name: str
    type: str
    path: str
    meaning: str


COLUMNS = (
    TableColumn("time", "TIMESTAMPTZ", "time", "arrival of the request"),
    TableColumn("decision", "VARCHAR", "decision", "ID of the decision"),
    TableColumn("uid", "VARCHAR", "uid", "uid of the AdmissionRequest"),
    TableColumn("dry_run", "BOOLEAN", "dryRun", "a dry run"),
    TableColumn("operation", "VARCHAR", "operation", "of the request"),
    TableColumn("kind", "VARCHAR", "kind", "kind of the object; `Pod` for a pod"),
    TableColumn("namespace", "VARCHAR", "namespace", "of the object"),
    TableColumn("name", "VARCHAR", "name", "name or generateName of the object"),
    TableColumn("owner_kind", "VARCHAR", "owner.kind", "kind of the controller of the pod"),
    TableColumn("owner_name", "VARCHAR", "owner.name", "its name"),
    TableColumn("user", "VARCHAR", "user", "who sent the request"),
    TableColumn("client", "VARCHAR", "client", "name in the client's certificate"),
    TableColumn("workload_type", "VARCHAR", "workloadType", "requested workload type"),
    TableColumn("policy_name", "VARCHAR", "policy.name", "policy in force"),
    TableColumn("policy_revision", "VARCHAR", "policy.revision", "its revision"),
    TableColumn("outcome", "VARCHAR", "outcome", "`Patched`, `Unchanged`, `Denied`, `Bypassed` or `Error`"),
    TableColumn("error", "VARCHAR", "error", "reason of a denial, a bypass or an error"),
    TableColumn("rules", _RULES, "rules", "each rule with its edits, or why it was skipped"),
    TableColumn("patch", _PATCH, "patch", "operations of the JSON patch"),
    TableColumn("before", "JSON", "before", "replaced values, by JSON pointer"),
    TableColumn("warnings", "VARCHAR[]", "warnings", "warnings of the answer"),
    TableColumn("verdict", "VARCHAR", "placement.verdict", "verdict of the placement check"),
    TableColumn("node", "VARCHAR", "placement.node", "predicted node"),
    TableColumn("nodes_total", "BIGINT", "placement.total", "nodes of the view"),
    TableColumn("nodes_feasible", "BIGINT", "placement.feasible", "nodes that can take the pod"),
    TableColumn("placement_message", "VARCHAR", "placement.message", "kube-scheduler's reasons"),
    TableColumn("unmodelled", "VARCHAR[]", "placement.unmodelled", "plugins that were not evaluated"),
    TableColumn("reserved_pods", "BIGINT", "placement.reserved.pods", "pods with reserved room before this one"),
    TableColumn("gang_name", "VARCHAR", "placement.gang.name", "gang of the pod"),
    TableColumn("gang_size", "BIGINT", "placement.gang.size", "pods of the gang"),
    TableColumn("gang_fit", "BIGINT", "placement.gang.fit", "pods of the gang that fit together"),
    TableColumn("qos_class", "VARCHAR", "qosClass", "QoS class of the admitted pod"),
    TableColumn("shadow_outcome", "VARCHAR", "shadow.outcome", "outcome that was not enforced (shadow mode, canary)"),
    TableColumn("shadow_message", "VARCHAR", "shadow.message", "its reason"),
    TableColumn("duration_ms", "DOUBLE", "durationMs", "milliseconds from the body to the answer"),
    TableColumn("replica", "VARCHAR", "replica", "replica that decided"),
    TableColumn("sequence", "BIGINT", "sequence", "number in the chain"),
    TableColumn("previous", "VARCHAR", "previous", "hash of the record before"),
    TableColumn("hash", "VARCHAR", "hash", "hash of the record"),
    TableColumn("pod", "VARCHAR", "pod", "digest of the pod in FILE.pods"),
    TableColumn("truncated", "VARCHAR[]", "truncated", "places where content was left out"),
)
_OWNER = "STRUCT(kind VARCHAR, name VARCHAR)"
_PLACEMENT = (
    "STRUCT(verdict VARCHAR, node VARCHAR, total BIGINT, feasible BIGINT, message VARCHAR, unmodelled VARCHAR[], "
    "reserved STRUCT(pods BIGINT), gang STRUCT(name VARCHAR, size BIGINT, fit BIGINT))"
)
_OBJECTS = {
    "owner": _OWNER,
    "policy": "STRUCT(name VARCHAR, revision VARCHAR)",
    "placement": _PLACEMENT,
    "shadow": "STRUCT(outcome VARCHAR, message VARCHAR)",
}


def lines_of(sources: Sources, since: datetime | None, skip_invalid: bool) -> Iterator[bytes]:
    """Yield the lines of records from `since` on, in the order of time.

    Raises:
        InvalidInput: a line is no record, unless such lines are left out, and reported.
    """
    broken = BrokenLines()

    def report(line: InvalidLine) -> None:
        if not skip_invalid:
            error = unreadable_line(line.place, line.line, "an audit record", line.problem)
            raise InvalidInput([skippable(error)])
        broken.report(line)

    for entry in sources.entries(report):
        if since is None or moment(entry.record.time) >= since:
            yield entry.line
    broken.report_rest()


@contextmanager
def record_table(lines: Iterable[bytes]) -> Iterator["DuckDBPyConnection"]:
    """Return a connection to a database with the `lines` of records in the table `records`, until the block ends.

    Raises:
        click.UsageError: DuckDB is not installed.
        InvalidInput: the temporary folder cannot take the table, or a record does not fit the table.
    """
    try:
        import duckdb
    except ModuleNotFoundError as error:
        text = "SQL and Parquet need DuckDB: pip install 'placement-webhook[sql]'."
        raise click.UsageError(text) from error
    with TemporaryDirectory(prefix="placement-webhook-sql-") as folder:
        # Nothing is downloaded: the extensions for JSON and Parquet are built in.
        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": folder,
            "memory_limit": _MOST_MEMORY,
        }
        with ExitStack() as stack:
            stack.enter_context(_interruptible())
            try:
                connection = stack.enter_context(duckdb.connect(str(Path(folder) / "records.db"), config=settings))
                connection.execute("SET TimeZone = 'UTC'")
                # The file is deleted then.
                connection.execute("PRAGMA disable_checkpoint_on_shutdown")
                _load(connection, lines, Path(folder))
            except (duckdb.Error, OSError) as error:
                detail = f"{_reason(error)}: {_REMEDY}"
                raise InvalidInput([invalid("TMPDIR", folder, detail)]) from error
            yield connection


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        # What DuckDB makes of Ctrl-C.
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise


def _load(connection: "DuckDBPyConnection", lines: Iterable[bytes], folder: Path) -> None:
    columns = ", ".join(f'"{each.name}" {each.type}' for each in COLUMNS)
    connection.execute(f"CREATE TABLE records ({columns})")
    piece, remaining = folder / "piece.jsonl", iter(lines)
    while found := list(islice(remaining, _PIECE)):
        piece.write_bytes(b"\n".join(map(_as_text, found)))
        connection.execute(f"INSERT INTO records SELECT {_values()} FROM {_source(piece)}")  # noqa: S608 - no input
        # Compressed, and no longer in the log of the database.
        connection.execute("CHECKPOINT")


def _as_text(line: bytes) -> bytes:
    if _SURROGATE not in line.lower():
        return line
    text = json.dumps(json.loads(line), ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _values() -> str:
    paths = (".".join(f'"{part}"' for part in each.path.split(".")) for each in COLUMNS)
    return ", ".join("coalesce(kind, 'Pod')" if path == '"kind"' else path for path in paths)


def _source(piece: Path) -> str:
    own = {each.path: each.type for each in COLUMNS if "." not in each.path}
    types = ", ".join(f"\"{name}\": '{kind}'" for name, kind in (own | _OBJECTS).items())
    return f"read_json({_quoted(str(piece))}, format = 'newline_delimited', columns = {{{types}}})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def query_texts(connection: "DuckDBPyConnection", query: str) -> tuple[list[str], Iterator[tuple[str, ...]]]:
    """Return the names of the columns of a SELECT, and its rows as texts; null is an empty text.

    Raises:
        InvalidInput: it is no query, or it fails.
    """
    names = [str(each[0]) for each in _executed(connection, query, "SELECT * FROM ({}) LIMIT 0").description or ()]
    found = _executed(connection, query, "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({})")
    return names, (tuple("" if cell is None else str(cell) for cell in row) for row in _rows_of(found, query))


def query_json(connection: "DuckDBPyConnection", query: str) -> Iterator[bytes]:
    """Yield each row of the result of a SELECT as JSON.

    Raises:
        InvalidInput: it is no query, or it fails.
    """
    found = _executed(connection, query, "SELECT CAST(to_json(found) AS VARCHAR) FROM ({}) AS found")
    return (str(row[0]).encode() for row in _rows_of(found, query))


def _executed(connection: "DuckDBPyConnection", query: str, around: str) -> "DuckDBPyConnection":
    import duckdb

    try:
        statements = duckdb.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise _not_a_query(query, "must be one SELECT")
        return connection.execute(around.format(f"{query.strip().rstrip(';')}\n"))
    except duckdb.Error as error:
        raise _not_a_query(query, str(error).split("\n", 1)[0]) from error


def _rows_of(found: "DuckDBPyConnection", query: str) -> Iterator[tuple[object, ...]]:
    import duckdb

    try:
        while rows := found.fetchmany(_ROWS_AT_ONCE):
            yield from rows
    except duckdb.Error as error:
        raise _not_a_query(query, str(error).split("\n", 1)[0]) from error


def _not_a_query(query: str, problem: str) -> InvalidInput:
    return InvalidInput([invalid("QUERY", query, f"{problem}; docs/audit.md has the columns of the table `records`")])


def write_parquet(connection: "DuckDBPyConnection", file: IO[bytes]) -> None:
    """Write the table as Parquet to `file`, which has a name.

    Raises:
        OSError: it cannot be written.
    """
    import duckdb

    try:
        # `file` exists: without the option, DuckDB writes another one beside it, which stays if that fails.
        options = "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false"
        connection.execute(f"COPY records TO {_quoted(str(file.name))} ({options})")
    except duckdb.Error as error:
        raise OSError(0, _reason(error)) from error


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).split("\n", 1)[0]
