"""Log the schedulers that policies name and that do not run, since nothing else in the cluster reports it."""

from collections.abc import Callable

import structlog

from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.snapshot import Snapshot
from webhook.placement.reasons.cluster_warnings import absent_schedulers_of
from webhook.policy.policy_set import PolicySet

_REMEDY = "install the scheduler, or name one that runs in schedulerName of the workload type"


class MissingSchedulers:
    """Looks for the schedulers of `policies()` at the start, after `forget`, and when the evidence changes."""

    def __init__(self, policies: Callable[[], PolicySet]) -> None:
        self._policies = policies
        self._logged: frozenset[str] = frozenset()
        self._log = structlog.get_logger()
        self.judged: SchedulerEvidence | None = None

    def forget(self) -> None:
        """Look again at the next snapshot, because the policies have changed."""
        self.judged = None

    def look(self, snapshot: Snapshot) -> None:
        """Log each scheduler that is missing in `snapshot` and was not missing at the last look."""
        self.judged = snapshot.scheduler_evidence
        if self.judged is None:
            return
        policies = self._policies()
        found = {
            warning: policy.identity
            for policy in (policies.default, *policies.others)
            for warning in absent_schedulers_of(policy.spec, snapshot)
        }
        for warning, policy in found.items():
            if warning not in self._logged:
                self._log.error("a scheduler of the policy is missing", policy=policy, error=warning, remedy=_REMEDY)
        self._logged = frozenset(found)
