"""Node templates: the shapes of nodes that an autoscaler can add."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from webhook.policy.fields import LabelKey, LabelText, Quantity, ResourceName, StrictModel, Subdomain, Values, wrong

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


def _some_amounts(amounts: dict[str, str]) -> dict[str, str]:
    if not amounts:
        raise wrong("must hold at least one resource")
    return amounts


class TemplateTaint(StrictModel):
    """A taint of a new node."""

    key: LabelKey
    """Key of the taint."""

    value: LabelText = ""
    """Value of the taint, which may be empty."""

    effect: TaintEffect
    """Effect on pods that do not tolerate the taint; `NoExecute` also evicts running pods."""


class NodeTemplate(StrictModel):
    """The shape of nodes that an autoscaler can add, even if the cluster has none of them now."""

    name: Subdomain
    """The name in messages."""

    labels: dict[LabelKey, LabelText] = Field(default={})
    """Labels of a new node. It also gets its own `kubernetes.io/hostname` and, unless they are set here,
    `kubernetes.io/os: linux` and `kubernetes.io/arch: amd64`."""

    taints: Values[TemplateTaint] = ()
    """Taints of a new node."""

    capacity: Annotated[dict[ResourceName, Quantity], AfterValidator(_some_amounts)]
    """Allocatable resources of a new node, as Quantities. The default for `pods` is 110."""
