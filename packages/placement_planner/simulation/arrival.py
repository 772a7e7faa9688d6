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
    """An arrival: `replicas` equal pods, created at `at_seconds`, which run for `duration_seconds` (None: forever).

    `pod` is a raw API object, in which annotations without a domain are those of the webhook. Arrivals that differ only
    in their times share it. `cards` is the number of cards that one pod requests. `place` is the line of the trace, and
    `draw` distinguishes copies of a line. `is_restarted` is true if a controller creates an evicted pod again.
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
    """The way in which the pods of a trace arrive.

    With `trace`, pods arrive at the times of the trace. With `fill`, they arrive in random order, one line a second,
    and never end, until they have requested the share `load` of the cards. With `random`, lines are drawn at random, at
    random times during `span_seconds`, so often that their pods use the share `load` of the cards on average.
    `lifetime_seconds` is the mean of the random lifetimes of pods without a duration; if it is None, these pods never
    end.
    """

    mode: Mode = "trace"
    load: float = 1.0
    span_seconds: float = 86_400
    lifetime_seconds: float | None = None

    def arrivals(self, trace: Sequence[Arrival], cards: int, seed: int) -> list[Arrival]:
        """Return the arrivals of one run in the order of time. Equal seeds give equal arrivals.

        `cards` is the number of cards of the cluster.

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
    """Yield, for each of the increasing `targets`, further pods in random order, up to this number of requested cards.

    A pod that would exceed the target is kept for the next target.
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
    """Turns the created pods of a log into arrivals. Equal pods share one object.

    `is_card` returns true for a resource whose units are cards.
    """

    def __init__(self, is_card: IsCard) -> None:
        self._is_card = is_card
        self._shared: dict[bytes, JsonObject] = {}

    def arrival(self, at_seconds: float, namespace: str, pod: JsonObject, place: str) -> Arrival:
        """Return the arrival of a pod that never ends. `pod` is a raw API object with a spec.

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
    """Return the arrivals, at least one, with their times relative to the first one."""
    found = list(arrivals)
    first = min(each.at_seconds for each in found)
    return [replace(each, at_seconds=round(each.at_seconds - first, 6)) for each in found]
