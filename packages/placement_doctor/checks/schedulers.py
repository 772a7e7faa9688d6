"""The schedulers, backends, PriorityClasses and queues that the policies name exist."""

from collections.abc import Iterator
from datetime import timedelta

from placement_doctor import commands
from placement_doctor.check import Finding, check, error, info, warning
from placement_doctor.cluster import Cluster, name_of
from placement_doctor.nodes import meant
from placement_doctor.source import Source
from webhook.backends.kueue import Kueue
from webhook.backends.registry import api_groups_of
from webhook.cli.inputs.installed_servers import args_of, containers_of
from webhook.cluster.objects.lease import is_expired, last_renewal, time_of
from webhook.documents.documents import JsonObject, field
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.policy.policy import Policy

_LEASE = "kube-system/kube-scheduler"
"""The Lease of kube-scheduler, which has the profile default-scheduler."""


def _of_types(policy: Policy) -> dict[str, str | None]:
    """Return the schedulers of the workload types of a policy, by their fields."""
    types = policy.spec.workload_types.items()
    return {f"workloadTypes.{name}.schedulerName": each.scheduler_name for name, each in types}


@check(
    "install the scheduler, or change `schedulerName` and `allowedSchedulers`",
    needs={Source.POLICY, Source.GROUPS, Source.LEASES, Source.PODS, Source.DEPLOYMENTS},
)
def schedulers(cluster: Cluster) -> Iterator[Finding]:
    """Nothing shows that a scheduler runs that the policy names, or kube-scheduler no longer renews its Lease."""
    if cluster.evidence is None or not cluster.knows(Source.PODS):
        return
    yield from _stopped(cluster, DEFAULT_SCHEDULER)
    reported = {"", DEFAULT_SCHEDULER}
    for policy in cluster.policies:
        for path, name in policy.spec.named_schedulers().items():
            if name in reported:
                continue
            reported.add(name)
            groups = api_groups_of(policy.spec.schedulers, name)
            if cluster.evidence.shows(name, groups) or name in cluster.bound_schedulers or _is_deployed(cluster, name):
                yield from _stopped(cluster, name)
                continue
            signs = f"no API group {' or '.join(groups)}, Lease" if groups else "no Lease"
            signs = f"{signs}, Deployment or running pod names it"
            what = f"{name}: no sign that it runs ({signs}), so its pods stay Pending"
            hint = "" if groups else "; a new profile of kube-scheduler has its first sign with its first pod"
            remedy = f"install it, or name a scheduler that runs{hint}"
            # Pods get that of a type without asking for it.
            severity = error if path.startswith("workloadTypes.") else warning
            yield severity(f"{cluster.place_of(policy)}: spec.{path}", what, remedy)


def _stopped(cluster: Cluster, scheduler: str) -> Iterator[Finding]:
    """Yield a finding if a scheduler has Leases and none is renewed. Without leader election, it has no Leases."""
    own = [each for each in cluster.of(Source.LEASES) if _is_lease_of(scheduler, each)]
    renewed = {time: name_of(each) for each in own if (time := last_renewal(each)) is not None}
    if not renewed or not all(is_expired(each, cluster.server_time) for each in own):
        return
    newest, bound = max(renewed), time_of(cluster.bound_schedulers.get(scheduler))
    where = f"Lease {renewed[newest]}: spec.renewTime"
    what = f"{scheduler} renewed it {(cluster.server_time - newest).total_seconds() // 60:.0f} min ago"
    # The last binding can be newer than the last renewal by the time between renewals.
    if bound is not None and bound > newest + timedelta(minutes=1):
        remedy = "delete the Lease if the scheduler runs without leader election"
        yield info(where, f"{what}, and has bound pods since", remedy)
        return
    severity = error if scheduler == DEFAULT_SCHEDULER else warning
    remedy = "start it, or find in its log why it does not renew the Lease"
    yield severity(where, f"{what} and has bound no pod since: it does not run, so its pods stay Pending", remedy)


def _is_lease_of(scheduler: str, lease: JsonObject) -> bool:
    """Return whether name or holder of the Lease contains the name of the scheduler, as in SchedulerEvidence."""
    if scheduler == DEFAULT_SCHEDULER:
        return name_of(lease) == _LEASE
    return scheduler in f"{field(lease, 'metadata', 'name')}\n{field(lease, 'spec', 'holderIdentity')}"


def _is_deployed(cluster: Cluster, scheduler: str) -> bool:
    """Return whether a Deployment, one of its containers or an argument has the name of the scheduler."""
    for each in cluster.of(Source.DEPLOYMENTS):
        words = [name_of(each)]
        for container in containers_of(each):
            words += [str(container.get("name", "")), *args_of(container, "command"), *args_of(container)]
        if any(scheduler in word for word in words):
            return True
    return False


@check("install the CRDs of the backend, or change `schedulers` and `queueing`", needs={Source.POLICY, Source.GROUPS})
def backends(cluster: Cluster) -> Iterator[Finding]:
    """The API group of a backend that the policy names is not served, so queues and gangs have no effect."""
    if cluster.evidence is None:
        return
    served, reported = cluster.evidence.groups, set[str]()
    for policy in cluster.policies:
        place = f"{cluster.place_of(policy)}: spec"
        for path, name in (_of_types(policy) | {f"schedulers.{each}": each for each in policy.spec.schedulers}).items():
            groups = api_groups_of(policy.spec.schedulers, name) if name else ()
            if name and groups and name not in reported and served.isdisjoint(groups):
                reported.add(name)
                what = f"{name}: no API group {' or '.join(groups)} is served, so its queues and gangs have no effect"
                yield warning(f"{place}.{path}", what, "install the CRDs of the scheduler, or choose another one")
        group = Kueue.api_groups[0]
        if policy.spec.queueing == "kueue" and group not in reported and served.isdisjoint(Kueue.api_groups):
            reported.add(group)
            what = f"kueue: no API group {' or '.join(Kueue.api_groups)} is served, so no pod waits for a queue"
            yield warning(f"{place}.queueing", what, "install Kueue, or set queueing: scheduler")


@check(
    "`kubectl create priorityclass NAME --value N`, or change the policy",
    needs={Source.PRIORITY_CLASSES, Source.POLICY},
)
def priority_classes(cluster: Cluster) -> Iterator[Finding]:
    """A PriorityClass that the policy names does not exist, or the cluster's default class hides it."""
    classes = cluster.of(Source.PRIORITY_CLASSES)
    names = {name_of(each) for each in classes}
    default = next((name_of(each) for each in classes if each.get("globalDefault") is True), None)
    for policy in cluster.policies if cluster.knows(Source.PRIORITY_CLASSES) else ():
        spec, place = policy.spec, f"{cluster.place_of(policy)}: spec"
        types = spec.workload_types.items()
        used = {name: each.priority_class_name for name, each in types if each.priority_class_name}
        for name, wanted in used.items():
            if wanted not in names:
                what = f"{wanted} does not exist: the API server refuses every pod of {name}"
                created = commands.command("kubectl", "create", "priorityclass", wanted, "--value=N")
                where = f"{place}.workloadTypes.{name}.priorityClassName"
                yield error(where, what, f"{created}, or name another class")
        where, remedy = f"{place}.defaultPriorityClass", f"set it to {default}" if default else "remove it"
        if spec.default_priority_class not in (None, default):
            what = f"{spec.default_priority_class}, but the cluster's default class is {default or 'not set'}"
            yield warning(where, what, remedy)
        elif default and used and spec.default_priority_class is None:
            what = f"not set, and every pod without a class gets {default}: no workload type sets its own"
            yield warning(where, what, remedy)


@check("create the queue, or correct `namespaceLimits.queues`", needs={Source.QUEUES, Source.POLICY})
def queues(cluster: Cluster) -> Iterator[Finding]:
    """A queue that the policy names in `namespaceLimits` does not exist."""
    known = {str(field(each, "metadata", "name")) for each in cluster.of(Source.QUEUES)}
    for policy in cluster.policies if cluster.knows(Source.QUEUES) else ():
        for index, limits in enumerate(policy.spec.namespace_limits):
            for queue in limits.queues or ():
                if "*" not in queue and queue not in known:
                    similar = meant(queue, known)
                    hint = f"did you mean {similar}?" if similar else "create it, or correct the policy"
                    where = f"{cluster.place_of(policy)}: spec.namespaceLimits[{index}].queues"
                    yield warning(where, f"{queue}: no Queue or LocalQueue has this name", hint)
