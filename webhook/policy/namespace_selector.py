"""The selector of the namespaces that a policy is for."""

from collections.abc import Mapping
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

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether a namespace with `labels` is selected."""
        requirements = (label_selector.LabelRequirement(*each) for each in self._requirements())
        return label_selector.selector_matches(tuple(requirements), labels)

    def _requirements(self) -> list[tuple[str, str, tuple[str, ...]]]:
        exact = [(key, "In", (value,)) for key, value in self.match_labels.items()]
        return exact + [(each.key, each.operator, each.values) for each in self.match_expressions]
