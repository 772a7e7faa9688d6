"""The placement of all replicas of a workload object, and the messages about it for the user."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

from webhook.admission.annotation_suggestions import as_annotation_changes
from webhook.admission.api_server.plugins import completed
from webhook.admission.cluster_view import scheduler_for
from webhook.admission.mutated_pod import as_created
from webhook.cluster.planned_objects import with_planned_claims
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput
from webhook.kube.api.json_patch import patched
from webhook.kube.deadline import DeadlineNearError, Expired, in_time
from webhook.kube.workloads.pod_set import PodSet
from webhook.objects.completed_role import unknown_reason
from webhook.objects.gangs import PREFIX, Advice, Placed, Role, WorkloadAdmission, with_gang
from webhook.objects.own_pods import (
    CANNOT_START,
    KEEPS_ALL,
    WithoutOwnPods,
    keeps_all_pods,
    without_own_pods,
    without_own_waiting,
)
from webhook.objects.replica_counts import counts, fitting, next_replica, suspended
from webhook.placement.backend_schedulers import BackendSchedulers
from webhook.placement.gang.empty_cluster import within_cluster
from webhook.placement.gang.exclusive_domains import (
    LEADER_HAS_NO_NODE,
    Template,
    placement_of_followers,
)
from webhook.placement.gang.group_suggestions import Group
from webhook.placement.gang.object_domains import anywhere
from webhook.placement.reasons.gang_request import group_named
from webhook.placement.reasons.pod_group_start import as_grouped
from webhook.placement.replicas.replica_prediction import predict_replicas, with_replicas
from webhook.placement.replicas.replicas import MOST_REPLICAS, Replicas
from webhook.placement.scheduler import Placement, PodSignature
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import predict_placement

_Waiting: TypeAlias = AssumedPods[Any]


def advise(roles: Sequence[Role], workload: WorkloadAdmission) -> Advice | None:
    """Return the advice on the pods of `roles`, placed one role after the other, or None if no check is requested.

    An update replaces the running pods of the object, so its pods are evaluated without them. If a rolling update keeps
    all running pods at first, its first pod is also evaluated together with them. Waiting pods of others are placed
    first. Waiting pods of the object itself only count for this first pod.
    """
    checked = [role for role in roles if role.result.injection.check_mode != "off" and role.pods.replicas]
    if not checked:
        return None
    cluster, policy, expired = workload.cluster, workload.policy, workload.expired
    if cluster is None or cluster.scorer is None:
        return Advice(Placement.unknown("no view of the cluster"))
    if reason := cluster.stale_reason or unknown_reason(checked):
        return Advice(Placement.unknown(reason))
    if not cluster.snapshot.nodes:
        return Advice(Placement.unknown("the view of the cluster has no node"))
    try:
        # The replicas are no pods of the cluster: users decide how many labels they have.
        waiting: _Waiting = (AssumedPods(cluster.snapshot) if cluster.assumed is None else cluster.assumed).isolated()
        view, others = WithoutOwnPods(waiting.base), waiting
        if workload.request.operation == "UPDATE":
            own = workload.namespace, workload.content, workload.kind
            view, others = without_own_pods(waiting.base, *own, expired), without_own_waiting(waiting, *own)
        # The scheduler of the cluster view keeps answers for the pods of the real snapshot.
        schedulers = scheduler_for(policy, cache_bytes=0, profiles=cluster.profiles)
        namespace = workload.request.namespace
        before, can_grow = others.on(view.snapshot), bool(policy.spec.node_templates)
        placed = _placed(checked, namespace, schedulers, before, expired, can_grow=can_grow)
        has_own = view.replaced > 0 or len(others) < len(waiting)
        is_surging = has_own and keeps_all_pods(workload.content, workload.kind)
        beside = _beside_running(checked[0], namespace, schedulers, waiting, expired) if is_surging else None
    except DeadlineNearError as error:
        return Advice(Placement.unknown(str(error)))
    except InvalidInput as error:
        return Advice(Placement.unknown(f"the scorer cannot read the pod: {error.errors[0]}"))
    advice = with_gang(_advice(placed, view, workload, schedulers), placed, workload, schedulers, view.snapshot)
    for each in placed:
        if each.role.result.injection.references.batch:
            advice = _as_grouped(advice, each.role, view.snapshot)
    return _blocked(advice, beside) if beside and beside.verdict == "Waiting" else advice


def _as_grouped(advice: Advice, role: Role, base: Snapshot) -> Advice:
    """Return the advice, adjusted to the PodGroup that the pods of a role name."""
    placement, signature = advice.placement, role.result.signature
    if isinstance(signature, str):
        return advice
    info = signature.info
    group = group_named(role.result.injection.references.batch, info.inter_pod.namespace, base)
    if group is None:
        return advice
    found = as_grouped(placement, group, info, placement.gang.size if placement.gang else 0, base)
    if found.verdict != "Infeasible" or placement.verdict == "Infeasible":
        return replace(advice, placement=found)
    return Advice(found, (f"{PREFIX}Infeasible: {found.message}", *advice.warnings[1:]))


def _beside_running(
    role: Role, namespace: str, schedulers: BackendSchedulers, waiting: _Waiting, expired: Expired
) -> Placement:
    """Return the placement of the first pod of `role` while the running and waiting pods of the object are kept."""
    pod = PodSignature.of(next(_template(role, namespace, expired).pods_on(waiting.base)))
    return predict_placement(schedulers, pod, waiting, None, expired)


def _blocked(advice: Advice, beside: Placement) -> Advice:
    """Return the advice on a rolling update whose first pod must wait while the old pods run.

    `beside` is the placement of this pod. If all pods fit once the old pods are gone, the advice only reports `beside`.
    """
    remedy = f"{PREFIX}{KEEPS_ALL}"
    if advice.placement.verdict != "Feasible":
        return replace(advice, warnings=(*advice.warnings, remedy))
    text = f"{CANNOT_START}{beside.message}"
    summary = replace(beside, node=None, message=text, scores={})
    return Advice(summary, (f"{PREFIX}{beside.verdict}: {text}", remedy))


def _placed(
    roles: Sequence[Role],
    namespace: str,
    scheduler: BackendSchedulers,
    waiting: _Waiting,
    expired: Expired,
    *,
    can_grow: bool,
) -> list[Placed]:
    left = MOST_REPLICAS
    placed: list[Placed] = []
    for role in roles:
        template = _template(role, namespace, expired)
        pods = template.pods_on(waiting.base)
        waiting = waiting.on(_with_claims(waiting.base, role.pods, left, expired))
        asked = role.pods.replicas or 0
        first = next(pods, None)
        if first is None:
            unknown = Placement.unknown(LEADER_HAS_NO_NODE)
            found = Replicas(asked, 0, {}, unknown, unknown, is_complete=True, snapshot=waiting.base)
            placed.append(Placed(role, found, waiting.base))
            continue
        own, every = role.created.signature, chain((first,), pods)
        kept = own if isinstance(own, PodSignature) and (own.info.topologies or own.info.network) else None
        read = anywhere if kept else PodSignature.of
        among = predict_replicas(scheduler, waiting, every, asked, limit=left, expired=expired, read=read)
        found = among.found
        if role.pods.follows and placed:
            leaders = _template(placed[-1].role, namespace, expired)
            chosen, before = scheduler.scheduler_of(PodSignature.of(first)), placed[-1].before
            placement = found.placement
            last = placement_of_followers(placement, leaders, template, chosen, before, expired, can_grow=can_grow)
            if last is not placement:
                found = replace(found, stopped=last, is_complete=last.verdict != "Unknown")
        placed.append(Placed(role, found, among.before, kept))
        waiting, left = among.assumed, max(1, left - among.found.placed)
    return placed


def _with_claims(snapshot: Snapshot, pods: PodSet, most: int, expired: Expired) -> Snapshot:
    """Return `snapshot` with the claims that are created with `pods`, for at most `most` pods."""
    if not pods.claims:
        return snapshot
    indices = in_time(range(min(pods.replicas or 0, most)), expired)
    claims = (claim for index in indices for claim in pods.claims_at(index))
    return with_planned_claims(snapshot, in_time(claims, expired))


def _template(role: Role, namespace: str, expired: Expired) -> Template:
    def created(pod: JsonObject, snapshot: Snapshot) -> JsonObject:
        of_server = completed(as_created(pod, namespace), snapshot, expired).pod
        return patched(of_server, role.created.injection.operations)

    return Template(role.pods, created)


def _as_annotation_changes(
    worst: Placed, placed: Sequence[Placed], workload: WorkloadAdmission, schedulers: BackendSchedulers
) -> Placement:
    """Return the placement of the replica that does not fit, with suggested annotations that make all replicas fit."""
    placement, waiting, is_exclusive = (
        worst.found.placement,
        worst.role.created.waiting,
        bool(worst.role.pods.exclusive),
    )
    if not placement.suggestions:
        return placement
    if is_exclusive or waiting is None or any(each is not worst and each.found.stopped is not None for each in placed):
        return replace(placement, suggestions=(), remedies=())
    snapshot = worst.before
    for later in placed[[each is worst for each in placed].index(True) + 1 :]:
        snapshot = with_replicas(snapshot, later.found)
    own_nodes = {node for each in placed if each is not worst for node in each.found.nodes}
    content = worst.role.created.content
    group = Group(schedulers.scheduler_of, waiting[1], worst.found.asked, snapshot, own_nodes, workload.expired)
    try:
        return as_annotation_changes(
            content, workload.policy, group.verified(placement), snapshot, group.place, workload.expired
        )
    except DeadlineNearError:
        return placement


def _advice(
    placed: Sequence[Placed], view: WithoutOwnPods, workload: WorkloadAdmission, schedulers: BackendSchedulers
) -> Advice:
    policy, expired = workload.policy, workload.expired
    failing = [each for each in placed if each.found.stopped is not None]
    if not failing:
        return fitting(placed, MOST_REPLICAS, reports_always=policy.spec.workload_objects.report == "always")
    worst = min(failing, key=lambda each: _SEVERITY.index(each.found.placement.verdict))
    placement = _as_annotation_changes(worst, placed, workload, schedulers)
    signature = worst.role.created.signature
    is_refused = placement.verdict == "Infeasible" and worst.role.result.injection.check_mode == "deny"
    if isinstance(signature, PodSignature):
        asked, scheduler, base = worst.found.asked, schedulers.scheduler_of(signature), view.snapshot
        placement = within_cluster(placement, signature, asked, workload.kind, policy, scheduler, base, expired)
    text = f"{counts(placed)}; {next_replica(worst, len(placed))}{placement.message}"
    if worst.found.asked == 1 and len(placed) == 1:
        text = f"{suspended(placed)}{placement.message}"
    summary = replace(placement, node=None, message=text, scores={})
    has_counted = any(each.found.placed for each in placed)
    if placement.verdict == "Unknown" and not has_counted and not placement.deny_exemption:
        return Advice(summary)
    warnings = [f"{PREFIX}{placement.verdict}: {text}"]
    if is_refused:
        if placement.deny_exemption:
            warnings.append(f"{PREFIX}such pods are not refused: {placement.deny_exemption}")
        elif not worst.found.placed:
            warnings.append(f"{PREFIX}such pods are refused: placement-check is deny")
    warnings += [f"{PREFIX}suggestion: {each}" for each in placement.suggestions[:1]]
    if view.replaced:
        noun = "running pod of the object counts" if view.replaced == 1 else "running pods of the object count"
        warnings.append(f"{PREFIX}the {view.replaced} {noun} as gone, as after a rolling update")
    return Advice(summary, tuple(warnings))


_SEVERITY = ("Infeasible", "Waiting", "Unknown", "Feasible")
