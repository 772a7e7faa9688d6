"""Compare a requirement on a node label with the user's requirements on the same label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import orjson

from webhook.documents.text import cut
from webhook.kube.selectors import parse_integer, requirement_matches

Expression = Mapping[str, Any]
Operator = Literal["In", "NotIn", "Exists", "Gt"]


# Larger terms are not searched for contradictions; no term written by hand is that large.
_MOST_COMPARED = 10_000

LONGEST_SHOWN = 253
"""Maximum number of characters of a user's value in a message. No name or label in Kubernetes is longer."""
# A client sees 256 bytes of a warning, and the consequence is at its end.
_MOST_VALUES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class NodeLabelRequirement:
    """`key In values`, `NotIn values`, `Exists`, or `Gt value` with one integer: the operators that rules use."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    origin: str = field(default="", compare=False)
    """The derivation of the requirement from the annotation, for messages."""

    def __str__(self) -> str:
        return self._text(", ".join(self.values))

    def _text(self, values: str) -> str:
        origin = f" ({self.origin})" if self.origin else ""
        if self.operator == "Gt":
            return f"{self.key} > {self.values[0]}{origin}"
        if self.operator == "Exists":
            return f"{self.key} exists{origin}"
        return f"{self.key} {'in' if self.operator == 'In' else 'not in'} [{values}]{origin}"

    @property
    def summary(self) -> str:
        """Return the text for warnings, with a few of its values."""
        return self._text(_values_text(self.values))

    def to_json(self) -> dict[str, Any]:
        """Return the NodeSelectorRequirement."""
        if self.operator == "Exists":
            return {"key": self.key, "operator": self.operator}
        return {"key": self.key, "operator": self.operator, "values": list(self.values)}

    @property
    def size_bytes(self) -> int:
        """Return the size of the requirement in JSON."""
        return len(orjson.dumps(self.to_json()))

    def admits(self, value: str) -> bool:
        """Return whether a label with this value meets the requirement."""
        return requirement_matches(self.to_json(), {self.key: value})

    def _admits_all(self, values: Sequence[str]) -> bool:
        if self.operator == "In":
            return frozenset(self.values).issuperset(values)
        if self.operator == "NotIn":
            return frozenset(self.values).isdisjoint(values)
        return all(self.admits(value) for value in values)

    def equals(self, expression: Expression) -> bool:
        """Return whether `expression` is the same requirement; the order of values does not matter."""
        return (
            expression.get("key") == self.key
            and expression.get("operator") == self.operator
            and set(expression.get("values") or ()) == set(self.values)
        )

    def is_implied_by(self, expressions: Sequence[Expression]) -> bool:
        """Return whether one of the ANDed `expressions` is at least as strict, so that nothing needs to be added."""
        return any(self._is_implied_by(expression) for expression in expressions)

    def _is_implied_by(self, expression: Expression) -> bool:
        if expression.get("key") != self.key:
            return False
        values: Sequence[str] = expression.get("values") or ()
        if expression.get("operator") == "In":
            return bool(values) and self._admits_all(values)
        if self.operator == "NotIn":
            return self._excludes_no_less(expression, values)
        if self.operator == "Exists":
            return expression.get("operator") in ("Exists", "Gt", "Lt")
        if expression.get("operator") == "Gt" and self.operator == "Gt":
            return len(values) == 1 and (self.admits(values[0]) or values[0] == self.values[0])
        return False

    def _excludes_no_less(self, expression: Expression, values: Sequence[str]) -> bool:
        """Return whether `expression` excludes every value that this NotIn requirement excludes."""
        operator = expression.get("operator")
        if operator == "NotIn":
            return frozenset(values).issuperset(self.values)
        if operator in ("Gt", "Lt"):
            return not any(requirement_matches(expression, {self.key: each}) for each in _integers(self.values))
        return operator == "DoesNotExist"

    def contradiction(self, expressions: Sequence[Expression]) -> str | None:
        """Return why no label value meets both this requirement and the ANDed `expressions`, or None if one does."""
        same_key = [expression for expression in expressions if expression.get("key") == self.key]
        conflict = [each for each in same_key if self._excludes([each])]
        if conflict or self._excludes(same_key):
            return f"{_expression_text((conflict or same_key)[0])} contradicts the policy's {self.summary}"
        return None

    def _excludes(self, expressions: Sequence[Expression]) -> bool:
        if not expressions:
            return False
        listed = [frozenset(each.get("values") or ()) for each in expressions if each.get("operator") == "In"]
        if not listed and self.operator == "NotIn":
            # The products that it excludes are no integers, so no bounds of the user are left without a value.
            return False
        if not listed and self.operator == "Gt":
            least_admitted = {self.key: str(int(self.values[0]) + 1)}
            bounds = [each for each in expressions if each.get("operator") in ("DoesNotExist", "Lt")]
            return not all(requirement_matches(each, least_admitted) for each in bounds)
        if not listed and self.operator == "Exists":
            return any(each.get("operator") == "DoesNotExist" for each in expressions)
        candidates = frozenset.intersection(*listed, *([frozenset(self.values)] if self.operator == "In" else []))
        if self.operator == "NotIn":
            candidates = candidates.difference(self.values)
        elif self.operator != "In":
            candidates = frozenset(value for value in candidates if self.admits(value))
        others = [each for each in expressions if each.get("operator") != "In"]
        if len(candidates) * len(others) > _MOST_COMPARED:
            return False
        return not any(all(requirement_matches(each, {self.key: value}) for each in others) for value in candidates)


@lru_cache(maxsize=64)
def _integers(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the integers among `values`. The result is cached, because a policy can exclude a thousand products."""
    return tuple(value for value in values if parse_integer(value) is not None)


def _expression_text(expression: Expression) -> str:
    """Return the expression as text with at most `_MOST_VALUES_SHOWN` values, because a pod may have any number."""
    values = _values_text(expression.get("values") or ())
    operator = cut(str(expression.get("operator")), LONGEST_SHOWN)
    return f"{expression.get('key')} {operator}" + (f" [{values}]" if values else "")


def _values_text(values: Sequence[object]) -> str:
    shown = ", ".join(cut(str(value), LONGEST_SHOWN) for value in values[:_MOST_VALUES_SHOWN])
    return f"{shown}, …" if len(values) > _MOST_VALUES_SHOWN else shown
