"""Read the request that the pods of a gang run together, within one topology domain, and express it for the scheduler.

It applies to the pods of a gang: those with the same `gang`, else those of the replica group of their owner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.backends.backend import BatchRequest, DomainRequest, FieldPath
from webhook.backends.kai import LWS_LABEL, Kai
from webhook.backends.kueue import Kueue
from webhook.backends.references import Within
from webhook.backends.registry import queueing_backend_of
from webhook.backends.volcano import Volcano
from webhook.cluster.batch.network_topology import key_of_tier
from webhook.documents.documents import field
from webhook.documents.text import cut
from webhook.kube.names import DEFAULT_SCHEDULER, HOSTNAME_LABEL
from webhook.mutation.edits.editor import PodEditor
from webhook.mutation.edits.edits import KEPT, Edit, SetDomain, packing_hint
from webhook.mutation.edits.node_terms import LONGEST_SHOWN
from webhook.mutation.edits.scheduling_edits import GatherByAffinity
from webhook.mutation.replica_group import replica_group
from webhook.mutation.workload.annotations import Annotations
from webhook.mutation.workload.batch_scheduling import BatchScheduling
from webhook.mutation.workload.spreading import Spreading
from webhook.policy.keys import NO_TOPOLOGY, Keys
from webhook.policy.policy import Policy
from webhook.policy.spec.schedulers import settings_of
from webhook.policy.spec.workloads import WorkloadType

# As the packing hint, by default.
_WEIGHT = 100


@dataclass(frozen=True, slots=True)
class Gathering:
    """The request `within`, as the `edit` of the pod, or as fields of its top owner. `edit` is None without an edit."""

    within: Within
    edit: Edit | None
    of_owner: Sequence[tuple[FieldPath, Any]] = ()

    def on(self, pod: Mapping[str, Any]) -> Within | None:
        """Return the request, or None if the admitted `pod` has other values of the user instead of the edit."""
        return self.within if self.edit is None or self.edit.apply(PodEditor(dict(pod))) == KEPT else None


def read_gathering(
    annotations: Annotations,
    type_name: str,
    workload_type: WorkloadType,
    batch: BatchScheduling,
    spreading: Spreading | str,
    pod: Mapping[str, Any],
    policy: Policy,
    warnings: list[str],
) -> tuple[Gathering | str, Spreading | str]:
    """Return the gathering of the gang of `pod`, or the reason why there is none, and the remaining spreading."""
    within = _requested(annotations, workload_type, policy, warnings)
    if isinstance(within, str):
        return within, spreading
    key, apart_key = policy.keys.within, policy.keys.spread
    apart = _apart(within, annotations, spreading, policy)
    wins, is_refused = True, False
    if apart:
        is_apart_required = workload_type.spread.mode == "required"
        ranks = _rank(annotations, key), _rank(annotations, apart_key)
        wins, is_refused = _decide(within.is_required, is_apart_required, *ranks)
    if is_refused:
        both = f"the pods would be within one {within.key}, and apart over {apart} ({apart_key})"
        annotations.reject(Keys.spread if wins else Keys.within, f"{both}: set one of them to none")
    is_own = annotations.is_own(key)
    found = _gathering(within, batch, pod, policy, is_requested=is_own) if wins else f"spread over {apart} wins"
    if isinstance(found, str):
        by_type = annotations.text(key) is None and found != _without_gang(policy)
        if not is_refused and (is_own or by_type):
            warnings.append(f"{key if is_own else f'within of workload type {type_name}'} has no effect: {found}")
        return found, spreading
    if not apart or isinstance(spreading, str):
        return found, spreading
    if annotations.is_own(apart_key) and not is_refused:
        warnings.append(f"{apart_key} has no effect: the gang runs within one {within.key}")
    return found, f"the gang runs within one {within.key}"


def _decide(is_required: bool, is_apart_required: bool, rank: int, rank_apart: int) -> tuple[bool, bool]:
    """Return whether a request for one domain wins over a spreading, and whether the one that does not win is refused.

    `rank` is that of the request, `rank_apart` that of the spreading, see `_rank`. What is required wins over a
    preference, and otherwise the higher rank. Two of one rank, or two that are required, contradict each other: refused
    is the one of the namespace beside one of the pod, and never a default of the type.
    """
    if rank == rank_apart or (is_required and is_apart_required):
        return rank == 0 or 0 < rank_apart < rank, True
    return is_required or (rank > rank_apart and not is_apart_required), False


def _requested(
    annotations: Annotations, workload_type: WorkloadType, policy: Policy, warnings: list[str]
) -> Within | str:
    """Return the request of the annotations or the type, or the reason why there is none."""
    of_type, mode_key = workload_type.within, policy.keys.within_mode
    requested, mode = annotations.read(Keys.within), annotations.read(Keys.within_mode) or of_type.mode
    if requested == NO_TOPOLOGY:
        return "the annotation within is none"
    topology = requested or _key(of_type.topology, policy)
    if topology is not None:
        return Within(topology, mode == "required")
    if annotations.is_own(mode_key) and annotations.text(policy.keys.within) is None:
        warnings.append(f"{mode_key} has no effect without {policy.keys.within}")
    return "the type does not keep gangs together"


def within_of(pod: Mapping[str, Any], policy: Policy) -> Within | None:
    """Return the request of the admitted `pod`, without defaults, that its gang runs in one domain, or None."""
    own = field(pod, "metadata", "annotations")
    if not isinstance(own, Mapping):
        return None
    type_name = own.get(policy.keys.workload_type)
    workload_type = policy.spec.workload_types.get(type_name) if isinstance(type_name, str) else None
    if workload_type is None or (policy.keys.within not in own and workload_type.within.topology is None):
        return None
    annotations, scheduler = Annotations(own, "", {}, policy), field(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
    request = BatchRequest(annotations.read(Keys.queue), annotations.read(Keys.gang), annotations.read(Keys.gang_size))
    batch = BatchScheduling(scheduler, request, (), adds_packing_hint=False)
    found, _ = read_gathering(annotations, "", workload_type, batch, "", pod, policy, [])
    return None if isinstance(found, str) else found.on(pod)


def _apart(within: Within, annotations: Annotations, spreading: Spreading | str, policy: Policy) -> str:
    """Return the topology key over which the pods are to be apart although `within` excludes it, or "".

    A host has one value of each label, so it excludes every key.
    """
    text = annotations.text(policy.keys.spread)
    if text is not None:
        key = _key(text.strip(), policy) or ""
    else:
        key = "" if isinstance(spreading, str) else spreading.topology_key
    return key if key == within.key or (within.key == HOSTNAME_LABEL and key != NO_TOPOLOGY) else ""


def _rank(annotations: Annotations, key: str) -> int:
    """Return 2 for a value of the pod, 1 for one of its namespace, and 0 for that of its type."""
    return 2 if annotations.is_own(key) else int(annotations.text(key) is not None)


def _key(topology: str | None, policy: Policy) -> str | None:
    return None if topology is None else policy.spec.topology_aliases.get(topology, topology)


def _gathering(
    within: Within, batch: BatchScheduling, pod: Mapping[str, Any], policy: Policy, *, is_requested: bool
) -> Gathering | str:
    """Return the gathering by the means of the scheduler, or the reason why there is none."""
    backend, request = queueing_backend_of(policy.spec, batch.scheduler), batch.request
    group = replica_group(pod, policy.gang_group_label, request.gang)
    if group is None and (backend.keeps_by_affinity or request.gang_size is None):
        return _without_gang(policy)
    if group is not None and backend.keeps_by_affinity:
        if group.key == LWS_LABEL:
            return "each group of a LeaderWorkerSet is a gang of its own, and no label names the group in its template"
        hint, weight = packing_hint(policy.spec.bin_packing), None if within.is_required else _WEIGHT
        return Gathering(within, GatherByAffinity(within.key, group, hint, is_requested, weight))
    domain = _request(within, batch, pod, policy)
    found = backend.in_domain(domain)
    if found.missing:
        holder = "Kueue" if backend is Kueue else f"scheduler {cut(batch.scheduler, LONGEST_SHOWN)}"
        return f"{holder} {found.missing}"
    edit = SetDomain(tuple(found.fields), tuple(backend.domain_keys), is_requested) if found.fields else None
    if backend is Volcano:
        within = within._replace(key=key_of_tier(domain.tier))
    if backend is Kai:
        within = within._replace(topology=domain.topology)
    return Gathering(within, edit, tuple(found.of_owner))


def _without_gang(policy: Policy) -> str:
    return f"no label, owner or {policy.keys.gang} names the gang of the pod"


def _request(within: Within, batch: BatchScheduling, pod: Mapping[str, Any], policy: Policy) -> DomainRequest:
    settings, objects = settings_of(policy.spec.schedulers, batch.scheduler), policy.spec.workload_objects
    tiers = (tier for name, tier in settings.tiers.items() if _key(name, policy) == within.key)
    is_in_objects = objects.enabled and objects.mutate_templates
    topology, tier = settings.topology_name or "", next(tiers, 0)
    return DomainRequest(within.key, within.is_required, batch.request, pod, topology, tier, is_in_objects)
