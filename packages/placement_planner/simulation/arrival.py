"""The pods of a trace, and the ways in which they arrive."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import orjson

from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput, invalid, prefixed_errors, required
from webhook.placement.scorer import PodSignature

IsCard = Callable[[str], bool]
"""Returns true for a resource whose units are cards."""

T = TypeVar("T")

Mode = Literal["trace", "fill", "random"]

_METADATA = ("labels", "annotations", "ownerReferences", "namespace")


@dataclass(frozen=True, slots=True)
class Arrival:
    """`replicas` equal pods that are created at `at_seconds` and run for `duration_seconds`, or forever if it is None.

    `pod` is a raw API object. Its annotations without a domain are those of the webhook. Arrivals share it if they
    differ only in their times. `cards` is what one pod requests of them. `place` is the line of the trace, and `draw`
    tells the copies of a line apart. `is_restarted` is true if a controller creates a pod again that is evicted.
    """

    at_seconds: float
    duration_seconds: float | None
    pod: JsonObject
    cards: int
    place: str
    replicas: int = 1
    draw: int = 0
    is_restarted: bool = True


@dataclass(frozen=True, slots=True)
class Load:
    """The arrival of the pods of a trace.

    `trace`: at the times of the trace. `fill`: in random order, one line a second, without an end, until they have
    requested `load` of the cards. `random`: lines are drawn at random for `span_seconds`, at random times, so often
    that their pods use `load` of the cards on average. `lifetime_seconds` is the mean of the random lifetimes of pods
    without a duration. None means that these never end.
    """

    mode: Mode = "trace"
    load: float = 1.0
    span_seconds: float = 86_400
    lifetime_seconds: float | None = None

    def arrivals(self, trace: Sequence[Arrival], cards: int, seed: int) -> list[Arrival]:
        """Return the arrivals of one run in the order of time; equal seeds give equal ones. `cards` are all there are.

        Raises:
            InvalidInput: a pod lacks the lifetime that this way of arrival needs.
        """
        if self.mode == "fill":
            filled = next(filling(trace, lambda each: each.cards * each.replicas, seed, [round(self.load * cards)]))
            return [replace(each, at_seconds=at, duration_seconds=None) for at, each in enumerate(filled)]
        dice = random.Random(seed)  # noqa: S311 - a simulation
        if self.mode == "random":
            return list(self._drawn(trace, cards, dice))
        ordered = sorted(trace, key=lambda each: each.at_seconds)
        return [self._with_lifetime(each, dice) for each in ordered]

    def _drawn(self, trace: Sequence[Arrival], cards: int, dice: random.Random) -> Iterator[Arrival]:
        used = 0.0
        for each in trace:
            mean = self.lifetime_seconds if each.duration_seconds is None else each.duration_seconds
            if mean is None:
                raise InvalidInput([required(each.place, "has no duration; --arrivals random needs --lifetime")])
            used += mean * each.cards * each.replicas
        if not used or not cards:
            detail = "no pod of the trace uses a card of the cluster, which --arrivals random needs"
            raise InvalidInput([invalid("--trace", len(trace), detail)])
        lines_per_second = self.load * cards * len(trace) / used
        at, number = dice.expovariate(lines_per_second), 0
        while at < self.span_seconds:
            number += 1
            drawn = trace[dice.randrange(len(trace))]
            yield self._with_lifetime(replace(drawn, at_seconds=at, draw=number), dice)
            at += dice.expovariate(lines_per_second)

    def _with_lifetime(self, arrival: Arrival, dice: random.Random) -> Arrival:
        if arrival.duration_seconds is not None or self.lifetime_seconds is None:
            return arrival
        return replace(arrival, duration_seconds=dice.expovariate(1 / self.lifetime_seconds))


def filling(pods: Sequence[T], cards_of: Callable[[T], int], seed: int, targets: Sequence[int]) -> Iterator[list[T]]:
    """Yield, for each of the increasing `targets`, the next pods in random order that bring the requests there.

    A pod that requests more cards than are left to request is left for the next target.
    """
    left = list(pods)
    random.Random(seed).shuffle(left)  # noqa: S311 - a simulation
    requested = 0
    for target in targets:
        arriving, others = [], []
        for pod in left:
            if requested + cards_of(pod) <= target:
                requested += cards_of(pod)
                arriving.append(pod)
            else:
                others.append(pod)
        left = others
        yield arriving


class CreatedPods:
    """Makes arrivals of the pods that were created; equal pods share one object. `is_card` knows the resources."""

    def __init__(self, is_card: IsCard) -> None:
        self._is_card = is_card
        self._shared: dict[bytes, JsonObject] = {}

    def arrival(self, at_seconds: float, namespace: str, pod: JsonObject, place: str) -> Arrival:
        """Return the arrival of a pod, a raw API object that has a spec; it never ends.

        Raises:
            InvalidInput: the pod is malformed.
        """
        kept = {key: value for key, value in (pod.get("metadata") or {}).items() if key in _METADATA}
        content = {"metadata": {"name": "trace", **kept, "namespace": namespace}, "spec": pod["spec"]}
        content = self._shared.setdefault(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), content)
        with prefixed_errors(place):
            requests = PodSignature.of(content).info.requests
        cards = sum(amount for name, amount in requests if self._is_card(name))
        owners = content["metadata"].get("ownerReferences") or ()
        is_restarted = any(isinstance(each, dict) and each.get("controller") is True for each in owners)
        return Arrival(at_seconds, None, content, cards, place, is_restarted=is_restarted)


def from_first(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Return the arrivals, at least one, with times from the first one on."""
    found = list(arrivals)
    first = min(each.at_seconds for each in found)
    return [replace(each, at_seconds=round(each.at_seconds - first, 6)) for each in found]
