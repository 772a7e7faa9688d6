"""The pods of objects whose controller gives each group of pods a topology domain of its own, as they are created."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from webhook.backends.references import Within
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject
from webhook.kube.deadline import Expired
from webhook.kube.workloads.exclusive_topology import Exclusive
from webhook.kube.workloads.pod_set import PodSet
from webhook.placement.framework.result import Placement
from webhook.placement.gang.domains import room_on_nodes
from webhook.placement.gang.empty_cluster import MOST_COUNTED, most_in_each_domain
from webhook.placement.replicas.independent_nodes import are_nodes_independent
from webhook.placement.replicas.replicas import FillingCluster
from webhook.placement.scheduler import PodSignature, Scheduler

LEADER_HAS_NO_NODE = "it is not created before the leader of its group has a node"
# More groups are not compared, because each needs an answer of the scheduler.
_MOST_GROUPS = 64


@dataclass(frozen=True, slots=True)
class Template:
    """The template of `pods`. `created` returns a pod of it as the API server of a snapshot stores it."""

    pods: PodSet
    created: Callable[[JsonObject, Snapshot], JsonObject]

    def pods_on(self, snapshot: Snapshot, begin: int = 0) -> Iterator[JsonObject]:
        """Yield the pods, at least one, as they are created on `snapshot`, from number `begin`.

        Followers end with the first one whose leader has no node. If there are none, they have no leader either.
        """
        read, created = None, JsonObject()
        has_terms = self.pods.exclusive and (self.pods.replicas or not self.pods.follows)
        domains = _Domains(self.pods, snapshot) if has_terms else None
        for index in range(begin, max(1, self.pods.replicas or 1)):
            pod = self.pods.pod_at(index)
            if pod != read:
                read, created = pod, self.created(pod, snapshot)
            found = domains.placed(created, index) if domains else created
            if found is None:
                return
            yield found


@dataclass(slots=True)
class _Domains:
    """Adds the terms of the controller to pods of `pods`. The leaders of followers are on nodes of `snapshot`."""

    pods: PodSet
    snapshot: Snapshot
    _domains: dict[str, str] | None = None
    _priority: int | None = None

    def placed(self, pod: JsonObject, index: int) -> JsonObject | None:
        """Return `pod`, which is number `index`, with the terms, or None if its leader has no node."""
        for rule in self.pods.exclusive:
            group = self.pods.group_of(rule, index)
            priority = self._priority_of(pod)
            if rule.follows:
                domain = self._domain(rule, group)
                if domain is None:
                    return None
                pod = rule.following(rule.labelled(pod, group, priority), domain)
            else:
                pod = rule.leading(rule.labelled(pod, group, priority), group, priority)
        return pod

    def _priority_of(self, pod: JsonObject) -> int:
        if self._priority is None:
            info = PodSignature.of(pod).info
            self._priority = info.preemption.normalized_for(self.snapshot).priority or 0
        return self._priority

    def _domain(self, rule: Exclusive, group: str) -> str | None:
        if self._domains is None:
            # The hash in the label includes the namespace.
            self._domains = {
                value: domain
                for info in self.snapshot.nodes
                if (domain := info.node.labels.get(rule.topology_key)) is not None
                for each in info.pods
                if (value := each.labels.get(rule.groups.label)) is not None
            }
        return self._domains.get(group)


def placement_of_followers(
    placement: Placement,
    leaders: Template,
    followers: Template,
    scheduler: Scheduler,
    before: Snapshot,
    expired: Expired,
    *,
    can_grow: bool,
) -> Placement:
    """Return `placement`, that of the first follower that does not fit, or of the first follower if all fit.

    It is Infeasible if no domain could hold a group, and Unknown if it depends on which domain a leader gets by chance.
    `before` is the cluster before the first leader. `can_grow` is true if nodes can be added to the cluster.

    Raises:
        InvalidInput: a pod is malformed.
    """
    if placement.verdict == "Waiting" and not can_grow:
        never = _never_together(placement, leaders, followers, scheduler, before, expired)
        if never is not None:
            return never
    waits = placement.verdict == "Waiting"
    reason = _chance_of_domains(scheduler, leaders, followers, before, expired, waits=waits)
    return Placement.unknown(reason) if reason else placement


def _chance_of_domains(
    scheduler: Scheduler, leaders: Template, followers: Template, snapshot: Snapshot, expired: Expired, *, waits: bool
) -> str:
    """Return why the verdict on the followers depends on chance, or "" if it does not.

    kube-scheduler chooses at random among the nodes of a leader with equal scores, which can be in domains with
    different room for its followers. `waits` is true if a follower waits in one of the domains: if none of them has
    room for all followers of the leader, it waits in each.
    """
    cluster, groups = FillingCluster(snapshot), leaders.pods.replicas or 0
    key, size = leaders.pods.exclusive[0].topology_key, (followers.pods.replicas or 0) // max(1, groups)
    for index in range(min(groups, _MOST_GROUPS)):
        pod = next(leaders.pods_on(cluster.snapshot, index), None)
        if pod is None:
            return ""
        signature, running = PodSignature.of(pod), RunningPod.of(pod)
        placement = scheduler.answer_alone(signature, cluster.snapshot, expired)
        if placement.node is None or placement.best_rows is None:
            return ""
        tied = [cluster.snapshot.nodes[row].node for row in placement.best_rows.tolist()]
        by_domain = dict(sorted((node.labels.get(key, ""), node.name) for node in tied))
        if len(by_domain) > 1:
            of_group, leader = (followers, index * size, size), (signature, running)
            room = _room(scheduler, by_domain, of_group, leader, cluster.snapshot, expired)
            most, least = max(room, key=room.__getitem__, default=""), min(room, key=room.__getitem__, default="")
            if waits and room and room[most] < size:
                return ""
            if room and room[most] != room[least]:
                return (
                    f"the leader gets one of {len(by_domain)} domains of {key} with equal scores by chance: "
                    f"{most} has room for {room[most]} of its {size} followers, {least} for {room[least]}"
                )
        cluster.add(signature, running, placement.node)
    return ""


def _never_together(
    placement: Placement,
    leaders: Template,
    followers: Template,
    scheduler: Scheduler,
    snapshot: Snapshot,
    expired: Expired,
) -> Placement | None:
    """Return the Infeasible placement of a follower if no domain could hold a group, else None."""
    leader, info = (PodSignature.of(each.created(each.pods.pod_at(0), snapshot)).info for each in (leaders, followers))
    key = followers.pods.exclusive[0].topology_key
    free = info._replace(node_selector=tuple(each for each in info.node_selector if each[0] != key))
    role = scheduler, PodSignature(free), MOST_COUNTED
    domains = most_in_each_domain([role], snapshot, Within(key), expired, restores=True)
    most = None if domains is None else max(domains.values(), default=0)
    with_leader = leader.requests == info.requests
    size = followers.pods.dimensions[-1].number + with_leader
    if most is None or most >= size:
        return None
    what = "pods" if with_leader else "followers"
    never = f"No domain of {key} could hold the {size} {what} of a group: the largest would hold {most} if empty."
    return replace(placement, verdict="Infeasible", message=f"{placement.message.removesuffix('.')}. {never}")


def _room(
    scheduler: Scheduler,
    leader_by_domain: dict[str, str],
    of_group: tuple[Template, int, int],
    leader: tuple[PodSignature, RunningPod],
    snapshot: Snapshot,
    expired: Expired,
) -> dict[str, int]:
    """Return the number of followers that fit in each domain while the leader is there, or nothing if it is not known.

    `of_group` are the followers, the index of the first one and their number.
    """
    (followers, first, size), room = of_group, dict[str, int]()
    for domain, node in leader_by_domain.items():
        cluster = FillingCluster(snapshot)
        cluster.add(*leader, node)
        pod = next(followers.pods_on(cluster.snapshot, first), None)
        if pod is None:
            return {}
        signature = PodSignature.of(pod)
        if not are_nodes_independent(scheduler, signature, cluster.snapshot):
            return {}
        # The selector of the follower leaves only the nodes of the domain.
        room[domain] = min(size, int(room_on_nodes(scheduler, signature, cluster.snapshot, expired).sum()))
    return room
