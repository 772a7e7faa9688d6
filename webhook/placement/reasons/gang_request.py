"""The gang that a pod requests, with the data of its PodGroup, and the amounts that it needs of a queue."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from webhook.backends.backend import BatchNames
from webhook.backends.references import GangRequest, Within
from webhook.cluster.batch.network_topology import UNKNOWN_DOMAIN, NetworkTopology, key_of_tier, tier_of_key
from webhook.cluster.batch.queues import PodGroup
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject, field
from webhook.documents.listing import plural
from webhook.documents.text import cut
from webhook.kube.names import VOLCANO_SOFT
from webhook.placement.framework.amount_text import amount_text
from webhook.placement.framework.result import GangFit, Placement
from webhook.placement.pod.network_limit import network_limit
from webhook.placement.pod.pod_info import PodInfo

# By backend, its PodGroups in a snapshot, or None if they are not known.
_GROUPS = {
    "volcano": attrgetter("volcano.groups"),
    "kai": attrgetter("kai.groups"),
    "coscheduling": attrgetter("pod_groups.coscheduling"),
    "native": attrgetter("pod_groups.native"),
}
_LONGEST_NAME = 32
_LONGEST_SHOWN = 63


def grouped(
    request: GangRequest, names: Sequence[BatchNames], namespace: str, snapshot: Snapshot
) -> GangRequest | None:
    """Return `request` completed from the PodGroup in `snapshot` that `names` name, or None if no size is known.

    If `request` has no size, the size is that of the PodGroup. A PodGroup of kube-scheduler decides whether its pods
    run together. For a pod without a group and an owner, batch schedulers place each pod in a domain of its own.
    """
    is_seen = any(each.group or each.has_owner or each.starts_whole for each in names)
    for each in names:
        group = pod_group_of(each, namespace, snapshot)
        request = request._replace(within=_within(request.within, each, group, snapshot) if is_seen else None)
        if each.backend == "kueue" and each.starts_whole:
            if snapshot.kueue.looks_at_nodes(namespace, each.queue):
                return request._replace(starts_whole=True) if request.size else None
            request = request._replace(ends_after=pods_ready_timeout(snapshot))
        if group is not None and group.members:
            size, is_stated = request.size or group.members, request.size > 0
            return request._replace(size=size, is_stated=is_stated, members=group.members, group=group)
        if group is not None:
            request = request._replace(starts_whole=request.starts_whole and not group.is_basic, group=group)
    return request if request.size else None


def _within(within: Within | None, names: BatchNames, group: PodGroup | None, snapshot: Snapshot) -> Within | None:
    """Return the domain in which the scheduler of `names` places the pods of `group`; `within` is that of the pod.

    For kube-scheduler, only the PodGroup decides. A domain of Kueue and KAI is a path of the labels of a Topology.
    """
    if names.backend == "volcano":
        network = group.network if group is not None else names.network
        found = within_network(network, snapshot) if network is not None else None
        # The pods are Unknown then, see `as_grouped` and `PodInfo.network`.
        return None if found is None or found.doubt else found
    if group is not None and names.backend in ("native", "kai"):
        native, key = names.backend == "native", group.topology_key
        within = Within(key, is_native=native, topology=group.topology, doubt=group.doubt) if key else None
    elif names.required_level:
        within = Within(names.required_level)
    return within and in_topology(within, names.backend, snapshot)


def in_topology(within: Within, backend: str, snapshot: Snapshot) -> Within:
    """Return `within` with the labels of wider and narrower domains in the Topology of `backend`, or with a doubt.

    Source: sigs.k8s.io/kueue/pkg/util/tas/node.go, NodeMatchesFlavor;
    github.com/NVIDIA/KAI-scheduler/pkg/scheduler/plugins/topology/common.go, isNodePartOfTopology
    """
    topologies = {"kueue": snapshot.kueue.topologies, "kai": snapshot.kai.topologies}
    if backend not in topologies or within.parents or within.below:
        return within
    # KAI looks for room for minMember of the PodGroup first.
    within = within._replace(is_of_least=backend == "kai")
    named = [each for each in (topologies[backend] or {}).values() if within.topology in ("", each.name)]
    found = [each for each in named if within.key in each.levels]
    parents = {each.levels[: each.levels.index(within.key)] for each in found}
    # Its nodes have the labels of all levels.
    nodes = {(snapshot.labels.paths(each.levels)[0] >= 0).tobytes() for each in found}
    if len(parents) != 1 or len(nodes) != 1:
        doubt = f"no single Topology is known that has the level {cut(within.key, _LONGEST_SHOWN)}"
        return within._replace(doubt=within.doubt or doubt)
    levels = found[0].levels
    return within._replace(parents=parents.pop(), below=levels[levels.index(within.key) + 1 :])


def network_of_job(content: JsonObject, within: Within | None) -> NetworkTopology | None:
    """Return the request of a Volcano Job for a domain. If it has none, the policy injects that of `within`."""
    spec = field(content, "spec")
    if not isinstance(spec, Mapping):
        return None
    tier = None if within is None or "networkTopology" in spec else tier_of_key(within.key)
    if within is not None and tier is not None:
        mode = "hard" if within.is_required else VOLCANO_SOFT
        spec = {**spec, "networkTopology": {"mode": mode, "highestTierAllowed": tier}}
    return NetworkTopology.of_job(spec)


def within_network(network: NetworkTopology, snapshot: Snapshot) -> Within | None:
    """Return the domain in which Volcano places a group by its request, or None if Volcano ignores the request.

    If the domain is not known, the reason is its `doubt`.
    """
    limit = network_limit(network, snapshot)
    if limit.tier is None and not limit.unknown:
        return None
    # It looks for room for the pods that it knows then.
    key = UNKNOWN_DOMAIN if limit.tier is None else key_of_tier(limit.tier)
    return Within(key, network.is_hard, doubt=limit.unknown, is_of_least=True, part=network.part)


def group_named(names: Iterable[BatchNames], namespace: str, snapshot: Snapshot) -> PodGroup | None:
    """Return the PodGroup that one of `names` names, or None if there is none or it is not known."""
    return next((group for each in names if (group := pod_group_of(each, namespace, snapshot))), None)


def pod_group_of(names: BatchNames, namespace: str, snapshot: Snapshot) -> PodGroup | None:
    """Return the PodGroup that `names` names, or None if there is none or it is not known."""
    if not names.group or names.is_replaced:
        return None
    read = _GROUPS.get(names.backend)
    return ((read and read(snapshot)) or {}).get((namespace, names.group))


def may_have_group(names: Iterable[BatchNames], snapshot: Snapshot) -> bool:
    """Return whether one of `names` names a PodGroup, and the PodGroups of its backend are not known."""
    named = (each for each in names if each.group and not each.is_replaced and each.backend in _GROUPS)
    return any(_GROUPS[each.backend](snapshot) is None for each in named)


def pods_ready_timeout(snapshot: Snapshot) -> str:
    """Return the time after which Kueue evicts an admitted workload unless all of its pods are ready, or ""."""
    return snapshot.scheduler_evidence.pods_ready_timeout if snapshot.scheduler_evidence else ""


def partial_start(request: GangRequest, placement: Placement) -> tuple[str, ...]:
    """Return the warning for a pod whose gang would start only in part, or none."""
    fit = placement.gang
    if fit is None or not fit.starts_in_part:
        return ()
    name = cut(fit.name, _LONGEST_NAME)
    gang = f"gang {name}" if name else "the gang"
    effect = effect_text("gangs", fit.ends_after)
    return (f"{fit.fit} of the {fit.size} pods of {gang} {effect}: {starts_text(request, fit.least)}",)


def partial_start_of_object(gang: GangRequest, fit: GangFit) -> str:
    """Return the warning for an object that would start only in part, so that pods wait for the others, or ""."""
    if not fit.is_complete or not gang.least <= fit.fit < fit.size:
        return ""
    return (
        f"{fit.fit} of the {fit.size} pods that must run together {effect_text('jobs', gang.ends_after)}: "
        f"{starts_text(gang, gang.least)}"
    )


def effect_text(groups: str, ends_after: str) -> str:
    """Return the effect of a partial start on `groups`, which ends after the time `ends_after` if not ""."""
    end = f"and two such {groups} can deadlock"
    if ends_after:
        end = f"until Kueue evicts them after {ends_after} (waitForPodsReady)"
    return f"would start and hold what they request while the others wait, {end}"


def starts_text(request: GangRequest, least: int) -> str:
    """Return a text about the minimum number of pods, `least`, with which the scheduler starts a gang in part."""
    shown = cut(request.scheduler, _LONGEST_NAME)
    if least <= 1:
        without = f" without {cut(request.missing, _LONGEST_SHOWN)}" if request.missing else ""
        return f"scheduler {shown} starts pods one by one{without}"
    return f"scheduler {shown} starts {least} of them without the others, as their PodGroup says"


@dataclass(frozen=True)
class GangDemand:
    """A gang that starts with `request.least` pods. `sets` are (pod, number of pods) for each template."""

    request: GangRequest
    sets: tuple[tuple[PodInfo, int], ...]

    @classmethod
    def of_pod(cls, request: GangRequest, pod: PodInfo) -> "GangDemand":
        """Return the gang of `pod`. The other pods of the gang are assumed to be like `pod`."""
        return cls(request, ((pod, request.size),))

    @property
    def pods(self) -> int:
        """Return the number of pods of the gang."""
        return sum(count for _, count in self.sets)


@dataclass(frozen=True)
class Demand:
    """The pods that need room in a queue at once: only `pod`, or the `least` pods of its gang that start together."""

    pod: PodInfo
    gang: GangDemand | None = None
    least: int = 1

    @classmethod
    def of(cls, names: BatchNames, pod: PodInfo, gang: GangDemand) -> "Demand":
        """Return the demand of `pod`, of `gang`, on the queue in `names`. Kueue admits all pods of a gang at once."""
        if not names.starts_whole:
            return cls(pod)
        return cls(pod, gang, gang.pods if names.backend == "kueue" else min(gang.request.least, gang.pods))

    @property
    def sets(self) -> tuple[tuple[PodInfo, int], ...]:
        """Return (pod, number of pods) for each template."""
        return self.gang.sets if self.gang else ((self.pod, 1),)

    @cached_property
    def requests(self) -> Mapping[str, int]:
        """Return the minimum total request, by resource, of the pods that start together."""
        found: Counter[str] = Counter()
        sets = [(dict(pod.requests), count) for pod, count in self.sets]
        for name in {name for requests, _ in sets for name in requests}:
            left = self.least
            for amount, count in sorted((requests.get(name, 0), count) for requests, count in sets):
                taken = min(left, count)
                found[name] += taken * amount
                left -= taken
        return found

    def excess(self, most: Mapping[str, float], used: Mapping[str, int], snapshot: Snapshot) -> str:
        """Return a text about the first resource whose demand exceeds `most` beside the `used` amounts, or ""."""
        found = excess(self.requests, most, used)
        if not found or self.gang is None or excess(self.requests, most):
            return found
        namespace, name = self.pod.inter_pod.namespace, self.gang.request.name
        gangs = (gang for info in snapshot.nodes for gang in info.gangs)
        running = sum((gang.namespace, gang.name) == (namespace, name) for gang in gangs)
        left = max(1, self.least - running) / self.least
        return excess({resource: round(amount * left) for resource, amount in self.requests.items()}, most, used)

    def __str__(self) -> str:
        name = cut(self.gang.request.name, _LONGEST_SHOWN) if self.gang else ""
        if self.gang is None or (self.least == 1 and not name):
            return "this pod"
        of_gang = f"of gang {name}" if name else "that start together"
        return f"the {plural(self.least, 'pod')} {of_gang}"


def excess(requests: Mapping[str, int], most: Mapping[str, float], used: Mapping[str, int] | None = None) -> str:
    """Return a text about the first resource for which `requests` and `used` together exceed `most`, or ""."""
    for name, limit in most.items():
        amount, in_use = requests.get(name, 0), (used or {}).get(name, 0)
        if amount and in_use + amount > limit:
            beside = f"{amount_text(name, in_use)} + " if in_use else ""
            shown = amount_text(name, int(limit)) if limit == int(limit) else f"{limit:g}"
            return f"{cut(name, _LONGEST_SHOWN)} {beside}{amount_text(name, amount)} of {shown}"
    return ""
