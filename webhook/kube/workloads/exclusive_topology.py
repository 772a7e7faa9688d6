"""The annotations by which LeaderWorkerSet and JobSet give each group of pods a topology domain of its own.

The leader of a group gets affinity to the label of its group, and anti-affinity to the labels of other groups. The
followers are created when their leader has a node, with a node selector for the leader's domain.

Source: sigs.k8s.io/lws/pkg/webhooks/pod_webhook.go, pkg/controllers/pod_controller.go;
sigs.k8s.io/jobset/pkg/webhooks/pod_webhook.go, pkg/controllers/jobset_controller.go (labelAndAnnotateObject)
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.documents.documents import JsonObject, field


class Groups(NamedTuple):
    """The groups of pods that a controller tells apart by `label`.

    The value is the SHA-1 of `text`, a pattern as that of pod names, with `{namespace}`. `priority_label` is the label
    with the priority of a pod; only groups with the same priority then exclude each other. `in_all_namespaces` is true
    if groups of other namespaces are excluded, too. `keeps_own` is true if a pod with own terms for the topology key
    keeps only these.
    """

    label: str
    text: str
    priority_label: str = ""
    in_all_namespaces: bool = False
    keeps_own: bool = False


@dataclass(frozen=True, slots=True)
class Exclusive:
    """The rule for the pods of a template. Each of `groups` has a domain of `topology_key` of its own.

    `follows` is true for followers. `subgroup_size` divides a group of `size` pods, or is 0 for whole groups.
    """

    groups: Groups
    topology_key: str
    follows: bool = False
    subgroup_size: int = 0
    size: int = 0

    def value(self, text: str, place: int) -> str:
        """Return the value of the label of the pod at `place` in the group `text`, as `Groups.text` describes it."""
        if self.subgroup_size:
            has_extra_leader = (self.size - 1) % self.subgroup_size == 0 and self.size % self.subgroup_size != 0
            text = f"{text}/{max(0, place - has_extra_leader) // self.subgroup_size}"
        return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    def leading(self, pod: JsonObject, value: str, priority: int) -> JsonObject:
        """Return the pod of the group `value` with the terms of a leader."""
        groups = self.groups
        own = field(pod, "spec", "affinity") or {}
        together, apart = (
            field(own, kind, "requiredDuringSchedulingIgnoredDuringExecution") or []
            for kind in ("podAffinity", "podAntiAffinity")
        )
        if groups.keeps_own and all(any(self._is_own(each) for each in terms) for terms in (together, apart)):
            return pod
        others: list[JsonObject] = [{"key": groups.label, "operator": "Exists"}, _expression(groups, "NotIn", value)]
        if groups.priority_label:
            others.append({"key": groups.priority_label, "operator": "In", "values": [str(priority)]})
        added = (together, [_expression(groups, "In", value)]), (apart, others)
        affinity = dict(own)
        for kind, (terms, expressions) in zip(("podAffinity", "podAntiAffinity"), added, strict=True):
            term: JsonObject = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": self.topology_key}
            if groups.in_all_namespaces:
                term["namespaceSelector"] = {}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [*terms, term]}
            affinity[kind] = {**(own.get(kind) or {}), **required}
        return {**pod, "spec": {**pod["spec"], "affinity": affinity}}

    def labelled(self, pod: JsonObject, value: str, priority: int) -> JsonObject:
        """Return the pod with the label of its group, and that of its priority."""
        groups, metadata = self.groups, pod["metadata"]
        labels = {**(metadata.get("labels") or {}), groups.label: value}
        if groups.priority_label:
            labels[groups.priority_label] = str(priority)
        return {**pod, "metadata": {**metadata, "labels": labels}}

    def following(self, pod: JsonObject, domain: str) -> JsonObject:
        """Return the follower of a leader that has a node in `domain`."""
        selector = {**(field(pod, "spec", "nodeSelector") or {}), self.topology_key: domain}
        return {**pod, "spec": {**pod["spec"], "nodeSelector": selector}}

    def _is_own(self, term: Mapping[str, Any]) -> bool:
        return term.get("topologyKey") == self.topology_key


def _expression(groups: Groups, operator: str, value: str) -> JsonObject:
    return {"key": groups.label, "operator": operator, "values": [value]}


class ExclusiveTopology(NamedTuple):
    """The annotations that request exclusive domains for the groups of a kind, as paths; the first one set counts.

    `leader` is the role of the leaders, or empty if the first pod of each job leads. `size` is the path of the number
    of pods of a group, and `subgroup_size` that of a subgroup, all of whose pods get the terms. Leaders are in no
    subgroup if the field `excludes_leader` is `LeaderExcluded`.
    """

    annotations: tuple[str, ...]
    groups: Groups
    leader: str = ""
    size: str = ""
    subgroup_size: str = ""
    excludes_leader: str = ""


_LWS_KEY = "leaderworkerset.sigs.k8s.io"
LWS_EXCLUSIVE = (
    ExclusiveTopology(
        (f"metadata.annotations[{_LWS_KEY}/exclusive-topology]",),
        Groups(f"{_LWS_KEY}/group-key", "{namespace}/{name}-{0}", keeps_own=True),
        leader="leader",
    ),
    ExclusiveTopology(
        (f"metadata.annotations[{_LWS_KEY}/subgroup-exclusive-topology]",),
        Groups(f"{_LWS_KEY}/subgroup-key", "{name}-{0}", keeps_own=True),
        leader="leader",
        size="spec.leaderWorkerTemplate.size",
        subgroup_size="spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize",
        excludes_leader="spec.leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType",
    ),
)
JOBS_AND_SET = ("spec.replicatedJobs.*.template.", "")
JOBSET_EXCLUSIVE = (
    ExclusiveTopology(
        tuple(f"{each}metadata.annotations[alpha.jobset.sigs.k8s.io/exclusive-topology]" for each in JOBS_AND_SET),
        Groups(
            "jobset.sigs.k8s.io/job-key",
            "{namespace}/{name}-{role}-{0}",
            priority_label="jobset.sigs.k8s.io/priority",
            in_all_namespaces=True,
        ),
    ),
)
