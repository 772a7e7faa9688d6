"""The pods of a trace as one policy admits them, with one template for equal pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placement_planner.simulation.arrival import Arrival, IsCard
from webhook.admission.api_server.plugins import check_admitted
from webhook.admission.evaluation import evaluate
from webhook.admission.injection import Denied
from webhook.admission.mutated_pod import Mutated, as_created
from webhook.admission.pod_content import PodContent
from webhook.backends.references import Within
from webhook.backends.registry import backend_of
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.documents.documents import JsonObject
from webhook.documents.field import prefixed_errors
from webhook.kube.api.admission import pod_request
from webhook.kube.deadline import never
from webhook.kube.names import DEFAULT_NAMESPACE, DEFAULT_SCHEDULER
from webhook.kube.pod.gang_key import GangKey
from webhook.kube.pod.pod_validation import check_storable
from webhook.placement.backend_schedulers import BATCH_PROFILES
from webhook.placement.gang.domains import follows_itself
from webhook.placement.gang.gang import gang_of
from webhook.placement.gang.gang_count import Gang
from webhook.placement.profiles.policy_profiles import profiles_for
from webhook.placement.profiles.profile import DEFAULT, Profile
from webhook.placement.ranking.ranking_cache import RankingCache
from webhook.placement.reasons.gang_request import grouped
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature
from webhook.placement.waiting.pending_placement import WaitingPod, running_pod
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet
from webhook.policy.spec.document import PolicySpec

# The rankings of some hundred kinds of pods on thousands of nodes.
_CACHE_BYTES = 256 * 1024 * 1024

GRACE_SECONDS = 30
"""The terminationGracePeriodSeconds of a pod that states none."""


class RankedScheduler:
    """A scheduler of `profile` that caches its rankings of nodes, and updates them for the changed rows."""

    def __init__(self, profile: Profile) -> None:
        self.scheduler = Scheduler(profile, keeps_scores=False)
        self._kept = RankingCache(profile, _CACHE_BYTES)

    def best_rows(self, signature: PodSignature, snapshot: Snapshot) -> Rows:
        """Return the rows of the feasible nodes with the highest score, in order, or none for a pod with gates."""
        if snapshot.nominated and not signature.info.gates:
            # A ranking knows of no nominated pods.
            return self.scheduler.best_rows(signature, snapshot)
        profile, kept = self.scheduler.profile, self._kept.of(signature, snapshot)
        if kept.info.gates:
            return np.empty(0, dtype=np.intp)
        if not kept.evaluates_all_by(profile, snapshot):
            return self.scheduler.best_rows(signature, snapshot)
        is_first = kept.ranking is None
        ranking = self._kept.ranking(kept, snapshot)
        if is_first:
            self._kept.put(kept, len(snapshot.nodes))
        passing = ranking.feasible(snapshot, never)
        return ranking.best_rows(snapshot, passing, never) if passing.any() else np.flatnonzero(passing)


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A pod as admitted, and the inputs to place its copies.

    `cards` is the number of cards that it requests. `gang` is the key of its gang if its scheduler starts at least
    `least` of the pods together or none, or else None. `within` is the domain in which it places all of them, or None.
    `created` is the pod as stored, with only the fields that matter. An evicted pod still runs for `grace_seconds`.
    """

    signature: PodSignature
    running: RunningPod
    scheduler: RankedScheduler
    priority: int
    cards: int
    workload_type: str
    gang: GangKey | None
    least: int
    within: Within | None
    created: JsonObject
    grace_seconds: float


@dataclass(frozen=True)
class Templates:
    """The templates of the pods of a trace under `policies`.

    `profile` places the pods; if empty, their own schedulers do.

    `configured` are the profiles of a KubeSchedulerConfiguration by schedulerName, or None for the built-in profiles.
    `priorities` by workload type apply to pods that have neither a priority nor a PriorityClass.
    """

    policies: PolicySet
    profile: str
    configured: Mapping[str, Profile] | None
    snapshot: Snapshot
    is_card: IsCard
    priorities: Mapping[str, int] = field(default_factory=dict)
    _known: dict[int, Template | str] = field(default_factory=dict)
    _schedulers: dict[int, RankedScheduler] = field(default_factory=dict)

    def of(self, arrival: Arrival) -> Template | str:
        """Return the template of the pods of `arrival`, or the message if the policy denies them.

        Raises:
            InvalidInput: the pod is malformed; the error names its place in the trace.
        """
        known = self._known.get(id(arrival.pod))
        if known is None:
            with prefixed_errors(arrival.place):
                known = self._known[id(arrival.pod)] = self._admitted(arrival.pod)
        return known

    def _admitted(self, pod: JsonObject) -> Template | str:
        namespace = pod["metadata"].get("namespace") or DEFAULT_NAMESPACE
        facts = self.snapshot.namespaces.get(namespace)
        policy = self.policies.of_namespace(namespace, facts.labels if facts else None)
        content = PodContent(
            pod_request(_with_domain(pod, policy.spec.key_domain), namespace),
            self.snapshot.namespace_annotations(namespace),
        )
        result = evaluate(content, policy, never)
        if isinstance(result, Denied):
            return result.denial.message
        mutated = result if isinstance(result, Mutated) else None
        workload_type = mutated.injection.workload_type if mutated else ""
        created = self._with_priority(as_created(mutated.pod if mutated else content.pod, namespace), workload_type)
        check_storable(created)
        check_admitted(_without_priority(created), self.snapshot)
        signature = PodSignature.of(created)
        running = running_pod(signature.info, created["metadata"])._replace(name=pod["metadata"].get("name") or "")
        grace = pod["spec"].get("terminationGracePeriodSeconds")
        priority = signature.info.preemption.normalized_for(self.snapshot).priority or 0
        waiting = WaitingPod(signature, running._replace(priority=priority))
        gang = self._gang(waiting, mutated, policy) if mutated else None
        within = gang.within if gang else None
        if within and (not within.is_required or follows_itself(signature.info, within.key, self.snapshot)):
            # Its pods are placed one by one, by their affinity.
            within = None
        if within is not None:
            signature = signature.anywhere()
        return Template(
            signature,
            waiting.running,
            self._scheduler_of(policy, signature),
            priority,
            sum(amount for name, amount in signature.info.requests if self.is_card(name)),
            workload_type,
            gang.key if gang else None,
            gang.least if gang else 1,
            within,
            created,
            GRACE_SECONDS if grace is None else float(grace),
        )

    def _with_priority(self, pod: JsonObject, workload_type: str) -> JsonObject:
        spec, priority = pod["spec"], self.priorities.get(workload_type)
        if priority is None or spec.get("priority") is not None or spec.get("priorityClassName"):
            return pod
        return {**pod, "spec": {**spec, "priority": priority}}

    def _gang(self, pod: WaitingPod, result: Mutated, policy: Policy) -> Gang | None:
        """Return the gang of `pod` if some of its pods start together or not at all, or None."""
        request, names = result.injection.gang, result.injection.references.batch
        gang = request and grouped(request, names, pod.running.namespace, self.snapshot)
        if gang is None or gang.least <= 1:
            return None
        return gang_of(gang, pod, policy.spec)

    def _scheduler_of(self, policy: Policy, signature: PodSignature) -> RankedScheduler:
        profile = self._profile_of(policy.spec, signature.info.nomination.scheduler_name)
        if id(profile) not in self._schedulers:
            self._schedulers[id(profile)] = RankedScheduler(profile)
        return self._schedulers[id(profile)]

    def _profile_of(self, spec: PolicySpec, name: str) -> Profile:
        """Return the profile that places a pod with the schedulerName `name`."""
        configured = self.configured or {}
        if self.profile:
            return configured.get(self.profile) or profiles_for(spec)[self.profile]
        of_backend = BATCH_PROFILES.get(backend_of(spec, name).profile)
        return configured.get(name) or of_backend or configured.get(DEFAULT_SCHEDULER, DEFAULT)


def _without_priority(pod: JsonObject) -> JsonObject:
    """Return `pod` without its priority, which stands for a PriorityClass that the cluster need not have."""
    return {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "priority"}}


def _with_domain(pod: JsonObject, domain: str) -> JsonObject:
    """Return `pod` with `domain` added to the keys of annotations that have no domain."""
    annotations: Mapping[str, Any] = pod["metadata"].get("annotations") or {}
    keys = {key: key if "/" in key else f"{domain}/{key}" for key in annotations}
    return {**pod, "metadata": {**pod["metadata"], "annotations": {keys[key]: annotations[key] for key in keys}}}
