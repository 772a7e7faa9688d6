"""Running pods whose cards have done nothing, by the metrics of their cards."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from placement_reclaim.cluster import HoldingPod, Name, full_name
from placement_reclaim.held import IDLE, Held, Remedy, Since, owner_remedy

# A card that takes so much power is in use, even if its other metrics are 0. Cards that only hold memory take less.
_BUSY_WATTS = 150
_MIB_OF_GIB = 1024


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

    cards: dict[tuple[str, str], CardUse] = field(default_factory=dict)
    memory_mib: float | None = None
    requests: float | None = None


def idle_pods(pods: Iterable[HoldingPod], uses: Mapping[Name, PodUse], now: int, seconds: int) -> Iterator[Held]:
    """Yield the rows of `pods` that have run, but not used their cards, for `seconds` before `now`, in Unix seconds.

    A pod is left out if fewer cards of it have metrics than it holds, or if it has served a request.
    """
    for pod in pods:
        running, use = pod.running, uses.get(full_name(pod.content), PodUse())
        has_run = 0 < running.started_seconds <= now - seconds and not running.is_terminating
        if pod.is_exempt or not has_run or use.requests or len(use.cards) < sum(pod.cards.values()):
            continue
        if all(each.is_idle for each in use.cards.values()):
            text, steps = owner_remedy(pod.content)
            why, remedy = ", ".join(_facts(use)), Remedy(f"owner: {text}", steps)
            yield Held.of_pod(pod, IDLE, Since(now - seconds, is_least=True), why, remedy)


def _facts(use: PodUse) -> Iterator[str]:
    yield "GPU 0 %"
    if watts := [each.watts for each in use.cards.values() if each.watts is not None]:
        yield f"at most {max(watts):.0f} W"
    if use.memory_mib:
        yield f"{use.memory_mib / _MIB_OF_GIB:.0f} GiB in use"
    if use.requests is not None:
        yield "0 requests/s"
