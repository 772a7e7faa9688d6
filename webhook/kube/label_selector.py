"""Label selectors read once, in a form that can be compared, hashed and asked by column."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from webhook.kube.reader import Reader

_EXACT = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}


class LabelRequirement(NamedTuple):
    """One requirement on a label: `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` satisfy it; one that the API server would refuse is satisfied by none.

        Source: k8s.io/apimachinery/pkg/labels/selector.go, Requirement.Matches and NewRequirement
        """
        value = labels.get(self.key)
        if _EXACT.get(self.operator) is not bool(self.values):
            return False
        if self.operator == "In":
            return value is not None and value in self.values
        if self.operator == "NotIn":
            return value is None or value not in self.values
        return (value is not None) is (self.operator == "Exists")


# All of its requirements must hold: without any it matches everything. None stands for a selector that is not there
# (null in the API), which matches nothing.
LabelSelector = tuple[LabelRequirement, ...]


def selector_matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether `labels` satisfy `selector`.

    Source: k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector
    """
    return selector is not None and all(requirement.matches(labels) for requirement in selector)


def exact_selector(labels: Mapping[str, str]) -> LabelSelector:
    """The selector of what has all of `labels`."""
    return tuple([LabelRequirement(key, "In", (value,)) for key, value in labels.items()])


def read_label_selector(reader: Reader, value: Any, path: str) -> LabelSelector | None:
    """The LabelSelector `value`, None where it is null; what is malformed is noted with `reader`."""
    if value is None:
        return None
    selector = reader.object(value, path)
    labels = reader.text_map(selector.get("matchLabels"), f"{path}.matchLabels")
    expressions = [
        LabelRequirement(
            reader.text(expression.get("key"), f"{where}.key"),
            reader.text(expression.get("operator"), f"{where}.operator"),
            reader.texts(expression.get("values"), f"{where}.values"),
        )
        for where, expression in reader.objects(selector.get("matchExpressions"), f"{path}.matchExpressions")
    ]
    return (*exact_selector(labels), *expressions)


def with_label_keys(
    selector: LabelSelector | None, operator: str, keys: Iterable[str], labels: Mapping[str, str]
) -> LabelSelector | None:
    """`selector` and, for each of `keys` that `labels` have, the requirement `operator` on that value.

    A key that `selector` speaks of already is left alone: the API server, which refuses that in what users write, has
    added the requirement when it stored the pod. Nothing added makes a selector that is not there match something.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, applyLabelKeysToLabelSelector
    """
    if selector is None:
        return None
    known = {requirement.key for requirement in selector}
    added = [LabelRequirement(key, operator, (labels[key],)) for key in keys if key in labels and key not in known]
    return (*selector, *added)
