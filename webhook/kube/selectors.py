"""Label selectors and node selectors."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from webhook.kube.reader import Reader

NAME_FIELD = "metadata.name"

_INT64 = range(-(2**63), 2**63)


def requirement_matches(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return true if `labels` satisfy one NodeSelectorRequirement, or LabelSelectorRequirement without Gt and Lt.

    Gt and Lt match only if label and value are integers; the other operators are those of `label_matches`.

    Source: k8s.io/apimachinery/pkg/labels/selector.go, Requirement.Matches and NewRequirement
    """
    operator = requirement.get("operator")
    values: Sequence[str] = requirement.get("values") or ()
    label = labels.get(requirement.get("key") or "")
    if operator == "Gt" or operator == "Lt":
        return len(values) == 1 and label is not None and _compares(operator, label, values[0])
    return label_matches(operator, values, label)


def label_matches(operator: Any, values: Sequence[str], label: str | None) -> bool:
    """Return true if an object with the value `label` (None if it has no such label) satisfies a requirement on it.

    `operator` is an operator of a LabelSelector. NotIn and DoesNotExist match if the label is absent. A requirement
    that the API server rejects (an unknown operator, no values) matches nothing.

    Source: k8s.io/apimachinery/pkg/labels/selector.go, Requirement.Matches and NewRequirement
    """
    if operator == "In":
        return label is not None and label in values
    if operator == "NotIn":
        return bool(values) and (label is None or label not in values)
    if operator == "Exists":
        return not values and label is not None
    if operator == "DoesNotExist":
        return not values and label is None
    return False


def _compares(operator: str, label: str, value: str) -> bool:
    left, right = parse_integer(label), parse_integer(value)
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def parse_integer(text: str) -> int | None:
    """Return `text` as an integer for Gt and Lt (decimal, 64 bits, no blanks), or None if it is not such an integer."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 64:
        return None
    number = int(text)
    return number if number in _INT64 else None


def field_requirement_matches(requirement: Mapping[str, Any], name: str) -> bool:
    """Return true if the node `name` satisfies one requirement of `matchFields`.

    Only In and NotIn with exactly one value are valid. Fields other than `metadata.name` count as empty.

    Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, nodeSelectorRequirementsAsFieldSelector
    """
    values: Sequence[str] = requirement.get("values") or ()
    if len(values) != 1:
        return False
    field = name if requirement.get("key") == NAME_FIELD else ""
    operator = requirement.get("operator")
    if operator == "In":
        return field == values[0]
    return operator == "NotIn" and field != values[0]


def term_is_empty(term: Mapping[str, Any]) -> bool:
    """Return true if `term` has no requirements; an empty term matches no node."""
    return not term.get("matchExpressions") and not term.get("matchFields")


class LabelRequirement(NamedTuple):
    """One requirement on a label: `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return true if `labels` satisfy the requirement."""
        return label_matches(self.operator, self.values, labels.get(self.key))


# All requirements must hold; an empty selector matches everything. None is a null selector, which matches nothing.
LabelSelector = tuple[LabelRequirement, ...]


def selector_matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return true if `labels` satisfy `selector`.

    Source: k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector
    """
    return selector is not None and all(
        label_matches(operator, values, labels.get(key)) for key, operator, values in selector
    )


def exact_selector(labels: Mapping[str, str]) -> LabelSelector:
    """Return the selector that requires all of `labels`."""
    return tuple([LabelRequirement(key, "In", (value,)) for key, value in labels.items()])


def read_exact_selector(reader: Reader, key: str) -> LabelSelector | None:
    """Return the selector that requires all labels in the field `key`, or None if it is null."""
    return None if reader.raw.get(key) is None else exact_selector(reader.text_map(key))


def read_label_selector(reader: Reader, key: str) -> LabelSelector | None:
    """Return the LabelSelector in the field `key`, or None if it is null."""
    if reader.raw.get(key) is None:
        return None
    selector = reader.object(key)
    labels = selector.text_map("matchLabels")
    expressions = [
        LabelRequirement(each.text("key"), each.text("operator"), each.texts("values"))
        for each in selector.objects("matchExpressions")
    ]
    return (*exact_selector(labels), *expressions)


def with_label_keys(
    selector: LabelSelector | None, operator: str, keys: Iterable[str], labels: Mapping[str, str]
) -> LabelSelector | None:
    """Return `selector` with a requirement `operator` for the value of each of `keys` that `labels` contain.

    A key that `selector` already has is skipped, because the API server added this requirement when it stored the pod.
    The API server rejects such a key in the input of users. A null selector stays null.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, applyLabelKeysToLabelSelector
    """
    if selector is None:
        return None
    known = {requirement.key for requirement in selector}
    added = [LabelRequirement(key, operator, (labels[key],)) for key in keys if key in labels and key not in known]
    return (*selector, *added)
