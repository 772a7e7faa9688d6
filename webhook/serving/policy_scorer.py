"""Scorers that follow the policy."""

from collections.abc import Callable
from typing import Any

from webhook.byte_cache import ByteCache
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.placement.backend_schedulers import BackendSchedulers
from webhook.placement.framework.result import Placement
from webhook.placement.pod_signature import PodSignature
from webhook.policy.policy import Policy
from webhook.serving.lanes import TimedScorer


class PolicyScorer:
    """Returns the scorer of a policy, first of `policy`; another one gets its own. An instance is for one thread.

    `observe` is called with the duration of each answer in seconds.
    """

    def __init__(
        self,
        make: Callable[[Policy], BackendSchedulers],
        policy: Policy,
        observe: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._make = make
        self._observe = observe
        self._use(policy)

    @property
    def caches(self) -> tuple[ByteCache[Any, Any], ...]:
        """Return the caches of the current scorer, for metrics. Any thread may read them."""
        return self._schedulers.caches

    def of(self, policy: Policy) -> TimedScorer:
        """Return the scorer of `policy`; the same one until there is another policy."""
        if policy is not self._policy:
            self._use(policy)
        return self._scorer

    def _use(self, policy: Policy) -> None:
        self._policy, self._schedulers = policy, self._make(policy)
        self._scorer = TimedScorer(self._schedulers, self._observe)


class CurrentScorer:
    """Answers with the scorer that `current` returns."""

    def __init__(self, current: Callable[[], TimedScorer]) -> None:
        self._current = current

    def answer(self, asked: PodSignature, snapshot: Snapshot, expired: Callable[[], bool]) -> Placement:
        """Return the placement of the scorer."""
        return self._current().answer(asked, snapshot, expired)

    def feasible_rows(self, asked: PodSignature, snapshot: Snapshot, expired: Callable[[], bool]) -> Rows:
        """Return the rows of the scorer."""
        return self._current().feasible_rows(asked, snapshot, expired)
