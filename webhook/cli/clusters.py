"""The cluster of a command: a file, or a live cluster of a kubeconfig."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from io import SEEK_END
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from webhook.cli.files import FILE, STANDARD_INPUT, open_bytes
from webhook.cli.terminal import echo
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.kube.documents import Document, parse, parse_list
from webhook.kube.field import InvalidInput, invalid
from webhook.kube.json_list import NotAListError
from webhook.kube.kubeconfig import contexts
from webhook.kube.release import NEWEST, OLDEST, Release

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

# Smaller files can be handwritten; they are parsed as a whole, with errors for what programs do not write.
_LARGE_BYTES = 1024 * 1024

kubeconfig_option = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The live cluster of this kubeconfig; default as in kubectl: $KUBECONFIG, else ~/.kube/config.",
)

cluster_option = click.option(
    "--cluster",
    type=FILE,
    metavar="FILE",
    help="The output of `kubectl get nodes,pods,namespaces -A -o json` (or yaml); - for standard input. Default: the "
    "live cluster that kubectl would use.",
)


def complete_context(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the contexts of the kubeconfig for shell completion; none if it cannot be read."""
    with suppress(InvalidInput):
        return [CompletionItem(each) for each in contexts(ctx.params.get("kubeconfig")) if each.startswith(incomplete)]
    return []


context_option = click.option(
    "--context",
    metavar="NAME",
    shell_complete=complete_context,
    help="A context of the kubeconfig; default: its current context.",
)


def _read_release(_: click.Context, __: click.Parameter, value: str | None) -> Release | None:
    return None if value is None else Release.of(value, "--release")


release_option = click.option(
    "--release",
    callback=_read_release,
    metavar="VERSION",
    help=f"The release of the cluster's kube-scheduler, such as 1.34; 1.{OLDEST} to 1.{NEWEST} are modelled. Default: "
    "that of the API server or of the file; if neither is known, the newest.",
)


def live_options(command: F) -> F:
    """Add `--kubeconfig` and `--context`."""
    return kubeconfig_option(context_option(command))


def read_cluster(filename: str) -> Snapshot:
    """Return a snapshot of the cluster in the file.

    Raises:
        InvalidInput: it cannot be read, or holds no node.
    """
    return _read(filename, snapshot_from_documents)


def _read(filename: str, read: Callable[[Iterable[Document]], T]) -> T:
    """Return `read()` of the objects in the file, which come one by one where that is possible."""
    place = "<stdin>" if filename == STANDARD_INPUT else filename
    with open_bytes(filename, "--cluster") as file:
        if file.seek(0, SEEK_END) > _LARGE_BYTES:
            file.seek(0)
            with suppress(NotAListError):
                return _read_cluster(filename, read, parse_list(file, place))
        file.seek(0)
        return _read_cluster(filename, read, parse(file.read(), place))


def _read_cluster(filename: str, read: Callable[[Iterable[Document]], T], documents: Iterable[Document]) -> T:
    kinds: dict[str, None] = {}
    try:
        found = read(_noting_kinds(documents, kinds))
    except InvalidInput:
        _check_nodes(filename, kinds)
        raise
    _check_nodes(filename, kinds)
    return found


def _noting_kinds(documents: Iterable[Document], kinds: dict[str, None]) -> Iterator[Document]:
    for document in documents:
        kinds[str(document.content.get("kind"))] = None
        yield document


def _check_nodes(filename: str, kinds: Collection[str]) -> None:
    """Raise an error if no object of the file is a node."""
    if "Node" not in kinds:
        held = f"holds no Node, only {', '.join([*kinds][:3])}" if kinds else "holds no Node"
        detail = f"{held}; give what `kubectl get nodes,pods,namespaces -A -o json` prints"
        raise InvalidInput([invalid("--cluster", filename, detail)])


def read_cluster_or_live(
    cluster: str | None, kubeconfig: Path | None, context: str | None, release: Release | None = None
) -> Snapshot:
    """Return a snapshot of the cluster in the file, or else of the live cluster that kubectl would use.

    `release` replaces the release of the cluster. The name of the live cluster, and a release other than the newest
    that is modelled, are printed on standard error.

    Raises:
        InvalidInput: it cannot be read.
        click.ClickException: a file and a live cluster are given, or the API server does not answer the request.
    """
    _check_one_cluster(cluster, kubeconfig, context)
    if cluster is not None:
        snapshot = read_cluster(cluster)
    else:
        # Imported here, so that a command on a file does not import the client.
        from webhook.cli.live import read_live_cluster

        snapshot = read_live_cluster(kubeconfig, context)
    return _of_release(snapshot, release)


def read_cluster_with_disruptions(
    cluster: str | None, kubeconfig: Path | None, context: str | None, release: Release | None = None
) -> tuple[Snapshot, Disruptions]:
    """Return the same snapshot, and what limits the moves of its pods.

    Raises:
        InvalidInput: it cannot be read.
        click.ClickException: a file and a live cluster are given, or the API server does not answer the request.
    """
    _check_one_cluster(cluster, kubeconfig, context)
    if cluster is not None:
        documents = _read(cluster, tuple)
        snapshot, disruptions = snapshot_from_documents(documents), Disruptions.from_documents(documents)
    else:
        from webhook.cli.live import read_live_cluster_with_disruptions

        snapshot, disruptions = read_live_cluster_with_disruptions(kubeconfig, context)
    return _of_release(snapshot, release), disruptions


def _of_release(snapshot: Snapshot, release: Release | None) -> Snapshot:
    """Return `snapshot` with `release` in place of its own, and print a release that is not the newest."""
    snapshot = snapshot if release is None else replace(snapshot, release=release)
    if snapshot.release.note:
        echo(snapshot.release.note, err=True)
    return snapshot


def _check_one_cluster(cluster: str | None, kubeconfig: Path | None, context: str | None) -> None:
    if cluster is not None and (kubeconfig is not None or context is not None):
        raise click.UsageError("--cluster is a file: leave --kubeconfig and --context out.")
