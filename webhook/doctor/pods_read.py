"""What is kept of the pods of a cluster while its pages are read. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from webhook.admission.missed import NO_SCOPE, MissedPod, Scope, missed_pod
from webhook.admission.registered_selection import Selection, registered_selection
from webhook.doctor.check import MOST_NAMED
from webhook.doctor.cluster import Cluster, JsonObject, name_of, texts
from webhook.doctor.matching import objects_of
from webhook.doctor.sample_pods import reason_not_enforced
from webhook.doctor.source import Source
from webhook.documents import documents
from webhook.kube.names import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER
from webhook.kube.selectors import LabelSelector, selector_matches
from webhook.policy.policy_set import PolicySet


@dataclass(slots=True)
class PodsRead:
    """The schedulers of bound pods, and the first of the `missed_count` pods that were missed.

    `selection` are the pods that are sent to the webhook; None: no pod counts as missed. `scopes` are the namespaces.
    `selects_a_pod` is whether `object_selector` selects one of the pods; None without an objectSelector or a pod.
    """

    policies: PolicySet
    selection: Selection | None
    scopes: Mapping[str, Scope]
    object_selector: LabelSelector | None = None
    selects_a_pod: bool | None = None
    bound_schedulers: set[str] = field(default_factory=set)
    missed: list[MissedPod] = field(default_factory=list)
    missed_count: int = 0

    @classmethod
    def of(cls, cluster: Cluster) -> "PodsRead":
        """Return what is known before the first pod; none counts as missed unless the namespaces are known."""
        own = cluster.pods_webhook if cluster.knows(Source.NAMESPACES) else None
        scopes = {
            name_of(each): Scope(texts(each, "metadata", "annotations"), texts(each, "metadata", "labels"))
            for each in cluster.of(Source.NAMESPACES)
        }
        selection, objects = None, None
        if own is not None:
            selection, objects = registered_selection(own[1]), objects_of(own[1])
        return cls(cluster.policies, selection, scopes, objects)

    def add(self, pod: JsonObject) -> None:
        """Take note of `pod`, which has not ended."""
        scheduler = documents.field(pod, "spec", "schedulerName")
        if documents.field(pod, "spec", "nodeName") and isinstance(scheduler, str) and scheduler != DEFAULT_SCHEDULER:
            self.bound_schedulers.add(scheduler)
        if self.object_selector:
            labels = texts(pod, "metadata", "labels")
            self.selects_a_pod = bool(self.selects_a_pod) or selector_matches(self.object_selector, labels)
        if self.selection is None:
            return
        namespace = str(documents.field(pod, "metadata", "namespace") or DEFAULT_NAMESPACE)
        scope = self.scopes.get(namespace)
        policy = self.policies.of_namespace(namespace, None if scope is None else scope.labels)
        missed = missed_pod(pod, scope or NO_SCOPE, policy, self.selection)
        if missed is not None and reason_not_enforced(policy, pod, namespace) is None:
            self.missed_count += 1
            if len(self.missed) < MOST_NAMED:
                self.missed.append(missed)
