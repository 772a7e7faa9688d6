"""Label selectors of the policy document."""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field, model_validator

from webhook.kube import label_selector
from webhook.policy.fields import LabelKey, LabelText, StrictModel, Values, wrong


class LabelRequirement(StrictModel):
    """A requirement on one label, as in a LabelSelector."""

    key: LabelKey
    """The label."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """`In` and `NotIn` need `values`; `Exists` and `DoesNotExist` have none."""

    values: Values[LabelText] = ()
    """The values of `In` and `NotIn`."""

    @model_validator(mode="after")
    def _values_fit_the_operator(self) -> "LabelRequirement":
        if bool(self.values) != (self.operator in ("In", "NotIn")):
            raise wrong("must have values with In and NotIn, and none with Exists and DoesNotExist")
        return self


class LabelSelector(StrictModel):
    """A LabelSelector. All of its requirements must hold; an empty one selects everything."""

    match_labels: dict[LabelKey, LabelText] = Field(default={})
    """Labels with their values."""

    match_expressions: Annotated[tuple[LabelRequirement, ...], Field(strict=False)] = ()
    """Requirements on labels."""

    @property
    def keys(self) -> set[str]:
        """The labels that are asked."""
        return {each.key for each in self.requirements}

    @cached_property
    def requirements(self) -> label_selector.LabelSelector:
        """The requirements as `selector_matches` takes them."""
        expressions = (
            label_selector.LabelRequirement(each.key, each.operator, each.values) for each in self.match_expressions
        )
        return (*label_selector.exact_selector(self.match_labels), *expressions)


class NamespaceSelector(LabelSelector):
    """A LabelSelector for namespaces. All of its requirements must hold; an empty one selects every namespace."""
