"""Evaluate the selector of a device."""

from typing import Any

from webhook.kube.cel.expression import compiled
from webhook.kube.cel.values import Defaulting, Quantity, parse_semver

DEVICE: dict[str, Any] = {
    "driver": "gpu.example.com",
    "allowMultipleAllocations": False,
    "attributes": Defaulting(
        {
            "gpu.example.com": {"model": "NVIDIA A100", "numa": 3, "fast": True, "driver": parse_semver("1.10.0")},
            "other.example.com": {"rack": "r1"},
        }
    ),
    "capacity": Defaulting({"gpu.example.com": {"memory": Quantity(80 * 2**30 * 1000)}}),
}


def holds(expression: str) -> bool | None:
    return compiled(expression).holds({"device": DEVICE})
