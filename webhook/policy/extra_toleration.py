"""Tolerations that a policy adds for the taints of a cloud provider or of other software."""

from typing import Literal, Self

from pydantic import model_validator

from webhook.policy.fields import LabelKey, LabelText, StrictModel, TolerationSeconds, wrong


class ExtraToleration(StrictModel):
    """One toleration, with the fields of `tolerations` in a pod."""

    key: LabelKey
    """The key of the taint. Never `KEY-DOMAIN/control-plane`."""

    operator: Literal["Equal", "Exists"] = "Equal"
    """`Exists` tolerates every value of the taint."""

    value: LabelText = ""
    """The value of the taint, for `Equal`."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The effect of the taint. If absent: every effect."""

    toleration_seconds: TolerationSeconds | None = None
    """The time in seconds that the pod stays on a node with the taint, only for `NoExecute`. If absent: without limit.
    If the pod has a toleration of the same taint itself, its time counts."""

    @model_validator(mode="after")
    def _api_server_accepts_it(self) -> Self:
        if self.operator == "Exists" and self.value:
            raise wrong("value must be absent with operator Exists")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise wrong("tolerationSeconds needs effect NoExecute")
        return self
