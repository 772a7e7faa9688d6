"""Group nodes by their obstacles: the reasons why they reject the pod, and the changes that remove these reasons."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from webhook.cluster.index.labels import Mask
from webhook.cluster.index.node_selector import Requirement, Term, any_matches, matches
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.pod.taints import TEMPORARY_TAINTS, UNSCHEDULABLE, Taint, is_temporary, keeps_away
from webhook.placement.plugins import inter_pod_affinity, pod_topology_spread
from webhook.placement.plugins.node_affinity import NodeAffinity
from webhook.placement.plugins.node_ports import NodePorts
from webhook.placement.plugins.node_resources_fit import (
    ERR_REASON_TOO_MANY_PODS,
    NodeResourcesFit,
    missing_resource,
)
from webhook.placement.plugins.node_unschedulable import NodeUnschedulable
from webhook.placement.plugins.taint_toleration import TaintToleration
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.profile import Profile
from webhook.placement.reasons.diagnosis import Rejection, rejections
from webhook.placement.suggest.changes import Change, Scenario
from webhook.placement.suggest.pod_changes import (
    TolerateTaint,
    WithoutNodeSelector,
    WithoutPodTerms,
    WithoutRequirement,
    WithoutSpread,
    WithoutTerms,
    common_term,
    satisfiable_terms,
)

# The most obstacles that are distinguished, besides taints: a set of them must fit in the bits of an integer.
_MOST_OBSTACLES = 40
# Labels of one fact; a pod can have thousands of terms.
_MOST_ALTERNATIVES = 4
# Control plane taints and temporary taints must not be tolerated, so no suggestion does.
_CONTROL_PLANES = ("control-plane", "master")

_CORDON = NodeUnschedulable.name
_PORTS = NodePorts.name
_TAINTS = TaintToleration.name
_OTHER = "other"
# It rejects every node of a full cluster. A change that makes the pod fit is proven with it, too.
_OVERCOMMIT = "overcommit"

# The changes of the pod that remove a reason.
_CHANGE_BY_REASON: Mapping[str, Change] = {
    inter_pod_affinity.ERR_REASON_AFFINITY: WithoutPodTerms("podAffinity"),
    inter_pod_affinity.ERR_REASON_ANTI_AFFINITY: WithoutPodTerms("podAntiAffinity"),
    pod_topology_spread.ERR_REASON_CONSTRAINTS_NOT_MATCH: WithoutSpread(),
    pod_topology_spread.ERR_REASON_NODE_LABEL_NOT_MATCH: WithoutSpread(),
}

Masks = dict[Change | str, Mask]
Need = tuple[TolerateTaint, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class NodeGroup:
    """A group of nodes: those in `rows` fit after `changes` of the pod if they have enough of the resources in `short`.

    `has_too_many_pods`, `has_taken_ports` and `is_cordoned` are the same for all nodes of the group.
    """

    rows: Rows
    changes: tuple[Change, ...]
    short: tuple[str, ...]
    has_too_many_pods: bool
    has_taken_ports: bool
    is_cordoned: bool

    @property
    def obstacles(self) -> int:
        """Return the number of obstacles."""
        return len(self.changes) + len(self.short) + self.has_too_many_pods + self.has_taken_ports + self.is_cordoned


def node_groups(
    profile: Profile,
    scenario: Scenario,
    most: int,
    expired: Expired,
    temporary_taints: Collection[str] = TEMPORARY_TAINTS,
) -> list[NodeGroup]:
    """Return at most `most` groups of nodes that changes can make fit, sorted by the fewest obstacles, then by size.

    A node is in no group if no change removes one of its rejections, such as one because of `temporary_taints`.
    """
    pod, nodes = scenario
    if not nodes.nodes:
        return []
    found = (each for each in rejections(profile, pod, nodes, expired) if each.plugin != _OVERCOMMIT)
    masks = _masks(found, scenario, expired)
    needs, need_of = _needs(pod, nodes, temporary_taints) if masks.pop(_TAINTS, None) is not None else ([()], None)
    encoded = [key for key in masks if key != _OTHER]
    codes = np.zeros(len(nodes.nodes), dtype=np.int64) if need_of is None else need_of << len(encoded)
    for place, key in enumerate(encoded):
        codes |= masks[key].astype(np.int64) << place
    codes[masks[_OTHER]] = -1
    groups = []
    distinct, counts = np.unique(codes, return_counts=True)
    for code, count in zip(distinct.tolist(), counts.tolist(), strict=True):
        need = needs[code >> len(encoded)] if code >= 0 else None
        if need is not None:
            keys = [key for place, key in enumerate(encoded) if code >> place & 1]
            groups.append((len(keys) + len(need), -count, code, (*need, *keys)))
    groups.sort(key=lambda group: group[:3])
    return [_group(np.flatnonzero(codes == code), keys) for _, _, code, keys in groups[:most]]


def _group(rows: Rows, keys: tuple[Change | str, ...]) -> NodeGroup:
    texts = [key for key in keys if isinstance(key, str)]
    return NodeGroup(
        rows,
        changes=tuple(key for key in keys if not isinstance(key, str)),
        short=tuple(resource for text in texts if (resource := missing_resource(text)) is not None),
        has_too_many_pods=ERR_REASON_TOO_MANY_PODS in texts,
        has_taken_ports=_PORTS in texts,
        is_cordoned=_CORDON in texts,
    )


def _masks(found: Iterable[Rejection], scenario: Scenario, expired: Expired) -> Masks:
    """Return a mask of the nodes that each obstacle excludes. All taints share one key."""
    pod, nodes = scenario
    nothing = np.zeros(len(nodes.nodes), dtype=np.bool_)
    masks: Masks = {_OTHER: nothing}
    by_affinity = nothing
    for _, plugin, reason, rejected in found:
        if plugin == NodeAffinity.name:
            by_affinity = by_affinity | rejected
        else:
            _add(masks, _key(plugin, reason), rejected)
    if _TAINTS in masks:
        _add(masks, _CORDON, _has_cordon_taint(pod, nodes) & nodes.unschedulable)
    if by_affinity.any():
        explained = nothing
        for change, missed in _affinity_masks(pod, nodes, expired):
            explained = explained | missed
            _add(masks, change, missed)
        _add(masks, _OTHER, by_affinity & ~explained)
    return masks


def _add(masks: Masks, key: Change | str, mask: Mask) -> None:
    """Add `mask` under `key`, or under `_OTHER` once there are many, because a mask has an entry for each node."""
    if not mask.any():
        return
    if key not in masks and key != _TAINTS and len(masks) - (_TAINTS in masks) > _MOST_OBSTACLES:
        key = _OTHER
    known = masks.get(key)
    masks[key] = mask if known is None else known | mask


def _key(plugin: str, reason: str) -> Change | str:
    if plugin == NodeResourcesFit.name and (reason == ERR_REASON_TOO_MANY_PODS or missing_resource(reason) is not None):
        return reason
    if plugin in (_CORDON, _PORTS, _TAINTS):
        return plugin
    return _CHANGE_BY_REASON.get(reason, _OTHER)


def _affinity_masks(pod: PodInfo, nodes: Snapshot, expired: Expired) -> Iterator[tuple[Change, Mask]]:
    """Yield a change, with the nodes that it concerns, for each nodeSelector label, common requirement, and terms."""
    runtime_class = nodes.runtime_classes.by_name.get(pod.runtime_class)
    added = {} if runtime_class is None else runtime_class.node_selector
    for key, value in in_time(pod.node_selector, expired):
        source = pod.runtime_class if added.get(key) == value else ""
        yield WithoutNodeSelector(key, value, source), ~nodes.labels.matches(key, "In", (value,))
    if pod.required is None:
        return
    common = common_term(pod)
    for requirement in in_time(common.expressions, expired):
        yield WithoutRequirement(requirement), ~nodes.labels.matches(*requirement)
    for requirement in in_time(common.fields, expired):
        term = Term((), (requirement,))
        yield WithoutRequirement(requirement, is_of_field=True), ~matches(term, nodes.labels, nodes.rows)
    expressions, fields = frozenset(common.expressions), frozenset(common.fields)
    rest = [
        Term(
            tuple(each for each in term.expressions if each not in expressions),
            tuple(each for each in term.fields if each not in fields),
        )
        for term in in_time(satisfiable_terms(pod), expired)
    ]
    if all(term.expressions or term.fields for term in rest):
        yield WithoutTerms(_alternatives(rest)), ~any_matches(rest, nodes.labels, nodes.rows, expired)


def _alternatives(terms: Sequence[Term]) -> tuple[Requirement, ...]:
    """Return the requirements if each of `terms` has the same one on another label, or else none."""
    found = [
        each.expressions[0] for each in terms[:_MOST_ALTERNATIVES] if len(each.expressions) == 1 and not each.fields
    ]
    is_one = len(found) == len(terms) and len({(each.operator, each.values) for each in found}) == 1
    return tuple(found) if is_one else ()


def _needs(pod: PodInfo, nodes: Snapshot, temporary: Collection[str]) -> tuple[list[Need], NDArray[np.int64]]:
    """Return the distinct sets of taints to tolerate (None if not advisable), and the index of the set of each node."""
    places: dict[Need, int] = {}
    need_of_class = []
    for taints in nodes.taints.classes:
        bad = [taint for taint in taints if keeps_away(taint, pod.tolerations) and taint.key != UNSCHEDULABLE]
        need = tuple(dict.fromkeys(TolerateTaint(taint.key, taint.value) for taint in bad))
        may_be_tolerated = all(_may_be_tolerated(taint, temporary) for taint in bad)
        need_of_class.append(places.setdefault(need if may_be_tolerated else None, len(places)))
    need_of = np.array(need_of_class, dtype=np.int64)[nodes.taints.class_of]
    stray = _has_cordon_taint(pod, nodes) & ~nodes.unschedulable
    need_of[stray] = places.setdefault(None, len(places))
    return list(places), need_of


def _has_cordon_taint(pod: PodInfo, nodes: Snapshot) -> Mask:
    own = pod.tolerations
    has = [any(t.key == UNSCHEDULABLE and keeps_away(t, own) for t in taints) for taints in nodes.taints.classes]
    return np.array(has, dtype=np.bool_)[nodes.taints.class_of]


def _may_be_tolerated(taint: Taint, temporary: Collection[str] = TEMPORARY_TAINTS) -> bool:
    return not is_temporary(taint.key, temporary) and taint.key.rpartition("/")[2] not in _CONTROL_PLANES
