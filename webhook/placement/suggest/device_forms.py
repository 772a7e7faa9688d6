"""Names under which nodes offer the same kind of device: whole cards, shared cards and MIG slices; RDMA devices."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

_MIG = re.compile(r"nvidia\.com/mig-\d+g\.(?P<gigabytes>\d+)gb(?:\..+)?")
# Gigabytes that rank whole and shared cards behind all slices that are large enough.
_WHOLE_CARDS = {"nvidia.com/gpu": 100_000, "nvidia.com/gpu.shared": 99_999}
_RDMA = "rdma/"


def other_forms(resource: str, offered: Iterable[str]) -> list[str]:
    """Return the resources in `offered` that are another form of `resource`, the closest first.

    A form that is at least as large comes before a smaller one. The names are those of NVIDIA's and Mellanox's device
    plugins; other vendors have one name for a device.
    """
    if resource.startswith(_RDMA):
        devices = [each for each in offered if each.startswith(_RDMA) and each != resource]
        return sorted(devices, key=lambda each: (-SequenceMatcher(None, resource, each).ratio(), each))
    size = _gigabytes(resource)
    if size is None:
        return []
    sizes = {each: other for each in offered if each != resource and (other := _gigabytes(each)) is not None}
    return sorted(sizes, key=lambda each: (sizes[each] < size, abs(sizes[each] - size), each))


def _gigabytes(resource: str) -> int | None:
    slice_ = _MIG.fullmatch(resource)
    return int(slice_["gigabytes"]) if slice_ else _WHOLE_CARDS.get(resource)
