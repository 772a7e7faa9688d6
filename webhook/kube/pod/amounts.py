"""Names of resources, and their amounts: read, add and compare ResourceLists.

Amounts are added in thousandths, so that a sum is rounded only once. Results are in thousandths of a core for `cpu`,
and in bytes or units for other resources.
"""

from collections.abc import Mapping
from typing import Any

from webhook.kube.quantity import canonical, milli_value
from webhook.kube.reader import Reader

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
NVIDIA_GPU = "nvidia.com/gpu"
HUGE_PAGES_PREFIX = "hugepages-"

_VOLUMES_PREFIX = "attachable-volumes-"
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"


def is_extended_resource(name: str) -> bool:
    """Return true if `name` is an extended resource, which Kubernetes itself does not define.

    Source: k8s.io/kubernetes/pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName
    """
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_schedulable_resource(name: str) -> bool:
    """Return true if kube-scheduler counts the resource; it ignores others.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/types.go, Resource.Add, and util/utils.go, IsScalarResourceName
    """
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def is_scalar_resource(name: str) -> bool:
    """Return true for extended resources, huge pages, attachable volumes and other prefixed resources.

    Source: k8s.io/kubernetes/pkg/scheduler/util/utils.go, IsScalarResourceName
    """
    return (
        is_extended_resource(name) or name.startswith((HUGE_PAGES_PREFIX, _VOLUMES_PREFIX)) or "kubernetes.io/" in name
    )


def may_name_device_class(name: str) -> bool:
    """Return true if a pod can request devices of a DeviceClass by the resource `name`.

    Source: k8s.io/kubernetes/pkg/scheduler/util/utils.go, IsDRAExtendedResourceName
    """
    return is_extended_resource(name) or name.startswith(DEVICE_CLASS_PREFIX)


def device_class_of(name: str) -> str:
    """Return the name of the DeviceClass in the name of the resource, or an empty string if it contains none.

    Source: k8s.io/api/resource/v1/types.go, ResourceDeviceClassPrefix
    """
    return name.removeprefix(DEVICE_CLASS_PREFIX) if name.startswith(DEVICE_CLASS_PREFIX) else ""


Amounts = Mapping[str, int]


def read_milli(reader: Reader, key: str) -> dict[str, int]:
    """Return the ResourceList in the field `key` in thousandths; malformed and negative quantities are errors."""
    if reader.raw.get(key) is None:
        return {}
    amounts: dict[str, int] = {}
    names: Mapping[Any, Any] = reader.object(key).raw
    for name, quantity in reader.interruptible(names.items()):
        try:
            amount = milli_value(quantity)
        except ValueError as error:
            reader.error(f"{key}[{name}]", quantity, str(error))
            continue
        if amount < 0:
            reader.error(f"{key}[{name}]", quantity, "must be greater than or equal to 0")
        if not isinstance(name, str):
            reader.error(key, name, "the name of a resource must be text; put it in quotes")
            continue
        amounts[name] = amount
    return amounts


def read_amounts(reader: Reader, key: str) -> dict[str, int]:
    """Return the ResourceList in the field `key` in whole units; malformed and negative quantities are errors."""
    return whole_units(read_milli(reader, key))


def read_quantities(reader: Reader, key: str) -> dict[str, str]:
    """Return the ResourceList in the field `key` as the API server prints it; malformed quantities are errors."""
    found = read_milli(reader, key)
    return {name: canonical(quantity) for name, quantity in reader.object(key).raw.items() if name in found}


def sum_of(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    """Return the sum by resource. The arguments are not changed, but the result can be one of them."""
    if not left or not right:
        return left or right
    return left | {name: left.get(name, 0) + amount for name, amount in right.items()}


def peak_of(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    """Return the larger amount of each resource. The arguments are not changed, but the result can be one of them."""
    if not left or not right:
        return left or right
    return left | {name: max(left.get(name, 0), amount) for name, amount in right.items()}


def whole_units(milli: dict[str, int]) -> dict[str, int]:
    """Convert thousandths to whole units, rounded up; cpu stays in thousandths."""
    return {name: amount if name == CPU else -(-amount // 1000) for name, amount in milli.items()}
