"""Capacities of devices, and how much a request consumes. Amounts are in thousandths.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go
"""

from typing import Any, NamedTuple

from webhook.documents.parts import items_at
from webhook.kube.quantity import milli_value
from webhook.kube.reader import Reader


class ValidRange(NamedTuple):
    """The valid amounts: from `least` to `most`, in steps."""

    least: int | None
    most: int | None
    step: int | None


class RequestPolicy(NamedTuple):
    """The rounding and the valid amounts of requests for parts of a capacity."""

    default: int | None
    valid_values: tuple[int, ...]
    valid_range: ValidRange | None


class Capacity(NamedTuple):
    """A capacity of a device."""

    value: int
    policy: RequestPolicy | None


def read_capacities(device: Reader) -> dict[str, Capacity]:
    """Return the capacities of a device by name."""
    return {
        name: Capacity(read_amount(each, "value"), _policy(each)) for name, each in device.objects_by_name("capacity")
    }


def read_amount(reader: Reader, key: str) -> int:
    """Return the quantity in the field `key` in thousandths."""
    return _milli(reader, key, reader.raw.get(key))


def _milli(reader: Reader, key: str, quantity: Any) -> int:
    try:
        return milli_value(quantity)
    except ValueError as error:
        reader.error(key, quantity, str(error))
        return 0


def _policy(capacity: Reader) -> RequestPolicy | None:
    if not capacity.raw.get("requestPolicy"):
        return None
    policy = capacity.object("requestPolicy")
    valid_range = None
    if policy.raw.get("validRange") is not None:
        bounds = policy.object("validRange")
        valid_range = ValidRange(*[_optional(bounds, name) for name in ("min", "max", "step")])
    default = _optional(policy, "default")
    valid_values = tuple(_milli(policy, "validValues", each) for each in items_at(policy.raw, "validValues"))
    return RequestPolicy(default, valid_values, valid_range)


def _optional(reader: Reader, key: str) -> int | None:
    return None if reader.raw.get(key) is None else read_amount(reader, key)


def consumed(requested: int | None, capacity: Capacity) -> int | None:
    """Return the part of `capacity` that a request, None without an amount, consumes, or None if it is invalid.

    Source: calculateConsumedCapacity and violatesPolicy
    """
    policy = capacity.policy
    if policy is None:
        return capacity.value if requested is None else requested
    amount = _rounded(requested, capacity.value, policy)
    if amount == policy.default:
        return amount
    if policy.valid_range is not None:
        return amount if _is_within(amount, policy.valid_range) else None
    return None if policy.valid_values and amount not in policy.valid_values else amount


def _rounded(requested: int | None, whole: int, policy: RequestPolicy) -> int:
    if requested is None:
        return whole if policy.default is None else policy.default
    valid = policy.valid_range
    if valid is not None and valid.least is not None:
        if requested < valid.least:
            return valid.least
        if not valid.step:
            return requested
        steps = -((_units(valid.least) - _units(requested)) // _units(valid.step))
        return (_units(valid.least) + steps * _units(valid.step)) * 1000
    return next((each for each in policy.valid_values if requested <= each), requested)


def _is_within(amount: int, valid: ValidRange) -> bool:
    if valid.most is not None and amount > valid.most:
        return False
    return not valid.step or (_units(amount) - _units(valid.least or 0)) % _units(valid.step) == 0


def _units(thousandths: int) -> int:
    return -(-thousandths // 1000)
