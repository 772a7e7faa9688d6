"""Amounts of resources: a ResourceList read, summed, compared.

Within sums an amount is in thousandths, so that a sum of fractions is rounded once, at its end. What a sum comes to
is in thousandths of a core for `cpu`, in bytes or units for all else.
"""

from collections.abc import Mapping
from typing import Any

from webhook.kube.quantity import milli_value
from webhook.kube.reader import Reader
from webhook.kube.resource_names import CPU

Amounts = Mapping[str, int]


def read_milli(reader: Reader, value: Any, path: str) -> dict[str, int]:
    """A ResourceList in thousandths; what is malformed or negative is noted with `reader`."""
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
    """A ResourceList in whole units; what is malformed or negative is noted with `reader`."""
    return whole_units(read_milli(reader, value, path))


def sum_of(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    """Both together; neither is changed, and the answer may be one of them."""
    if not left or not right:
        return left or right
    return left | {name: left.get(name, 0) + amount for name, amount in right.items()}


def peak_of(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    """The larger amount of each resource; neither is changed, and the answer may be one of them."""
    if not left or not right:
        return left or right
    return left | {name: max(left.get(name, 0), amount) for name, amount in right.items()}


def whole_units(milli: dict[str, int]) -> dict[str, int]:
    """Thousandths as thousandths for cpu, as whole units for all else, rounded up."""
    return {name: amount if name == CPU else -(-amount // 1000) for name, amount in milli.items()}
