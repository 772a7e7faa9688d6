"""DeviceClasses: the classes that requests for devices name."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.kube.reader import Reader

Object = Mapping[str, Any]
Selectors = tuple[str | None, ...]
"""CEL expressions, which must all be true; None is a selector of an unknown kind."""


class DeviceClass(NamedTuple):
    """The facts of a DeviceClass.

    `extended_resource` is the extended resource by which pods can request its devices, or empty. `created` is its
    creationTimestamp, which sorts as a string.
    """

    name: str
    extended_resource: str
    selectors: Selectors = ()
    created: str = ""

    @classmethod
    def of(cls, device_class: Object) -> "DeviceClass":
        """Return the facts of `device_class`, a raw API object.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.
        """
        reader = Reader()
        metadata = reader.object(device_class.get("metadata"), "metadata")
        spec = reader.object(device_class.get("spec"), "spec")
        facts = cls(
            reader.text(metadata.get("name"), "metadata.name"),
            reader.text(spec.get("extendedResourceName"), "spec.extendedResourceName"),
            read_selectors(reader, spec.get("selectors"), "spec.selectors"),
            reader.text(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
        )
        reader.finish()
        return facts


def read_selectors(reader: Reader, value: Any, path: str) -> Selectors:
    """Return the DeviceSelectors `value` at `path`; `reader` collects the errors."""
    found: list[str | None] = []
    for where, selector in reader.objects(value, path):
        cel = reader.object(selector.get("cel"), f"{where}.cel")
        found.append(reader.text(cel.get("expression"), f"{where}.cel.expression") or None)
    return tuple(found)
