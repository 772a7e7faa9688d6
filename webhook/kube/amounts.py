"""Amounts of resources: read, add and compare ResourceLists.

While they are added, amounts are in thousandths, so that a sum is rounded once. Results are in thousandths of a core
for `cpu`, and in bytes or units for other resources.
"""

from collections.abc import Mapping
from typing import Any

from webhook.kube.quantity import milli_value
from webhook.kube.reader import Reader
from webhook.kube.resource_names import CPU

Amounts = Mapping[str, int]


def read_milli(reader: Reader, value: Any, path: str) -> dict[str, int]:
    """Return a ResourceList in thousandths; `reader` collects the errors (malformed or negative quantities)."""
    if value is None:
        return {}
    amounts: dict[str, int] = {}
    names: Mapping[Any, Any] = reader.object(value, path)
    for name, quantity in reader.interruptible(names.items()):
        try:
            amount = milli_value(quantity)
        except ValueError as error:
            reader.error(f"{path}[{name}]", quantity, str(error))
            continue
        if amount < 0:
            reader.error(f"{path}[{name}]", quantity, "must be greater than or equal to 0")
        if not isinstance(name, str):
            reader.error(path, name, "the name of a resource must be text; put it in quotes")
            continue
        amounts[name] = amount
    return amounts


def read_amounts(reader: Reader, value: Any, path: str) -> dict[str, int]:
    """Return a ResourceList in whole units; `reader` collects the errors (malformed or negative quantities)."""
    return whole_units(read_milli(reader, value, path))


def sum_of(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    """Return the sum by resource. The arguments do not change; the result can be one of them."""
    if not left or not right:
        return left or right
    return left | {name: left.get(name, 0) + amount for name, amount in right.items()}


def peak_of(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    """Return the larger amount of each resource. The arguments do not change; the result can be one of them."""
    if not left or not right:
        return left or right
    return left | {name: max(left.get(name, 0), amount) for name, amount in right.items()}


def whole_units(milli: dict[str, int]) -> dict[str, int]:
    """Convert thousandths to whole units, rounded up; cpu stays in thousandths."""
    return {name: amount if name == CPU else -(-amount // 1000) for name, amount in milli.items()}
