"""The mix of typical pods that the profile `pack-gpus` keeps GPUs usable for."""

from typing import Annotated

from pydantic import AfterValidator, Field

from webhook.policy.fields import LabelKey, Quantity, StrictModel, Values, wrong

_MOST = 1_000_000


def _count(value: int) -> int:
    if not 1 <= value <= _MOST:
        raise wrong(f"must be in [1, {_MOST}]")
    return value


Count = Annotated[int, AfterValidator(_count), Field(json_schema_extra={"minimum": 1, "maximum": _MOST})]


class TypicalPodSpec(StrictModel):
    """One kind of typical pod."""

    resource: LabelKey = "nvidia.com/gpu"
    """Resource of the cards, one of `accelerators`."""

    cpu: Quantity = "0"
    """CPU that such a pod requests."""

    memory: Quantity = "0"
    """Memory that such a pod requests."""

    cards: Count
    """Cards that such a pod requests."""

    weight: Count = 1
    """The frequency of such pods, relative to the others of the same resource."""


class PackGpus(StrictModel):
    """Settings of the score plugin `PackGpus`."""

    mix: Values[TypicalPodSpec] = ()
    """The typical pods. A resource without an entry has the mix of its running pods: see docs/scorer.md."""
