"""The selector of the namespaces that a policy is for."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated

from pydantic import Field

from webhook.kube import label_selector
from webhook.policy.exemption import LabelRequirement
from webhook.policy.fields import LabelKey, LabelText, StrictModel


class NamespaceSelector(StrictModel):
    """A LabelSelector for namespaces. All of its requirements must hold; an empty one selects every namespace."""

    match_labels: dict[LabelKey, LabelText] = Field(default={})
    """Labels with their values."""

    match_expressions: Annotated[tuple[LabelRequirement, ...], Field(strict=False)] = ()
    """Requirements on labels."""

    @property
    def keys(self) -> set[str]:
        """The labels that are asked."""
        return {each.key for each in self._requirements}

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether a namespace with `labels` is selected."""
        return label_selector.selector_matches(self._requirements, labels)

    @cached_property
    def _requirements(self) -> label_selector.LabelSelector:
        expressions = (
            label_selector.LabelRequirement(each.key, each.operator, each.values) for each in self.match_expressions
        )
        return (*label_selector.exact_selector(self.match_labels), *expressions)
