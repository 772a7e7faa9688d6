"""Scorers that follow the policy."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from webhook.cluster.snapshot import Rows, Snapshot
from webhook.placement.backend_schedulers import BackendSchedulers
from webhook.placement.framework.result import Placement
from webhook.placement.scorer import PodSignature
from webhook.policy.policy import Policy
from webhook.runtime.byte_cache import ByteCache

_MOST_SCORERS = 4
# The fields of the policy that predictions depend on, beside the profile.
_READ = {"accelerators", "allowed_schedulers", "node_templates", "pack_gpus", "schedulers", "temporary_taints"}


@dataclass(frozen=True, slots=True)
class TimedScorer:
    """Schedulers that report the duration of each prediction in seconds to `observe`."""

    scorer: BackendSchedulers
    observe: Callable[[float], None]

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Callable[[], bool]) -> Placement:
        """Return the placement of the schedulers."""
        began_seconds = time.perf_counter()
        placement = self.scorer.answer(asked, snapshot, expired)
        self.observe(time.perf_counter() - began_seconds)
        return placement

    def feasible_rows(self, asked: PodSignature, snapshot: Snapshot, expired: Callable[[], bool]) -> Rows:
        """Return the feasible rows of the schedulers. Their duration is not reported."""
        return self.scorer.feasible_rows(asked, snapshot, expired)


class PolicyScorer:
    """Returns the scorer of a policy. The scorer of `policy` is created at once. Not thread-safe.

    Policies with the same settings for predictions share a scorer, because its caches are large. A few scorers are
    kept.

    `observe` is called with the duration of each prediction in seconds.
    """

    def __init__(
        self,
        make: Callable[[Policy], BackendSchedulers],
        policy: Policy,
        observe: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._make = make
        self._observe = observe
        self._kept: dict[bytes, TimedScorer] = {}
        self._use(policy)

    @property
    def caches(self) -> tuple[ByteCache[Any, Any], ...]:
        """Return the caches of the scorers, for metrics. Any thread may read them."""
        return tuple(cache for each in tuple(self._kept.values()) for cache in each.scorer.caches)

    def of(self, policy: Policy) -> TimedScorer:
        """Return the scorer of `policy`. For the same policy, it is the same object."""
        if policy is not self._policy:
            self._use(policy)
        return self._scorer

    def _use(self, policy: Policy) -> None:
        key = _settings(policy)
        scorer = self._kept.pop(key, None) or TimedScorer(self._make(policy), self._observe)
        # The scorer that was used last comes last.
        self._kept = dict([*self._kept.items(), (key, scorer)][-_MOST_SCORERS:])
        self._policy, self._scorer = policy, scorer


@lru_cache(maxsize=64)
def _settings(policy: Policy) -> bytes:
    spec = policy.spec
    settings = spec.model_dump(mode="json", include=_READ)
    return orjson.dumps([settings, spec.placement_check.profile], option=orjson.OPT_SORT_KEYS)


class ScorerAlone:
    """Predicts without suggestions, with the schedulers that `current` returns."""

    def __init__(self, current: Callable[[], BackendSchedulers]) -> None:
        self._current = current

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Callable[[], bool]) -> Placement:
        """Return the placement of the schedulers."""
        return self._current().answer_alone(asked, snapshot, expired)

    def feasible_rows(self, asked: PodSignature, snapshot: Snapshot, expired: Callable[[], bool]) -> Rows:
        """Return the feasible rows of the schedulers."""
        return self._current().feasible_rows(asked, snapshot, expired)
