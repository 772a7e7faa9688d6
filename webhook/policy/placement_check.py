"""Settings of the placement check."""

from typing import Annotated, Literal

from pydantic import Field

from webhook.policy.fields import Seconds, StrictModel

CheckMode = Literal["off", "warn", "deny"]
ScorerProfile = Literal["default", "binpack", "pack-gpus"]


class PlacementCheck(StrictModel):
    """The placement check at admission: whether the scorer looks for a feasible node, and what its verdict leads to."""

    mode: CheckMode = "warn"
    """`off`: no check. `warn`: if no node can run the pod now, the user gets the scorer's message as a warning. `deny`:
    a pod that no node could ever run (verdict Infeasible, never Waiting or Unknown) is denied, unless an exemption
    applies: see docs/scorer.md."""

    floor: CheckMode = "off"
    """The least strict mode that the annotation `placement-check` can choose."""

    profile: ScorerProfile = "default"
    """The scheduler profile that is predicted: kube-scheduler's default, `binpack` (MostAllocated), or `pack-gpus`
    (least fragmentation of GPUs), for a kube-scheduler with the scheduler extender: see docs/extender.md."""

    work_budget_milliseconds: Annotated[int, Field(ge=1, le=10_000)] = 150
    """CPU time limit of the scorer for one pod, including parsing. A pod that needs more, such as one with thousands of
    terms or labels, gets the verdict Unknown; it is still patched."""

    max_view_age_seconds: Seconds = 60
    """Maximum age of the view of a live cluster, measured from the last time that it was known to be current. With an
    older view, for example while the API server is unavailable, every verdict is Unknown. In a quiet cluster the age
    is up to 36 seconds and at most 0.6 of this value: a value below 60 leads to more frequent requests to the API
    server. With the value 1 the age can be slightly higher."""

    reservation_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """How long the room of an admitted pod stays reserved while the pod is not seen in the cluster. Pods that are seen
    keep it until they are bound, deleted, gated or found unschedulable. A pod that the API server refuses after the
    webhook, for example because of a quota, is never seen."""
