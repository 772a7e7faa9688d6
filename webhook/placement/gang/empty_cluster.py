"""Compute an upper bound of the pods that an empty cluster can hold: equal pods, or the pods of an object."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from webhook.backends.references import Within
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import DeadlineNearError, Expired
from webhook.kube.workloads.pod_template_path import WorkloadKind
from webhook.placement.framework.result import Placement
from webhook.placement.gang.gang_bound import Role, most_in_domains, most_together
from webhook.placement.reasons.deny_exemption import Restored
from webhook.placement.replicas.replicas import needs_devices
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.policy.policy import Policy

TemplatePods = tuple[Scheduler, PodSignature, int]
"""The pods of a template: their scheduler, the signature of one of them, and their number."""

MOST_COUNTED = 2**31
"""The number of pods of a role that stands for any number."""


def most_possible(
    scheduler: Scheduler, signature: PodSignature, base: Snapshot, expired: Expired, *, restores: bool = False
) -> int | None:
    """Return an upper bound of the pods with `signature` that fit on the emptied `base`, or None if it is not known.

    With `restores`, temporary states of nodes, such as temporary taints, are ignored.
    """
    return most_of_roles([(scheduler, signature, MOST_COUNTED)], base, expired, restores=restores)


def most_of_roles(roles: Iterable[TemplatePods], base: Snapshot, expired: Expired, *, restores: bool) -> int | None:
    """Return the bound of `most_possible` for all pods of an object; `roles` are its templates."""
    found = _roles(roles, base, expired, restores=restores)
    return None if found is None else most_together(found, expired)


def _roles(roles: Iterable[TemplatePods], base: Snapshot, expired: Expired, *, restores: bool) -> list[Role] | None:
    found = []
    for scheduler, signature, asked in roles:
        role = _role(scheduler, signature, asked, base, expired, restores=restores)
        if role is None:
            return None
        found.append(role)
    return found


def most_in_each_domain(
    roles: Iterable[TemplatePods],
    base: Snapshot,
    within: Within,
    expired: Expired,
    *,
    restores: bool = False,
) -> Mapping[tuple[str, ...], int] | None:
    """Return the bound of `most_of_roles` for each domain of `within`, by its values, or None if it is not known.

    `()` stands for the nodes without one of the labels, if there are any.
    """
    found = _roles(roles, base, expired, restores=restores)
    return None if found is None else most_in_domains(found, base, within, expired)


def _role(
    scheduler: Scheduler, signature: PodSignature, asked: int, base: Snapshot, expired: Expired, *, restores: bool
) -> Role | None:
    """Return the pods with `signature` on the emptied `base`, or None if their number there cannot be known."""
    # Gates may wait for other nodes.
    is_open = signature.info.gates or signature.info.volumes.claims or not scheduler.is_listed
    if is_open or needs_devices(signature, base):
        return None
    info, empty = signature.info, base.without_pods()
    if restores and (passed := restored_for(scheduler, signature, base)):
        info, empty = passed.info, passed.nodes
    feasible = scheduler.feasible(PodSignature(info), empty, expired)
    return Role(info._replace(requests=scheduler.profile.counted_requests(info)), asked, feasible, empty)


def within_cluster(
    placement: Placement,
    signature: PodSignature,
    asked: int,
    kind: WorkloadKind,
    policy: Policy,
    scheduler: Scheduler,
    base: Snapshot,
    expired: Expired,
) -> Placement:
    """Return `placement`, that of the first replica that does not fit.

    It is Infeasible if `asked` replicas can never fit.

    This is only evaluated for replicas that exclude each other from nodes. `signature` is that of a replica, and `kind`
    the kind of the object. Jobs are left out, because their pods can run one after the other.
    """
    keeps_off = bool(signature.info.inter_pod.terms.anti_required or signature.info.host_ports)
    if placement.verdict != "Waiting" or kind.group != "apps" or not keeps_off or policy.spec.node_templates:
        return placement
    try:
        most = most_possible(scheduler, signature, base, expired, restores=True)
    except DeadlineNearError:
        return placement
    if most is None or most >= asked:
        return placement
    never = f"No more than {most} of the {asked} replicas would fit on an empty cluster."
    return replace(placement, verdict="Infeasible", message=f"{placement.message.removesuffix('.')}. {never}")


def restored_for(scheduler: Scheduler, signature: PodSignature, base: Snapshot) -> Restored | None:
    """Return the pod and the emptied nodes of `base` without their temporary states, or None if they have none."""
    return Restored.of(signature.info.normalized_for(base), base.without_pods(), scheduler.temporary_taints)
