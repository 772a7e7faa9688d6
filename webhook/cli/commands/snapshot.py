"""`snapshot`: write a running cluster to a cluster file."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO

import click

from webhook.cli.inputs.clusters import live_options
from webhook.cli.inputs.files import PATH, file_option
from webhook.cli.inputs.live import list_resources, read_live_release
from webhook.cli.inputs.other_names import with_other_names
from webhook.cli.inputs.private_fields import without_secrets
from webhook.cli.output.atomic_file import check_writable, write_atomically
from webhook.cli.output.terminal import echo, echo_progress
from webhook.cluster.cache.resources import (
    BATCH_RESOURCES,
    OPTIONAL_RESOURCES,
    REQUIRED_RESOURCES,
    Resource,
)
from webhook.documents.documents import JsonObject
from webhook.documents.text import json_bytes
from webhook.watch.api_server import ClientConfig

_FIRST = ("Node", "Pod", "Namespace")
_OTHERS = (*OPTIONAL_RESOURCES, *BATCH_RESOURCES)


@click.command()
@live_options
@file_option("-o", "--output", kind=PATH, help="Default: standard output.")
@click.option(
    "--all-kinds",
    is_flag=True,
    help="Also write the other kinds that are read: Services and controllers, storage, devices, PriorityClasses, "
    "RuntimeClasses, LimitRanges, PodDisruptionBudgets, queues and pod groups.",
)
@click.option("--hash-names", is_flag=True, help="Replace the names of all objects, for sharing.")
def snapshot(
    kubeconfig: Path | None, context: str | None, output: Path | None, all_kinds: bool, hash_names: bool
) -> None:
    """Write the nodes, pods and namespaces of a running cluster as a v1 List, as `check --cluster` reads it.

    With --all-kinds, `check` can also evaluate volumes, devices, default spreading and pods of lower priority, and
    `capacity` respects PodDisruptionBudgets. A kind that you have no right to read is left out and reported on standard
    error.

    Managed fields, environment variables and commands of containers are left out. --hash-names replaces the names of
    objects, of their owners and of gangs by numbers in the same order, also in the labels that repeat them, which
    changes no placement. Other labels, taints, image names and the annotations of namespaces stay, so review them
    before you share the file. The key `serverVersion` beside the items is the version of the API server, as `kubectl
    version -o json` prints it.

    \b
    Examples:
      placement-webhook snapshot -o cluster.json
      placement-webhook check -f pod.yaml --cluster cluster.json
      placement-webhook snapshot --all-kinds --hash-names -o cluster.json
    """
    check_writable(output, "--output")
    # By path: several API groups have a kind of the same name.
    found: dict[str, list[JsonObject]] = {}

    def take(resource: Resource, items: list[JsonObject], begins: bool) -> None:
        if begins:
            found[resource.path] = []
        kept = found[resource.path]
        kept += map(without_secrets, items)
        echo_progress(", ".join(f"{len(objects)} {path.rpartition('/')[2]}" for path, objects in found.items()))

    wanted = (*REQUIRED_RESOURCES, *(_OTHERS if all_kinds else ()))
    whole = {each.path: replace(each, field_selector="", part="") for each in wanted}
    source = ClientConfig(kubeconfig, context=context)
    resources = list_resources(source, whole.values(), take)
    echo("", err=True)
    nodes_first = sorted(resources, key=lambda each: (*_FIRST, each.kind).index(each.kind))
    objects = [content for each in nodes_first for content in found[each.path]]
    # An empty list states that there are no objects of the kind. Without it, the kind is not known.
    empty = (each for each in resources if not each.is_required and not found[each.path])
    objects += [{"apiVersion": each.api_version, "kind": f"{each.kind}List", "items": []} for each in empty]
    if hash_names:
        objects = with_other_names(objects)
    release = read_live_release(source)
    version = {} if release is None else {"serverVersion": {"gitVersion": release.version}}
    write_atomically(output, "--output", lambda file: _write(file, objects, version))


def _write(file: IO[bytes], objects: Iterable[JsonObject], version: JsonObject) -> None:
    head = json_bytes({"apiVersion": "v1", "kind": "List", **version})
    file.write(head.removesuffix(b"}") + b',"items":[\n')
    for number, content in enumerate(objects):
        file.write((b",\n" if number else b"") + json_bytes(content))
    file.write(b"\n]}\n")
