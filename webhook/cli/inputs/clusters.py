"""The cluster of a command: a file, or a live cluster of a kubeconfig."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import redirect_stderr, suppress
from difflib import get_close_matches
from io import SEEK_END, StringIO
from pathlib import Path
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from webhook.cli.inputs.files import PATH, Option, file_option, open_bytes, options, place_of
from webhook.cluster.cache.resources import RESOURCES, Resource
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document, JsonObject, field, parse, parse_list
from webhook.documents.field import InvalidInput, invalid
from webhook.documents.json_text import NotAListError
from webhook.kube.api.kubeconfig import contexts
from webhook.kube.release import NEWEST, OLDEST, Release, is_server_version

T = TypeVar("T")

# Smaller files can be handwritten; they are parsed as a whole, with errors for what programs do not write.
_LARGE_BYTES = 1024 * 1024
_MOST_CLOSE = 3

cluster_option = file_option(
    "--cluster",
    help="The output of `kubectl get nodes,pods,namespaces -A -o json` (or yaml); - for standard input. Default: the "
    "live cluster that kubectl would use.",
)


def complete_context(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the contexts of the kubeconfig for shell completion, or none if it cannot be read."""
    with suppress(InvalidInput):
        return [CompletionItem(each) for each in contexts(ctx.params.get("kubeconfig")) if each.startswith(incomplete)]
    return []


def complete_node(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the nodes of the cluster for shell completion, or none if it cannot be read."""
    options = (ctx.params.get(name) for name in ("cluster", "kubeconfig", "context"))
    with redirect_stderr(StringIO()), suppress(InvalidInput, click.ClickException):
        return [CompletionItem(each) for each in _node_names(*options) if each.startswith(incomplete)]
    return []


def known_nodes(flag: str, names: Iterable[str], snapshot: Snapshot) -> tuple[str, ...]:
    """Return the nodes named by `flag` without duplicates. A text can have several names, separated by commas.

    Raises:
        InvalidInput: the cluster has no such node; holds an error for each.
    """
    asked = tuple(dict.fromkeys(name for text in names for name in text.split(",")))
    errors = []
    for name in asked:
        if name not in snapshot.rows:
            close = ", ".join(get_close_matches(name, snapshot.rows, _MOST_CLOSE, 0.0))
            errors.append(invalid(flag, name, f"the cluster has no such node; the nearest names: {close}"))
    if errors:
        raise InvalidInput(errors)
    return asked


def _node_names(cluster: str | None, kubeconfig: Path | None, context: str | None) -> Collection[str]:
    if cluster is not None:
        return read_cluster(cluster).rows
    from webhook.cli.inputs.live import list_resources
    from webhook.watch.api_server import ClientConfig

    found: list[str] = []

    def take(_: Resource, items: list[JsonObject], __: bool) -> None:
        found.extend(str(field(each, "metadata", "name")) for each in items)

    list_resources(ClientConfig(kubeconfig, context=context), [each for each in RESOURCES if each.kind == "Node"], take)
    return sorted(found)


release_option = click.option(
    "--release",
    callback=lambda _, __, value: None if value is None else Release.of(value, "--release"),
    metavar="VERSION",
    help=f"The release of the cluster's kube-scheduler, such as 1.36; 1.{OLDEST} to 1.{NEWEST} are modelled. Default: "
    "that of the API server or of the file; if neither is known, the newest.",
)


def live_options_with(kubeconfig: str, context: str) -> Option:
    """Return `--kubeconfig` and `--context` with these texts as help."""
    return options(
        file_option("--kubeconfig", kind=PATH, help=kubeconfig),
        click.option("--context", metavar="NAME", shell_complete=complete_context, help=context),
    )


live_options = live_options_with(
    "The live cluster of this kubeconfig; default as in kubectl: $KUBECONFIG, else ~/.kube/config.",
    "A context of the kubeconfig; default: its current context.",
)


def read_cluster(filename: str) -> Snapshot:
    """Return a snapshot of the cluster in the file.

    Raises:
        InvalidInput: it cannot be read, or holds no node.
    """
    return _read(filename, snapshot_from_documents)


def read_objects(filename: str) -> tuple[Document, ...]:
    """Return the objects in the file.

    Raises:
        InvalidInput: it cannot be read, or holds no node.
    """
    return _read(filename, tuple)


def _read(filename: str, read: Callable[[Iterable[Document]], T]) -> T:
    """Return `read()` of the objects in the file. The objects are parsed one by one if the format allows it."""
    place = place_of(filename)
    with open_bytes(filename, "--cluster") as file:
        if file.seek(0, SEEK_END) > _LARGE_BYTES:
            file.seek(0)
            with suppress(NotAListError):
                return _read_cluster(filename, read, parse_list(file, place))
        file.seek(0)
        return _read_cluster(filename, read, parse(file.read(), place))


def _read_cluster(filename: str, read: Callable[[Iterable[Document]], T], documents: Iterable[Document]) -> T:
    """Return `read()` of the objects. If no object is a node, only this error is raised."""
    kinds: dict[str, None] = {}

    def noted() -> Iterator[Document]:
        for document in documents:
            kind = document.content.get("kind")
            if kind and not is_server_version(document.content):
                kinds[str(kind)] = None
            yield document

    try:
        found = read(noted())
    except InvalidInput:
        _check_nodes(filename, kinds)
        raise
    _check_nodes(filename, kinds)
    return found


def _check_nodes(filename: str, kinds: Collection[str]) -> None:
    if "Node" not in kinds:
        held = f"holds no Node, only {', '.join([*kinds][:3])}" if kinds else "holds no Node"
        detail = f"{held}; give what `kubectl get nodes,pods,namespaces -A -o json` prints"
        raise InvalidInput([invalid("--cluster", filename, detail)])
