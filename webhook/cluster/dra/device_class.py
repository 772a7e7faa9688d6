"""DeviceClasses: the classes that requests for devices name."""

from typing import NamedTuple

from webhook.kube.reader import Reader, reading

# It has the fields of a request beside its name, and those of a device in `basic`. v1beta2 has the fields of v1.
DEVICES_V1BETA1 = "resource.k8s.io/v1beta1"
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
    @reading
    def of(cls, device_class: Reader) -> "DeviceClass":
        """Read a DeviceClass."""
        metadata, spec = device_class.object("metadata"), device_class.object("spec")
        resource = spec.text("extendedResourceName")
        return cls(metadata.text("name"), resource, read_selectors(spec), metadata.text("creationTimestamp"))


def read_selectors(reader: Reader) -> Selectors:
    """Return the DeviceSelectors of a class or of a request."""
    return tuple([each.object("cel").text("expression") or None for each in reader.objects("selectors")])
