"""The known facts of an object while it is admitted, and the advice on its gang: the pods that must run together."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from webhook.admission.cluster_view import ClusterView
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pod_content import PodContent
from webhook.backends.backend import BatchNames
from webhook.backends.references import GangRequest
from webhook.backends.registry import backend_of
from webhook.cluster.batch.network_topology import NetworkTopology
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject, field
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.deadline import DeadlineNearError, Expired
from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_template_path import WorkloadKind
from webhook.objects.object_gang import VOLCANO_JOB, TemplateGang, gang_of_object, queue_of
from webhook.placement.backend_schedulers import BackendSchedulers
from webhook.placement.framework.result import GangFit, Placement
from webhook.placement.gang.empty_cluster import most_of_roles
from webhook.placement.gang.object_domains import PlacedRole, as_together, with_domains, without_count
from webhook.placement.reasons.gang_request import (
    GangDemand,
    grouped,
    network_of_job,
    partial_start_of_object,
    pods_ready_timeout,
)
from webhook.placement.replicas.replicas import Replicas
from webhook.placement.scorer import PodSignature
from webhook.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class WorkloadAdmission:
    """The inputs of the admission of `content`, an object of `kind` in `namespace` that creates pods."""

    request: AdmissionRequest
    content: JsonObject
    namespace: str
    kind: WorkloadKind
    policy: Policy
    cluster: ClusterView | None
    expired: Expired


@dataclass(frozen=True, slots=True)
class Role:
    """A set of pods, and the result of the policy for them."""

    pods: PodSet
    result: Mutated
    content: PodContent
    """The first pod as it is written."""
    created: Mutated
    """The result for the first pod as the API server completes it."""
    refusal: str = ""
    """The reason why the API server refuses such a pod, or empty if it accepts it."""
    unknown: str = ""
    """The unknown parts that the API server adds. It is empty if everything is known."""
    doubts: tuple[str, ...] = ()
    """The optional plugins of the API server that would change the pods if they ran."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The placement of the object as a whole, and the warnings for its user: none if everything fits."""

    placement: Placement
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """A role, and the number of its replicas that fit. `before` is the snapshot before its first replica.

    `kept` is the signature of its pods if Kueue, KAI or Volcano keeps them in one domain, else None.
    """

    role: Role
    found: Replicas
    before: Snapshot
    kept: PodSignature | None = None


PREFIX = "placement check: "
"""The start of the advice on an object."""


def _gang_of_roles(roles: Sequence[Role], workload: WorkloadAdmission, base: Snapshot) -> GangRequest | None:
    """Return the gang of an object with the templates `roles`, or None if its pods need not run together."""
    found, scheduler = [], roles[0].result.injection.references.scheduler
    for each in roles:
        injection = each.result.injection
        asked = injection.gang and grouped(injection.gang, injection.references.batch, workload.namespace, base)
        found.append(TemplateGang(asked, injection.starts_whole, injection.within, each.pods.replicas or 0))
    content, kind = workload.content, workload.kind
    gang = gang_of_object(content, kind, found, scheduler, workload.policy, base)
    return gang._replace(ends_after=pods_ready_timeout(base)) if gang and queue_of(content, kind) else gang


def queues_of(
    role: Role, roles: Sequence[Role], workload: WorkloadAdmission, base: Snapshot
) -> tuple[Sequence[BatchNames], GangDemand | None]:
    """Return the queues and groups of the pods of `role`, and the gang of all `roles` if they start together.

    The queue of a Volcano Job is its `spec.queue`. Kueue reads the label of the object, and admits its pods together.
    """
    content, kind, references = workload.content, workload.kind, role.result.injection.references
    found = kind.group, kind.kind
    queue = queue_of(content, kind)
    if not references.batch and not queue:
        return (), None
    names = [each for each in references.batch if each.backend != "kueue" or not queue]
    if found == VOLCANO_JOB:
        network = network_of_job(content, role.result.injection.within)
        names = [_in_volcano_job(each, content, network) if each.backend == "volcano" else each for each in names]
    elif not kind.group_size and found in backend_of(workload.policy.spec, references.scheduler).gang_owners:
        names = [each._replace(starts_whole=True) for each in names]
    if queue:
        names.append(BatchNames("kueue", str(queue), "", has_owner=False, starts_whole=True))
    infos = [(each.created.signature, each.pods.replicas or 0) for each in roles]
    sets = tuple((read.info, count) for read, count in infos if isinstance(read, PodSignature) and count)
    if not sets or not any(each.starts_whole for each in names):
        return names, None
    pods = sum(count for _, count in sets)
    gang, name = _gang_of_roles(roles, workload, base), str(field(content, "metadata", "name") or "")
    return names, GangDemand(gang or GangRequest(name, pods, references.scheduler, starts_whole=True), sets)


def _in_volcano_job(names: BatchNames, content: JsonObject, network: NetworkTopology | None) -> BatchNames:
    """Return the queue, the group and the requested domain of the pods of a Volcano Job.

    The controller creates the PodGroup in the queue of the Job.
    """
    queue = field(content, "spec", "queue")
    return names._replace(queue=queue if isinstance(queue, str) else "", group="", starts_whole=True, network=network)


def with_gang(
    advice: Advice, placed: Sequence[Placed], workload: WorkloadAdmission, schedulers: BackendSchedulers, base: Snapshot
) -> Advice:
    """Return the advice on an object with a warning if pods of `placed` that run together do not fit on `base`."""
    gang = _gang_of_roles([each.role for each in placed], workload, base)
    kept = [each.kept for each in placed if each.kept is not None]
    if kept and (gang is None or gang.within is None):
        advice = replace(advice, placement=without_count(advice.placement, kept, base))
    if gang is None:
        return advice
    placement, warnings = advice.placement, advice.warnings
    signatures = [each.role.created.signature for each in placed]
    roles = [
        (None if isinstance(each, str) else (schedulers.scheduler_of(each), each), of.found)
        for each, of in zip(signatures, placed, strict=True)
    ]
    verdicts = {placement.verdict, *(each.found.placement.verdict for each in placed)}
    fit = fit_of_object(gang, roles, workload.policy, placed[0].before, workload.expired, verdicts)
    found = as_together(placement, gang, fit)
    if found.verdict == "Waiting" != placement.verdict:
        warnings = (f"{PREFIX}Waiting: {fit.text}", *warnings)
    if found.verdict == "Unknown" != placement.verdict and fit.together is not None:
        warnings = (f"{PREFIX}Unknown: {found.message}",)
    placement = found
    if fit.fit == fit.size or not fit.is_complete or placement.verdict not in ("Waiting", "Infeasible"):
        return Advice(placement, warnings)
    if fit.most is not None:
        never = f"no more than {fit.most} of the {gang.size} pods that must run together would fit on an empty cluster"
        reason = warnings[0].removeprefix(f"{PREFIX}{placement.verdict}: ")
        warnings = (f"{PREFIX}Infeasible: {never}; {reason}", *warnings[1:])
        placement = replace(placement, verdict="Infeasible")
        injections = [each.role.result.injection for each in placed]
        can_change = fit.together is not None and (fit.together.unlabelled or gang.group)
        if not can_change and any(each.gang and each.check_mode == "deny" for each in injections):
            warnings = (*warnings, f"{PREFIX}such pods are refused: placement-check is deny")
    if partial := partial_start_of_object(gang, fit):
        warnings = (*warnings, f"{PREFIX}{partial}")
    return Advice(placement, warnings)


def _most_possible(roles: Sequence[PlacedRole], groups: int, base: Snapshot, expired: Expired) -> int | None:
    """Return an upper bound of the pods of each of `groups` gangs that fit on an empty cluster, or None if unknown."""
    known = [(*placed_by, found.asked // groups) for placed_by, found in roles if placed_by is not None]
    try:
        return most_of_roles(known, base, expired, restores=True) if len(known) == len(roles) else None
    except DeadlineNearError:
        return None


def fit_of_object(
    gang: GangRequest,
    roles: Sequence[PlacedRole],
    policy: Policy,
    base: Snapshot,
    expired: Expired,
    verdicts: AbstractSet[str],
) -> GangFit:
    """Return the number of pods of a gang that fit now.

    `roles` are the placed replicas of each template, and `verdicts` their verdicts. If some replicas wait, and too few
    fit now, the result also has the number of pods that could fit on an empty cluster, unless this is enough.
    """
    placed = sum(found.placed for _, found in roles)
    is_complete = placed >= gang.size * gang.groups or all(found.is_complete for _, found in roles)
    fit = GangFit(gang.name, gang.size, min(placed // gang.groups, gang.size), 0, is_complete)
    is_open = bool(verdicts & {"Waiting", "Infeasible"}) and verdicts != {"Infeasible"}
    is_asked = is_open and is_complete and fit.fit < fit.size and not policy.spec.node_templates
    most = _most_possible(roles, gang.groups, base, expired) if is_asked else None
    fit = fit if most is None or most >= gang.size else replace(fit, most=most)
    try:
        return with_domains(fit, gang, roles, policy.spec, base, expired)
    except DeadlineNearError:
        return replace(fit, is_complete=False)
