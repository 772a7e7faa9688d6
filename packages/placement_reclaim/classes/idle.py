"""Running pods whose cards have done nothing, by the metrics of their cards."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from placement_reclaim.cluster import HoldingPod
from placement_reclaim.held import IDLE, Held, Since, owner_remedy

# A card that takes so much power is in use, even if its other metrics are 0. Cards that only hold memory take less.
_BUSY_WATTS = 150
_MIB_OF_GIB = 1024
Device = tuple[str, str]
"""The UUID of a card and, for a MIG device, its instance; both are empty for a metric of pods."""


class CardUse(NamedTuple):
    """The highest values of a card in the time: its activity, or NaN if it is not known for all of it, and its power.

    `watts` is None if it is not known or that of a larger card, as for a MIG device.
    """

    activity: float
    watts: float | None = None

    @property
    def is_idle(self) -> bool:
        """Return whether the card has done nothing."""
        return self.activity == 0 and (self.watts is None or self.watts < _BUSY_WATTS)


@dataclass(slots=True)
class PodUse:
    """The use of the cards of a pod, by device.

    `memory_mib` is the memory that is in use, and `requests` are the requests per second that it has served; they are
    None if they are not known.
    """

    cards: dict[Device, CardUse] = field(default_factory=dict)
    memory_mib: float | None = None
    requests: float | None = None


def idle(pod: HoldingPod, use: PodUse | None, now: int, seconds: int) -> Held | None:
    """Return the row of a pod that has run, but not used its cards, for `seconds` before `now`, or None for another.

    A pod is in use if fewer cards of it have metrics than it holds, or if it has served a request.
    """
    has_run = 0 < pod.running.started_seconds <= now - seconds and not pod.running.is_terminating
    if use is None or use.requests or not has_run or len(use.cards) < sum(pod.cards.values()):
        return None
    if not all(each.is_idle for each in use.cards.values()):
        return None
    remedy = owner_remedy(pod.content)
    why, remedy = ", ".join(_facts(use)), remedy._replace(text=f"owner: {remedy.text}")
    return Held.of_pod(pod, IDLE, Since(now - seconds, is_least=True), why, remedy)


def _facts(use: PodUse) -> Iterator[str]:
    yield "GPU 0 %"
    if watts := [each.watts for each in use.cards.values() if each.watts is not None]:
        yield f"at most {max(watts):.0f} W"
    if use.memory_mib:
        yield f"{use.memory_mib / _MIB_OF_GIB:.0f} GiB in use"
    if use.requests is not None:
        yield "0 requests/s"
