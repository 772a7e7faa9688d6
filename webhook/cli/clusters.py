"""The cluster of a command: a file, or a live cluster of a kubeconfig."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from webhook.cli.files import FILE, STANDARD_INPUT, read_text
from webhook.cli.terminal import echo
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.kube.documents import Document, parse
from webhook.kube.field import InvalidInput, invalid
from webhook.kube.kubeconfig import contexts
from webhook.kube.release import NEWEST, OLDEST, Release

F = TypeVar("F", bound=Callable[..., Any])

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
    return snapshot_from_documents(_read_documents(filename))


def _read_documents(filename: str) -> list[Document]:
    place = "<stdin>" if filename == STANDARD_INPUT else filename
    documents = parse(read_text(filename, "--cluster"), place)
    if not any(document.content.get("kind") == "Node" for document in documents):
        kinds = dict.fromkeys(str(document.content.get("kind")) for document in documents)
        held = f"holds no Node, only {', '.join([*kinds][:3])}" if kinds else "holds no Node"
        detail = f"{held}; give what `kubectl get nodes,pods,namespaces -A -o json` prints"
        raise InvalidInput([invalid("--cluster", filename, detail)])
    return documents


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
        documents = _read_documents(cluster)
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
