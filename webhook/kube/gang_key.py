"""The gangs that the annotations of a pod name, whatever the key domain of the policy is."""

from collections.abc import Mapping
from typing import NamedTuple

_SUFFIX = "/gang"
# A label value, and a key of a label or an annotation: 253 characters of prefix, 63 of name.
_LONGEST_NAME = 63
_LONGEST_KEY = 317
# Two installations with key domains of their own, and one more.
_MOST = 3


class GangKey(NamedTuple):
    """A gang: the pods of `namespace` whose `annotation` is `name`."""

    namespace: str
    annotation: str
    name: str


def gangs_of(namespace: str, annotations: Mapping[str, object]) -> tuple[GangKey, ...]:
    """Return the gangs of a pod in `namespace` with `annotations`; those with a name that is no label value are not."""
    found = (
        GangKey(namespace, key, name)
        for key, name in annotations.items()
        if key.endswith(_SUFFIX)
        and len(key) <= _LONGEST_KEY
        and isinstance(name, str)
        and 0 < len(name) <= _LONGEST_NAME
    )
    return tuple(sorted(found)[:_MOST])
