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
    """Its value, which may be empty."""

    effect: TaintEffect
    """Whether pods that do not tolerate it are kept away, and running ones driven off (`NoExecute`)."""


class NodeTemplate(StrictModel):
    """The shape of nodes that an autoscaler can add, be there none of them now."""

    name: Subdomain
    """What messages call it."""

    labels: dict[LabelKey, LabelText] = Field(default={})
    """Labels of a new node. It has `kubernetes.io/hostname` of its own beside them, and, where they are not set here,
    `kubernetes.io/os: linux` and `kubernetes.io/arch: amd64`."""

    taints: Values[TemplateTaint] = ()
    """Taints of a new node."""

    capacity: Annotated[dict[ResourceName, Quantity], AfterValidator(_some_amounts)]
    """What pods can have of a new node (its allocatable), as Quantities. Without `pods`, 110 of them may run there."""
