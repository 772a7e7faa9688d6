"""Parsed label selectors, which are comparable, hashable and can be evaluated by column."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from webhook.kube.reader import Reader
from webhook.kube.selectors import label_matches


class LabelRequirement(NamedTuple):
    """One requirement on a label: `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return true if `labels` satisfy it."""
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


def read_label_selector(reader: Reader, value: Any, path: str) -> LabelSelector | None:
    """Return the LabelSelector `value`, None if it is null; `reader` collects the errors."""
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
    """Return `selector` with a requirement `operator` for the value of each of `keys` that `labels` contain.

    A key that `selector` already has is skipped: the API server added that requirement when it stored the pod (it
    rejects such a key in the input of users). A null selector stays null.

    Source: k8s.io/kubernetes/pkg/registry/core/pod/strategy.go, applyLabelKeysToLabelSelector
    """
    if selector is None:
        return None
    known = {requirement.key for requirement in selector}
    added = [LabelRequirement(key, operator, (labels[key],)) for key in keys if key in labels and key not in known]
    return (*selector, *added)
