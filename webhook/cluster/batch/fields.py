"""Read the objects of batch schedulers leniently.

Their CRDs may change, and an object that cannot be read would count as missing. So a field of an unexpected type counts
as unset, and all texts and lists are bounded.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from webhook.documents.documents import field
from webhook.documents.parts import items_at, object_at
from webhook.kube.pod.amounts import CPU, Amounts
from webhook.kube.quantity import milli_value

# No name of an API object is longer.
_LONGEST_TEXT = 253
# The largest value of an int32 field.
_MOST_COUNTED = 2**31 - 1
_LARGEST = 10**308
# More than any queue names: resources, flavors and groups of resources.
MOST_ITEMS = 64
"""The number of items of a list that are read."""


def text(content: Any, *path: str) -> str:
    """Return the text at `path`, truncated to the length of a name, or an empty string if there is none."""
    value = field(content, *path)
    return value[:_LONGEST_TEXT] if isinstance(value, str) else ""


def amounts(content: Any, *path: str) -> Amounts:
    """Return the ResourceList at `path`: cpu in thousandths of a core, other resources in bytes or units."""
    found = {}
    for name, quantity in islice(object_at(content, *path).items(), MOST_ITEMS):
        amount = _amount(str(name), quantity)
        if amount is not None:
            found[str(name)[:_LONGEST_TEXT]] = amount
    return found


def amount(content: Any, resource: str, *path: str) -> int | None:
    """Return the quantity of `resource` at `path`, in the units of `amounts`, or None if there is none."""
    return _amount(resource, field(content, *path))


def number(content: Any, *path: str) -> float | None:
    """Return the number at `path`, or None if there is none."""
    value = field(content, *path)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # A float has at most 308 digits.
    return float(value) if is_number and abs(value) < _LARGEST else None


def count(content: Any, *path: str) -> int:
    """Return the positive integer at `path`, or 0 if there is none."""
    value = number(content, *path)
    return int(value) if value is not None and 1 <= value <= _MOST_COUNTED else 0


def texts(content: Any, *path: str) -> Mapping[str, str]:
    """Return the map of texts at `path`."""
    pairs = islice(object_at(content, *path).items(), MOST_ITEMS)
    return {key[:_LONGEST_TEXT]: each[:_LONGEST_TEXT] for key, each in pairs if isinstance(each, str)}


def items(content: Any, *path: str) -> Iterator[Any]:
    """Return the items of the list at `path`."""
    return islice(items_at(content, *path), MOST_ITEMS)


def _amount(resource: str, quantity: Any) -> int | None:
    if quantity is None:
        return None
    try:
        milli = milli_value(quantity)
    except ValueError:
        return None
    return milli if resource == CPU else -(-milli // 1000)
