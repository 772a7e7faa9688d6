"""What is kept of the pods of a cluster while its pages are read. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.doctor.enforcement import reason_not_enforced
from webhook.kube import documents
from webhook.kube.wellknown import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER
from webhook.missed import NO_SCOPE, MissedPod, Scope, missed_pod
from webhook.policy.policy_set import PolicySet
from webhook.registered_selection import Selection

MOST_NAMED = 10


@dataclass(slots=True)
class PodsRead:
    """The schedulers of bound pods, and the first of the `missed_count` pods that were missed.

    `selection` are the pods that are sent to the webhook; None: no pod counts as missed. `scopes` are the namespaces.
    """

    policies: PolicySet
    selection: Selection | None
    scopes: Mapping[str, Scope]
    bound_schedulers: set[str] = field(default_factory=set)
    missed: list[MissedPod] = field(default_factory=list)
    missed_count: int = 0

    def add(self, pod: dict[str, Any]) -> None:
        """Take note of `pod`, which has not ended."""
        scheduler = documents.field(pod, "spec", "schedulerName")
        if documents.field(pod, "spec", "nodeName") and isinstance(scheduler, str) and scheduler != DEFAULT_SCHEDULER:
            self.bound_schedulers.add(scheduler)
        namespace = str(documents.field(pod, "metadata", "namespace") or DEFAULT_NAMESPACE)
        if self.selection is None:
            return
        scope = self.scopes.get(namespace)
        policy = self.policies.of_namespace(namespace, None if scope is None else scope.labels)
        missed = missed_pod(pod, scope or NO_SCOPE, policy, self.selection)
        if missed is not None and reason_not_enforced(policy, pod, namespace) is None:
            self.missed_count += 1
            if len(self.missed) < MOST_NAMED:
                self.missed.append(missed)
