"""The gangs that a pod names in its annotations, in any key domain."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.kube.names import KUEUE_WORKLOAD

GANG, GANG_SIZE = "/gang", "/gang-size"
# A label value, and a key of a label or an annotation: 253 characters of prefix, 63 of name.
_LONGEST_NAME = 63
_LONGEST_KEY = 317
_LONGEST_OBJECT_NAME = 253
# Two installations with key domains of their own, and one more.
_MOST = 3


class GangKey(NamedTuple):
    """A gang: the pods of `namespace` whose `annotation` is `name`.

    A gang with a size but without a name consists of all pods of one controller. `annotation` is then the annotation
    with the size, and `name` the name of the controller.
    """

    namespace: str
    annotation: str
    name: str


def gangs_of(namespace: str, metadata: Mapping[str, Any]) -> tuple[GangKey, ...]:
    """Return the gangs of a pod in `namespace` with `metadata`. Names that are not valid label values are left out."""
    annotations = metadata.get("annotations")
    if not annotations or not isinstance(annotations, Mapping):
        return ()
    read = [key for key in annotations if key.endswith((GANG, GANG_SIZE))]
    if not read:
        return ()
    named = {key: annotations[key] for key in read if key.endswith(GANG)}
    sizes = [key for key in read if key.endswith(GANG_SIZE)]
    if sizes and (controller := _controller(metadata.get("ownerReferences"))):
        without_name = (key for key in sizes if key.removesuffix(GANG_SIZE) + GANG not in named)
        named |= dict.fromkeys(without_name, controller[:_LONGEST_NAME])
    found = (
        GangKey(namespace, key, name)
        for key, name in named.items()
        if len(key) <= _LONGEST_KEY and isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME
    )
    return tuple(sorted(found)[:_MOST])


def workload_of(metadata: Mapping[str, Any]) -> str:
    """Return the Workload of a pod with `metadata`, which Kueue has placed by its topology-aware scheduling, or ""."""
    annotations = metadata.get("annotations")
    name = annotations.get(KUEUE_WORKLOAD) if isinstance(annotations, Mapping) else None
    return name if isinstance(name, str) and len(name) <= _LONGEST_OBJECT_NAME else ""


def gang_annotations(annotations: object) -> dict[str, Any]:
    """Return the annotations that `gangs_of` reads, limited to a few."""
    if not isinstance(annotations, Mapping):
        return {}
    found = {key: value for key, value in annotations.items() if key.endswith((GANG, GANG_SIZE))}
    return dict(sorted(found.items())[: 2 * _MOST]) if found else {}


def _controller(owners: object) -> str:
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller") is True and isinstance(owner.get("name"), str):
            return str(owner["name"])
    return ""
