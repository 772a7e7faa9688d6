"""The sources of the `audit` commands: files with their head files, or the logs of the running replicas."""

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from webhook.audit.head import SUFFIX, ChainHead, count, head_path, read_head
from webhook.audit.pods import SUFFIXES as POD_SUFFIXES
from webhook.audit.reading import rotated_files
from webhook.audit.selection import parse_moment
from webhook.audit.sources import STANDARD_INPUT, Download, Sources
from webhook.cli.inputs.clusters import live_options_with
from webhook.cli.inputs.files import FILE, Command, options
from webhook.cli.output.terminal import echo
from webhook.documents.field import InvalidInput, invalid, required
from webhook.documents.listing import plural

if TYPE_CHECKING:
    from webhook.cli.records.replica_logs import ReplicaSelection

DEFAULT_FILE = "audit.jsonl"
_INCOMPLETE = 1
_MOST_NAMED = 5


@dataclass(slots=True)
class Source:
    """The `files` of the command line, or the replicas of a cluster, whose records may be incomplete after reading."""

    files: tuple[str, ...]
    replicas: "ReplicaSelection | None"
    unread: int = 0

    @property
    def place(self) -> str:
        """Return the text that names the source on the command line."""
        return ", ".join(self.files) if self.replicas is None else f"--selector {self.replicas.selector}"

    @property
    def is_partial(self) -> bool:
        """Return whether the oldest records of an audit file may be missing because they were left out or not read."""
        return bool(self.unread) or (self.replicas is not None and self.replicas.since is not None)

    @contextmanager
    def opened(self, *, with_heads: bool = False) -> Iterator[Sources]:
        """Open the records until the block ends.

        `with_heads` is true for `verify`: the head files are also read, and missing records are not reported here
        because `verify` reports them. Sources that were not read to their end are reported on standard error.

        Raises:
            InvalidInput: a file cannot be read or is not an audit log, the kubeconfig is wrong, or no pod is selected.
            click.ClickException: the pods cannot be listed, or the temporary folder cannot take the records.
        """
        if self.replicas is None:
            with _open_files(self.files, with_heads=with_heads) as sources:
                yield sources
            return
        with _downloads(self.replicas) as downloads, Sources.of_replicas(downloads) as sources:
            self.unread = len(sources.unread)
            for each in sources.unread:
                echo(f"warning: {each}", fg="yellow", err=True)
            try:
                yield sources
            except InvalidInput:
                _report_cut_logs(sources, self.replicas)
                raise
            if not with_heads:
                _report_cut_logs(sources, self.replicas)
            if not sources.has_records:
                echo("no replica has an audit record", err=True)
                # A quiet hour is no fault, but replicas without any record show nothing of what was decided.
                self.unread += self.replicas.since is None


def _report_cut_logs(sources: Sources, replicas: "ReplicaSelection") -> None:
    if not sources.cut_logs:
        return
    cut = [
        f"{name}: {count(record.sequence - 1)} before {record.time}"
        for name, record in list(sources.cut_logs.items())[:_MOST_NAMED]
    ]
    if others := len(sources.cut_logs) - len(cut):
        cut.append(plural(others, "other log"))
    reason = "written before --since, or rotated away" if replicas.since else "rotated away"
    echo(f"warning: not in the logs that the kubelet keeps: {'; '.join(cut)}: {reason}", fg="yellow", err=True)


@contextmanager
def _downloads(replicas: "ReplicaSelection") -> Iterator[Sequence[Download]]:
    # Imported here, so that a command on files does not import the client.
    from webhook.cli.records.replica_logs import download, not_writable

    # On disk, so that memory does not grow with the logs; only the user can read the folder.
    try:
        temporary = TemporaryDirectory(prefix="placement-webhook-audit-")
    except OSError as error:
        raise not_writable(error, Path(os.environ.get("TMPDIR", "/tmp"))) from error  # noqa: S108 - a text
    with temporary as folder:
        yield download(replicas, Path(folder))


def _open_files(files: Sequence[str], *, with_heads: bool) -> Sources:
    """Open the audit files that `files` names, by default the audit file in this folder with its rotated files.

    A missing file is an error, unless a head file exists for it.
    """
    # Read before the records: a running server writes the record first, then the head.
    heads = _kept_heads(files or [DEFAULT_FILE, *rotated_files(Path(DEFAULT_FILE))]) if with_heads else {}
    missing = [log for log in (name.removesuffix(SUFFIX) for name in heads) if not Path(log).exists()]
    # `audit.jsonl*` also matches the head file and those of the pods.
    names = [name for name in files or rotated_files(Path(DEFAULT_FILE)) if not name.endswith((SUFFIX, *POD_SUFFIXES))]
    if not names and not missing:
        if files:
            raise InvalidInput([invalid("FILE", ", ".join(files), "holds no records; name the audit file as well")])
        detail = f"there is no {DEFAULT_FILE} in this folder; name audit files, or - for standard input"
        raise InvalidInput([required("FILE", detail)])
    return Sources.of_files([name for name in names if name not in missing], heads, missing)


def _kept_heads(names: Iterable[str]) -> dict[str, ChainHead]:
    """Return the chain heads of `names`, which are head files or audit files with a head file next to them.

    If an audit file does not exist, its head file also counts for its rotated files.
    """
    paths = {path for name in names if name != STANDARD_INPUT for path in _head_paths(name)}
    kept: dict[str, ChainHead] = {}
    for path in sorted(paths):
        try:
            head = read_head(path)
        except (OSError, ValueError) as error:
            detail = "must be as the server wrote it; delete it to verify without it"
            raise InvalidInput([invalid(str(path), str(error), detail)]) from error
        if head:
            kept[str(path)] = head
    return kept


def _head_paths(name: str) -> list[Path]:
    if name.endswith(SUFFIX):
        return [Path(name)]
    if name.endswith(POD_SUFFIXES) or not PurePath(name).name:
        return []
    base, _, number = name.rpartition(".")
    is_left_over = PurePath(base).name and number.isdecimal() and not Path(base).exists()
    return [head_path(Path(name)), *([head_path(Path(base))] if is_left_over else [])]


def source_options(command: Command) -> Command:
    """Add FILE and the options of replicas to a command, which exits with 1 if records could not be read."""

    @functools.wraps(command)
    def with_source(*args: Any, **values: Any) -> None:
        source = _source(values)
        command(*args, source=source, **values)
        if source.unread:
            raise click.exceptions.Exit(_INCOMPLETE)

    return options(*_SOURCE_OPTIONS)(with_source)


webhook_namespace_option = click.option(
    "--webhook-namespace",
    metavar="NAMESPACE",
    help="The namespace of the replicas, with --kubeconfig or --context.  [default: placement-webhook]",
)
_SOURCE_OPTIONS = (
    click.argument("files", type=FILE, metavar="[FILE...|-]", nargs=-1),
    live_options_with(
        "Read the logs of the running replicas in the cluster of this kubeconfig, instead of files.",
        "A context of the kubeconfig; without --kubeconfig, of $KUBECONFIG or ~/.kube/config.",
    ),
    webhook_namespace_option,
    click.option(
        "-l",
        "--selector",
        metavar="LABELS",
        help="The labels of the replicas, with --kubeconfig or --context.  [default: those of deploy/]",
    ),
    click.option(
        "--since",
        help="With --kubeconfig: only what was printed since this time or age, such as 2026-05-01T08:00:00Z or 12h.",
    ),
)


def _source(values: dict[str, Any]) -> Source:
    files, kubeconfig, context = values.pop("files"), values.pop("kubeconfig"), values.pop("context")
    chosen = {"namespace": values.pop("webhook_namespace"), "selector": values.pop("selector")}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    since = values.pop("since")
    if kubeconfig is None and context is None:
        if chosen or since:
            raise click.UsageError("--webhook-namespace, --selector and --since need --kubeconfig or --context.")
        return Source(files, None)
    if files:
        raise click.UsageError("--kubeconfig reads the logs of replicas: leave FILE out, or leave --kubeconfig out.")
    # Imported here, so that a command on files does not import the client.
    from webhook.cli.records.replica_logs import ReplicaSelection
    from webhook.watch.api_server import ClientConfig

    point = parse_moment(since, datetime.now(UTC), "--since") if since else None
    return Source((), ReplicaSelection(ClientConfig(kubeconfig, context=context), since=point, **chosen))
