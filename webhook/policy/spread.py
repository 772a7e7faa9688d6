"""Settings of spreading: how the replicas of one owner are kept apart."""

from typing import Annotated, Literal

from pydantic import Field

from webhook.policy.fields import LabelKey, StrictModel, Weight


class Spread(StrictModel):
    """The rule that keeps the replicas of one owner apart, for pods of a type.

    docs/annotations.md states which pods are replicas of one owner.
    """

    topology: LabelKey | None = None
    """The topology domains that the replicas are spread over: an entry of `topologyAliases`, such as `host`, or a
    topology key. If absent, only pods with the annotation `spread` are spread."""

    mode: Literal["preferred", "required"] = "preferred"
    """`preferred`: the scheduler prefers domains with fewer replicas. `required`: a pod stays Pending if no domain is
    left for it."""

    form: Literal["antiAffinity", "topologySpread"] = "antiAffinity"
    """`antiAffinity`: `podAntiAffinity`; if it is required, a domain has one replica at most. `topologySpread`:
    `topologySpreadConstraints`; the numbers of replicas in two domains differ by `maxSkew` at most. With a constraint
    of its own, kube-scheduler's default spreading over hosts and zones ends for the pod."""

    max_skew: Annotated[int, Field(ge=1, le=1000)] = 1
    """The largest difference between the numbers of replicas in two domains, for `form: topologySpread`."""

    weight: Weight = 100
    """The weight, 1 to 100, for `mode: preferred` with `form: antiAffinity`."""
