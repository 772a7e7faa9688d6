"""`audit sql` and `audit export --format parquet`."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from tests.docs.markdown import ROOT, blocks, rows, span_of
from tests.support.programs.audit_records import INFEASIBLE, chain_lines, make_record, write_lines
from tests.support.programs.cluster_files import lines
from tests.support.programs.command import Outcome, run_here
from webhook.audit.record import GangEntry, PlacementEntry, ReservedEntry, ShadowEntry
from webhook.cli.records.audit_table import COLUMNS, record_table

AUDIT = ROOT / "docs" / "audit.md"
PLACED = PlacementEntry("Feasible", "node-3", 12, 4, "", ("DynamicResources",), ReservedEntry(2), GangEntry("g", 4, 3))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    shadow = ShadowEntry("Denied", message="no node")
    full = {"qos_class": "Burstable", "client": "api", "pod": "ab", "truncated": ("patch: 1 more item",)}
    records = [
        make_record(0, placement=PLACED, shadow=shadow, error="shadow mode", **full),
        make_record(1, outcome="Denied", placement=INFEASIBLE, namespace="team-b", user='a"\ud83d'),
        make_record(2, outcome="Bypassed", placement=None, owner=None, policy=None, kind="Deployment"),
    ]
    return write_lines(tmp_path / "audit.jsonl", chain_lines(records))


def ask(query: str, log: Path, *more: str) -> list[Any]:
    done = run_here("audit", "sql", query, "-o", "json", *more, log)
    assert done.code == 0, done.errors
    return lines(done.output)


def test_records_are_rows_in_the_order_of_time(log: Path) -> None:
    found = ask("SELECT time, outcome, verdict, owner_kind, policy_revision, kind FROM records", log)

    assert [each["outcome"] for each in found] == ["Patched", "Denied", "Bypassed"]
    assert [each["verdict"] for each in found] == ["Feasible", "Infeasible", None]
    assert found[0]["time"].startswith("2026-05-01 08:00:00")
    assert [each["kind"] for each in found] == ["Pod", "Pod", "Deployment"]
    assert found[2]["owner_kind"] is found[2]["policy_revision"] is None


def test_every_column_has_a_value_in_a_full_record(log: Path) -> None:
    (found,) = ask("SELECT * FROM records LIMIT 1", log)

    assert [name for name, value in found.items() if value is None] == []
    assert list(found) == [each.name for each in COLUMNS]
    assert found["patch"][2] == {"op": "replace", "path": "/spec/schedulerName", "value": "volcano"}


def test_the_text_is_a_table(log: Path) -> None:
    done = run_here("audit", "sql", "SELECT outcome, count(*) AS records FROM records GROUP BY ALL ORDER BY ALL", log)

    assert done.output == "outcome   records\nBypassed  1\nDenied    1\nPatched   1\n"


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELEC", "syntax error"),
        ("SELECT nothing FROM records", 'Referenced column "nothing" not found'),
        ("COPY records TO 'x.csv'", "must be one SELECT"),
        ("SELECT 1; SELECT 2", "must be one SELECT"),
        ("SELECT CAST(outcome AS BIGINT) FROM records", "Could not convert"),
        ("INSTALL httpfs", "must be one SELECT"),
        ("", "must be one SELECT"),
    ],
)
def test_a_wrong_query_is_one_line(log: Path, query: str, problem: str) -> None:
    for output in ("text", "json"):
        done = run_here("audit", "sql", query, log, "-o", output)

        assert (done.code, done.output) == (2, "")
        assert done.errors.startswith("Error: QUERY: Invalid value")
        assert problem in done.errors
        assert done.errors.count("\n") == 1


def test_without_duckdb_the_extra_is_named(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = run_here("audit", "sql", "SELECT 1", log)

    assert done.code == 2
    assert "pip install 'placement-webhook[sql]'" in done.errors


def export(log: Path, *arguments: object) -> Outcome:
    return run_here("audit", "export", "--format", "parquet", *arguments, log)


def test_parquet_has_the_rows_and_columns_of_the_table(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "audit.parquet"
    assert export(log, "-o", path).code == 0
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT name, patch[3].value::VARCHAR FROM '{path}'").fetchall()
        types = connection.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()

    assert found == [(f"worker-{number}", '"volcano"') for number in range(3)]
    assert [each[0] for each in types] == [each.name for each in COLUMNS]
    assert types[0][1] == "TIMESTAMP WITH TIME ZONE"


def test_records_before_a_time_are_left_out(log: Path, tmp_path: Path) -> None:
    assert export(log, "-o", tmp_path / "a.parquet", "--since", "2026-05-01T08:00:01Z").code == 0
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT count(*) FROM '{tmp_path}/a.parquet'").fetchall() == [(2,)]


def test_a_line_that_was_cut_off_writes_nothing(log: Path, tmp_path: Path) -> None:
    log.write_bytes(log.read_bytes()[:-100])
    done = export(log, "-o", tmp_path / "a.parquet")

    assert (done.code, [*tmp_path.iterdir()]) == (2, [log])
    assert "audit.jsonl:3: Invalid value" in done.errors
    assert "the line was cut off" in done.errors
    assert export(log, "-o", tmp_path / "a.parquet", "--skip-invalid").code == 0


@contextmanager
def full_disk(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("form", ["tar", "parquet"])
def test_a_full_disk_leaves_nothing(log: Path, tmp_path: Path, form: str) -> None:
    with full_disk(1000):
        done = run_here("audit", "export", "--format", form, "-o", tmp_path / "out", log)

    assert (done.code, [*tmp_path.iterdir()]) == (2, [log])
    assert done.errors.startswith("Error: ")
    assert done.errors.count("\n") == 1


def test_a_folder_that_does_not_exist_is_named(log: Path, tmp_path: Path) -> None:
    done = export(log, "-o", tmp_path / "none" / "a.parquet")

    assert done.code == 2
    assert "Error: --output: Invalid value" in done.errors
    assert "cannot be written: No such file or directory" in done.errors


@pytest.mark.parametrize("form", ["tar", "parquet"])
def test_a_folder_is_no_output_and_the_records_are_not_read_for_it(tmp_path: Path, form: str) -> None:
    done = run_here("audit", "export", "--format", form, "-o", tmp_path, tmp_path / "none.jsonl")

    assert done.code == 2
    assert "--output" in done.errors
    assert "Is a directory" in done.errors


def test_what_duckdb_makes_of_ctrl_c_is_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), record_table([]):
        raise RuntimeError("Query interrupted")


def test_an_archive_is_of_one_file(log: Path) -> None:
    done = run_here("audit", "export", "-o", log.with_name("a.tar"), log, log.with_name("b.jsonl"))

    assert done.code == 2
    assert "an archive is of one FILE" in done.errors


def test_the_columns_are_documented() -> None:
    documented = [(span_of(row[0]), span_of(row[1]), row[2]) for row in rows(AUDIT, "SQL and Parquet")]

    assert documented == [(each.name, each.type, each.meaning) for each in COLUMNS]


@pytest.mark.parametrize("query", [block.text for block in blocks(AUDIT, "sql")])
def test_a_documented_query_works(log: Path, query: str) -> None:
    for each in query.strip().removesuffix(";").split(";\n"):
        assert orjson.dumps(ask(each, log))


def test_ten_queries_are_documented() -> None:
    assert sum(block.text.count(";") for block in blocks(AUDIT, "sql")) >= 10
