"""Where the `audit` commands read records: files with their head files, or the running replicas."""

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from webhook.audit.archive import is_archive
from webhook.audit.head import SUFFIX, ChainHead, count, head_path, read_head
from webhook.audit.pods import SUFFIXES as POD_SUFFIXES
from webhook.audit.reading import rotated_files
from webhook.audit.selection import parse_moment
from webhook.audit.sources import STANDARD_INPUT, Download, Sources
from webhook.cli.inputs.clusters import complete_context
from webhook.cli.inputs.files import FILE, PATH, Command, Option, file_option, options
from webhook.cli.output.terminal import echo, plural
from webhook.documents.field import InvalidInput, invalid, required

if TYPE_CHECKING:
    from webhook.cli.records.replica_logs import ReplicaSelection

DEFAULT_FILE = "audit.jsonl"
_INCOMPLETE = 1
_MOST_NAMED = 5
_ODD = "holds no audit record; see what the replica writes there, and compare its image with that of the others"


@dataclass(slots=True)
class Source:
    """The `files` of the command line, or the replicas of a cluster, whose records may be incomplete after reading.

    `has_archives`: each file is an archive of `audit export`.
    """

    files: tuple[str, ...]
    replicas: "ReplicaSelection | None"
    has_archives: bool = False
    unread: int = 0

    @property
    def place(self) -> str:
        """Return what names the source on the command line."""
        return ", ".join(self.files) if self.replicas is None else f"--selector {self.replicas.selector}"

    @property
    def is_partial(self) -> bool:
        """Return whether the oldest records of an audit file may be missing: left out, or not read."""
        return bool(self.unread) or (self.replicas is not None and self.replicas.since is not None)

    @contextmanager
    def opened(self, since: datetime | None = None, *, with_heads: bool = False) -> Iterator[Sources]:
        """Open the records until the block ends: of running replicas those written at or after `since`.

        `with_heads`: for `verify`, which reports itself what is missing before a record: also read the heads beside
        audit files. What was not read to its end is reported on standard error.

        Raises:
            InvalidInput: a file cannot be read or holds something else, the kubeconfig is wrong, or no pod is selected.
            click.ClickException: the pods cannot be listed, or the temporary folder cannot take the records.
        """
        if self.replicas is None and not self.has_archives:
            with _open_files(self.files, with_heads=with_heads) as sources:
                yield sources
            return
        with self._downloads(since) as downloads, Sources.of_replicas(downloads) as sources:
            self.unread = len(sources.unread)
            for each in sources.unread:
                echo(f"warning: {each}", fg="yellow", err=True)
            try:
                yield sources
            except InvalidInput:
                self._report_cut_logs(sources, since)
                raise
            if not with_heads:
                self._report_cut_logs(sources, since)
            self.unread += len(sources.without_records)
            for name in sources.without_records:
                echo(f"warning: {name}: {_ODD}", fg="yellow", err=True)
            if not sources.has_records:
                echo("no replica has an audit record", err=True)
                # A quiet hour is no fault, but replicas without any record show nothing of what was decided.
                self.unread += since is None

    def _report_cut_logs(self, sources: Sources, since: datetime | None) -> None:
        """Report what is missing before the first record of printed logs, in one line."""
        if not sources.cut_logs:
            return
        cut = [
            f"{name}: {count(record.sequence - 1)} before {record.time}"
            for name, record in list(sources.cut_logs.items())[:_MOST_NAMED]
        ]
        if others := len(sources.cut_logs) - len(cut):
            cut.append(plural(others, "other log"))
        reason = (
            "written before --since, or rotated away"
            if since or (self.replicas and self.replicas.since)
            else "rotated away"
        )
        echo(f"warning: not in the logs that the kubelet keeps: {'; '.join(cut)}: {reason}", fg="yellow", err=True)

    @contextmanager
    def _downloads(self, since: datetime | None) -> Iterator[Sequence[Download]]:
        """Download the records of running replicas, and delete them when the block ends."""
        if self.replicas is None:
            yield [Download(name, Path(name), is_archive=True) for name in dict.fromkeys(self.files)]
            return
        # Imported here, so that a command on files does not import the client.
        from webhook.cli.records.replica_logs import download, not_writable

        # On disk, so that memory does not grow with the logs; the folder is the user's alone.
        try:
            temporary = TemporaryDirectory(prefix="placement-webhook-audit-")
        except OSError as error:
            raise not_writable(error, Path(os.environ.get("TMPDIR", "/tmp"))) from error  # noqa: S108 - a text
        with temporary as folder:
            selection = self.replicas if since is None else replace(self.replicas, since=since)
            yield download(selection, Path(folder))


def _open_files(files: Sequence[str], *, with_heads: bool) -> Sources:
    """Open the audit files that `files` names, by default that of this folder with its rotated files.

    That there is none is an error, unless a head counts its records.
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
    """Return the contents of the head files that `names` holds, and of those beside the audit files in `names`.

    The head of a log also counts as beside its rotated files if the log itself does not exist.
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


def source_options(*, since: bool) -> Option:
    """Add FILE and the options of replicas; the command gets `source` instead. With `since`, `--since` as well.

    After the command, the exit code is 1 if not all records of the replicas were read.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_source(*args: Any, **values: Any) -> None:
            source = _source(values, since=since)
            command(*args, source=source, **values)
            if source.unread:
                raise click.exceptions.Exit(_INCOMPLETE)

        return options(*_REPLICA_OPTIONS, *([_since_option] if since else []))(with_source)

    return decorate


webhook_namespace_option = click.option(
    "--webhook-namespace",
    metavar="NAMESPACE",
    help="The namespace of the replicas, with --kubeconfig or --context.  [default: placement-webhook]",
)
admin_token_option = file_option(
    "--admin-token-file",
    kind=PATH,
    help="The token of the admin port of the replicas, to read their audit files from there.",
)


def token_of(file: Path | None) -> str:
    """Return the token in `file`; empty without one.

    Raises:
        InvalidInput: the file cannot be read, or holds no token.
    """
    if file is None:
        return ""
    from webhook.serving.http.bearer_token import read_token

    return read_token(file).decode("utf-8", "replace")


_REPLICA_OPTIONS = (
    click.argument("files", type=FILE, metavar="[FILE...|-]", nargs=-1),
    file_option(
        "--kubeconfig",
        kind=PATH,
        help="Read the records of the running replicas in the cluster of this kubeconfig, instead of files.",
    ),
    click.option(
        "--context",
        metavar="NAME",
        shell_complete=complete_context,
        help="A context of the kubeconfig; alone, of $KUBECONFIG or ~/.kube/config.",
    ),
    webhook_namespace_option,
    click.option(
        "-l",
        "--selector",
        metavar="LABELS",
        help="The labels of the replicas, with --kubeconfig or --context.  [default: those of deploy/]",
    ),
    admin_token_option,
    click.option(
        "--exec",
        "runs_commands",
        is_flag=True,
        help="Without that token: read the audit files of replicas by a command in their containers (pods/exec).",
    ),
)
_since_option = click.option(
    "--since",
    help="With --kubeconfig: only what was written since this time or age, such as 2026-05-01T08:00:00Z or 12h.",
)


def _source(values: dict[str, Any], *, since: bool) -> Source:
    """Take the values of the options out of `values` and return the source."""
    files, kubeconfig, context = values.pop("files"), values.pop("kubeconfig"), values.pop("context")
    chosen = {"namespace": values.pop("webhook_namespace"), "selector": values.pop("selector")}
    token_file, runs_commands = values.pop("admin_token_file"), values.pop("runs_commands")
    chosen = {name: value for name, value in chosen.items() if value is not None}
    moment = values.pop("since") if since else None
    if kubeconfig is None and context is None:
        if chosen or moment or token_file or runs_commands:
            names = "--webhook-namespace, --selector, --admin-token-file, --exec and --since"
            raise click.UsageError(f"{names} need --kubeconfig or --context.")
        kinds = {is_archive(Path(name)) for name in files}
        if len(kinds) > 1:
            raise click.UsageError("FILE: give archives of `audit export`, or audit files, but not both.")
        return Source(files, None, has_archives=True in kinds)
    if files:
        raise click.UsageError("--kubeconfig reads the records of replicas: leave FILE out, or leave --kubeconfig out.")
    # Imported here, so that a command on files does not import the client.
    from webhook.cli.records.replica_logs import ReplicaSelection
    from webhook.watch.api_server import ClientConfig

    point = parse_moment(moment, datetime.now(UTC), "--since") if moment else None
    chosen |= {"token": token_of(token_file), "runs_commands": runs_commands}
    return Source((), ReplicaSelection(ClientConfig(kubeconfig, context=context), since=point, **chosen))
