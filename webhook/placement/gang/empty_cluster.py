"""Compute an upper bound of the pods that an empty cluster can hold: equal pods, or the pods of an object."""

from collections.abc import Iterable, Mapping

from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import Expired
from webhook.placement.gang.gang_bound import Role, most_in_domains, most_together
from webhook.placement.reasons.deny_exemption import Restored
from webhook.placement.replicas.replicas import needs_devices
from webhook.placement.scheduler import PodSignature, Scheduler

_MOST_COUNTED = 2**31


def most_possible(
    scheduler: Scheduler, signature: PodSignature, base: Snapshot, expired: Expired, *, restores: bool = False
) -> int | None:
    """Return an upper bound of the pods with `signature` that fit on the emptied `base`, or None if it is not known.

    With `restores`, temporary states of nodes, such as temporary taints, are ignored.

    Raises:
        DeadlineNearError: `expired()` returned true.
    """
    return most_of_roles([(scheduler, signature, _MOST_COUNTED)], base, expired, restores=restores)


def most_of_roles(
    roles: Iterable[tuple[Scheduler, PodSignature, int]], base: Snapshot, expired: Expired, *, restores: bool
) -> int | None:
    """Return the bound of `most_possible` for all pods of an object; `roles` are its templates.

    Raises:
        DeadlineNearError: `expired()` returned true.
    """
    found = []
    for scheduler, signature, asked in roles:
        role = _role(scheduler, signature, asked, base, expired, restores=restores)
        if role is None:
            return None
        found.append(role)
    return most_together(found, expired)


def most_in_each_domain(
    scheduler: Scheduler,
    signature: PodSignature,
    base: Snapshot,
    topology_key: str,
    expired: Expired,
    *,
    restores: bool = False,
) -> Mapping[str, int] | None:
    """Return the bound of `most_possible` for each domain of `topology_key`, by its value, or None if it is not known.

    Raises:
        DeadlineNearError: `expired()` returned true.
    """
    role = _role(scheduler, signature, _MOST_COUNTED, base, expired, restores=restores)
    return None if role is None else most_in_domains(role.info, role.snapshot, role.nodes, topology_key, expired)


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
    return Role(info, asked, scheduler.feasible(PodSignature(info), empty, expired), empty)


def restored_for(scheduler: Scheduler, signature: PodSignature, base: Snapshot) -> Restored | None:
    """Return the pod and the emptied nodes of `base` without their temporary states, or None if they have none."""
    return Restored.of(signature.info.normalized_for(base), base.without_pods(), scheduler.temporary_taints)
