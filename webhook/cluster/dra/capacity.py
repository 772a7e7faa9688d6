"""Capacities of devices, and how much a request consumes. Amounts are in thousandths.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.kube.quantity import milli_value
from webhook.kube.reader import Reader

Object = Mapping[str, Any]


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


def read_capacities(reader: Reader, value: Any, path: str) -> dict[str, Capacity]:
    """Return the capacities of a device by name; `reader` collects the errors."""
    found = {}
    for name, each in reader.object(value, path).items():
        where = f"{path}[{name}]"
        capacity = reader.object(each, where)
        amount = read_amount(reader, capacity.get("value"), f"{where}.value")
        found[str(name)] = Capacity(amount, _policy(reader, capacity.get("requestPolicy"), f"{where}.requestPolicy"))
    return found


def read_amount(reader: Reader, value: Any, path: str) -> int:
    """Return the quantity `value` in thousandths; `reader` collects the errors."""
    try:
        return milli_value(value)
    except ValueError as error:
        reader.error(path, value, str(error))
        return 0


def _policy(reader: Reader, value: Any, path: str) -> RequestPolicy | None:
    if not value:
        return None
    policy = reader.object(value, path)
    valid_values = policy.get("validValues") if isinstance(policy.get("validValues"), list) else []
    valid_range = None
    if policy.get("validRange") is not None:
        bounds = reader.object(policy.get("validRange"), f"{path}.validRange")
        valid_range = ValidRange(
            *[_optional(reader, bounds.get(name), f"{path}.validRange.{name}") for name in ("min", "max", "step")]
        )
    return RequestPolicy(
        _optional(reader, policy.get("default"), f"{path}.default"),
        tuple([read_amount(reader, each, f"{path}.validValues") for each in valid_values or ()]),
        valid_range,
    )


def _optional(reader: Reader, value: Any, path: str) -> int | None:
    return None if value is None else read_amount(reader, value, path)


def consumed(requested: int | None, capacity: Capacity) -> int | None:
    """Return what a request, or one without an amount (None), consumes of `capacity`; None if it is not valid.

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
