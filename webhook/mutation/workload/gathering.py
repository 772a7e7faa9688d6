"""Read the request that the pods of a gang run together, within one topology domain, and express it for the scheduler.

It applies to the pods of a gang: those with the same `gang`, else those of the replica group of their owner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.backends.backend import Backend, BatchRequest, DomainRequest, FieldPath
from webhook.backends.kai import LWS_LABEL
from webhook.backends.kueue import Kueue
from webhook.backends.references import Within
from webhook.backends.registry import queueing_backend_of
from webhook.documents.documents import field
from webhook.documents.text import cut
from webhook.kube.names import DEFAULT_SCHEDULER, HOSTNAME_LABEL
from webhook.mutation.edits.editor import PodEditor
from webhook.mutation.edits.edits import KEPT, Edit, packing_hint
from webhook.mutation.edits.node_terms import LONGEST_SHOWN
from webhook.mutation.edits.scheduling_edits import GatherByAffinity, SetDomain
from webhook.mutation.replica_group import replica_group
from webhook.mutation.workload.annotations import Annotations
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


def requests_domain(annotations: Annotations, workload_type: WorkloadType, policy: Policy) -> bool:
    """Return whether the gang of a pod is to run within one domain, by its annotations or its type."""
    text = annotations.text(policy.keys.within)
    return workload_type.within.topology is not None if text is None else text.strip() != NO_TOPOLOGY


def read_gathering(
    annotations: Annotations,
    type_name: str,
    workload_type: WorkloadType,
    scheduler: str,
    request: BatchRequest,
    spreading: Spreading | str,
    pod: Mapping[str, Any],
    policy: Policy,
    warnings: list[str],
) -> tuple[Gathering | str, Spreading | str]:
    """Return the gathering of the gang of `pod`, or the reason why there is none; and the spreading that is left."""
    key, of_type = policy.keys.within, workload_type.within
    requested, mode = annotations.read(Keys.within), annotations.read(Keys.within_mode) or of_type.mode
    is_own = requested is not None and annotations.is_own(key)
    if requested == NO_TOPOLOGY:
        return "the annotation within is none", spreading
    topology = requested or _key(of_type.topology, policy)
    if topology is None:
        if annotations.is_own(policy.keys.within_mode) and annotations.text(key) is None:
            warnings.append(f"{policy.keys.within_mode} has no effect without {key}")
        return "the type does not keep gangs together", spreading
    within, is_apart_required = Within(topology, mode == "required"), workload_type.spread.mode == "required"
    apart = _apart(within, annotations, spreading, policy)
    rank, rank_apart = _rank(annotations, key), _rank(annotations, policy.keys.spread)
    wins = within.is_required or (rank > rank_apart and not is_apart_required)
    if apart and (rank == rank_apart or (within.is_required and is_apart_required)):
        wins = rank == 0 or 0 < rank_apart < rank
        both = f"the pods would be within one {topology}, and apart over {apart} ({policy.keys.spread})"
        annotations.reject(Keys.spread if wins else Keys.within, f"{both}: set one of them to none")
        is_own &= wins
    gathering = _gathering(within, scheduler, request, pod, policy, is_requested=is_own)
    if apart and not wins:
        gathering = f"the pods are spread over {apart}"
    if isinstance(gathering, str):
        if is_own or (requested is None and gathering != _without_gang(policy)):
            holder = key if is_own else f"within of workload type {type_name}"
            warnings.append(f"{holder} has no effect: {gathering}")
        return gathering, spreading
    if not apart or isinstance(spreading, str):
        return gathering, spreading
    if annotations.is_own(policy.keys.spread):
        warnings.append(f"{policy.keys.spread} has no effect: the gang runs within one {topology}")
    return gathering, f"the gang runs within one {topology}"


def within_of(pod: Mapping[str, Any], policy: Policy) -> Within | None:
    """Return the request of the admitted `pod` that its gang runs within one domain, or None if it has none.

    Defaults of its namespace are not known here.
    """
    own = field(pod, "metadata", "annotations")
    if not isinstance(own, Mapping):
        return None
    type_name = own.get(policy.keys.workload_type)
    workload_type = policy.spec.workload_types.get(type_name) if isinstance(type_name, str) else None
    if workload_type is None or (policy.keys.within not in own and workload_type.within.topology is None):
        return None
    annotations, scheduler = Annotations(own, "", {}, policy), field(pod, "spec", "schedulerName") or DEFAULT_SCHEDULER
    request = BatchRequest(annotations.read(Keys.queue), annotations.read(Keys.gang), annotations.read(Keys.gang_size))
    found, _ = read_gathering(annotations, "", workload_type, scheduler, request, "", pod, policy, [])
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
    within: Within, scheduler: str, request: BatchRequest, pod: Mapping[str, Any], policy: Policy, *, is_requested: bool
) -> Gathering | str:
    """Return the gathering by the means of the scheduler, or the reason why there is none."""
    backend = queueing_backend_of(policy.spec, scheduler)
    group = replica_group(pod, policy.gang_group_label, request.gang)
    if group is None and (backend.keeps_by_affinity or request.gang_size is None):
        return _without_gang(policy)
    if group is not None and backend.keeps_by_affinity:
        if group.key == LWS_LABEL:
            return "each group of a LeaderWorkerSet is a gang of its own, and no label names the group in its template"
        hint, weight = packing_hint(policy.spec.bin_packing), None if within.is_required else _WEIGHT
        return Gathering(within, GatherByAffinity(within.key, group, hint, is_requested, weight))
    found = backend.in_domain(_request(within, scheduler, request, pod, policy))
    if found.missing:
        return f"{_holder(backend, scheduler)} {found.missing}"
    edit = SetDomain(tuple(found.fields), tuple(backend.domain_keys), is_requested) if found.fields else None
    return Gathering(within, edit, tuple(found.of_owner))


def _without_gang(policy: Policy) -> str:
    return f"no label, owner or {policy.keys.gang} names the gang of the pod"


def _holder(backend: type[Backend], scheduler: str) -> str:
    return "Kueue" if backend is Kueue else f"scheduler {cut(scheduler, LONGEST_SHOWN)}"


def _request(
    within: Within, scheduler: str, request: BatchRequest, pod: Mapping[str, Any], policy: Policy
) -> DomainRequest:
    settings = settings_of(policy.spec.schedulers, scheduler)
    tiers = (tier for name, tier in settings.tiers.items() if _key(name, policy) == within.key)
    is_in_objects = policy.spec.workload_objects.mutate_templates and policy.spec.workload_objects.enabled
    return DomainRequest(*within, request, pod, settings.topology_name or "", next(tiers, 0), is_in_objects)
