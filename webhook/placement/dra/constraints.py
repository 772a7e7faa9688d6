"""Constraints of claims: the values of one attribute of devices must be the same, or distinct."""

from dataclasses import dataclass, field
from typing import NamedTuple

from webhook.cluster.dra.device import AttributeValue


class AttributeRule(NamedTuple):
    """The attribute that a constraint compares."""

    attribute: str
    is_distinct: bool


@dataclass(slots=True)
class ConstraintState:
    """The devices that count for a constraint, added and removed as kube-scheduler does.

    A constraint for distinct values compares with all devices if `compares_all`. Otherwise it stores one value for each
    request: the value of its last device, or no value after this device is removed.

    Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/constraint.go, and
    allocator_incubating.go, matchAttributeConstraint
    """

    rule: AttributeRule
    compares_all: bool
    count: int = 0
    value: AttributeValue | None = None
    kept: dict[str | int, AttributeValue] = field(default_factory=dict)

    def add(self, request: str, value: AttributeValue | None) -> bool:
        """Add a device with this value for `request`, and return whether the constraint allows it."""
        if value is None:
            return False
        if self.rule.is_distinct:
            if self.count and value in self.kept.values():
                return False
            self.kept[self._key(request)] = value
        elif not self.count:
            self.value = value
        elif self.value != value:
            return False
        self.count += 1
        return True

    def remove(self, request: str) -> None:
        """Remove the last device of `request`."""
        self.count -= 1
        self.kept.pop(self._key(request), None)

    def _key(self, request: str) -> str | int:
        return self.count if self.compares_all else request.partition("/")[0]
