"""Compare the results of `check` for upstream's cases with those of kube-scheduler's plugins."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tests.upstream.cases import Case, Object
from webhook.cluster.file import snapshot_from_documents
from webhook.cluster.optional_kinds import OPTIONAL_KINDS
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.documents import parse
from webhook.kube.field import InvalidInput
from webhook.kube.shape import check_pod
from webhook.kube.wellknown import DEFAULT_SCHEDULER
from webhook.placement.config.loader import parse_profiles
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profile import Profile
from webhook.placement.scheduler import Placement, PodSignature, Scheduler
from webhook.placement.unmodelled import UnsupportedFeatures

AGREES, UNKNOWN, WAITING, SET_ASIDE, CONTRADICTS = "agrees", "Unknown", "Waiting", "set aside", "contradicts"


class Apart(NamedTuple):
    """Cases of a plugin, by the test and by a text among the answers, that say something else than a real cluster."""

    plugin: str
    test: str
    answer: str
    reason: str

    def concerns(self, case: Case) -> bool:
        """Return whether the case is one of them."""
        answers = [*case.answers.values(), *([case.for_all] if case.for_all else [])]
        told = " ".join(reason for answer in answers for reason in (answer.code, *answer.reasons))
        return case.plugin == self.plugin and self.test in case.test and self.answer in told


_NO_PRE_FILTER = "the test leaves the pre-filter out, without which kube-scheduler asks no filter"
_GATE = "a feature gate that is off by default"
APART = (
    *(
        Apart(plugin, "", "not found", _NO_PRE_FILTER)
        for plugin in ("InterPodAffinity", "NodePorts", "PodTopologySpread", "NodeDeclaredFeatures")
    ),
    Apart("PodTopologySpread", "TestPodTopoSignatures", "", "a pod that an API server refuses: maxSkew is 0"),
    Apart("TaintToleration", "_toleration_can_be_scheduled", "", f"{_GATE}: TaintTolerationComparisonOperators"),
    Apart("TaintToleration", "Numeric_", "", f"{_GATE}: TaintTolerationComparisonOperators"),
    Apart(
        "PodTopologySpread",
        "feature_gate_disabled",
        "",
        "a feature gate that is on by default: MatchLabelKeysInPodTopologySpread",
    ),
    Apart("NodeDeclaredFeatures", "TestFilter", "", "features that are made up for the test"),
    Apart("NodeVolumeLimits", "gate_enabled", "CSI driver is not installed", f"{_GATE}: VolumeLimitScaling"),
    Apart(
        "VolumeBinding",
        "generic-ephemeral,with-pvc",
        "",
        "a part of the plugin that leaves it to another to look whose claim it is",
    ),
    Apart("DynamicResources", "DRA-disabled", "", "a feature gate that is on for good: DynamicResourceAllocation"),
    Apart("DynamicResources", "tainted-device-disabled", "", "a feature gate that is on by default: DRADeviceTaints"),
    Apart("DynamicResources", "node-allocatable-resource", "Insufficient", f"{_GATE}: DRANodeAllocatableResources"),
    Apart("DynamicResources", "podgroup-claim-template", "", f"{_GATE}: DRAWorkloadResourceClaims"),
    Apart(
        "DynamicResources", "without-DRAAdminAccess", "", "a feature gate that cannot be switched off: DRAAdminAccess"
    ),
    Apart("DynamicResources", "in-flight-claim", "", "a claim whose allocation kube-scheduler has not yet written"),
)
_ANY_NODE = "any-node"
# Other arguments of a test add nothing to its node infos.
_PASSED_OVER = ("Node", "Pod")
_NEEDED = ("PrioritySort", "DefaultBinder")


class Outcome(NamedTuple):
    """The outcome of a case and its explanation; `apart` is the reason to set it aside."""

    kind: str
    detail: str = ""
    apart: Apart | None = None


class Judged(NamedTuple):
    """A case and its outcome."""

    case: Case
    outcome: Outcome


def judge(case: Case) -> Outcome:
    """Return how our answer goes with upstream's.

    It must not contradict while of kinds without an object nothing is known, nor when it is known that there are none.
    What cannot be the same is set aside, where there is a reason for it.
    """
    outcome = _judged(case, knows_all=False)
    if outcome.kind != CONTRADICTS:
        outcome = _judged(case, knows_all=True)
    if outcome.kind == CONTRADICTS:
        for each in APART:
            if each.concerns(case):
                return Outcome(SET_ASIDE, each.reason, each)
    return outcome


def _judged(case: Case, *, knows_all: bool) -> Outcome:
    try:
        profile = _profile(case)
        snapshot = snapshot_from_documents(parse(json.dumps(_list(case, knows_all=knows_all)), "case"))
        pod = case.pod
        check_pod(pod)
        question = PodSignature.of(pod)
    except InvalidInput as error:
        return Outcome(CONTRADICTS, f"cannot be read: {error}")
    if case.scores:
        return _compared_scores(case, profile, question.info.normalized_for(snapshot), snapshot)
    framework = Scheduler(profile)
    placement = framework.answer(question, snapshot)
    rejected = framework.explain(question, snapshot)
    return _compared(case, snapshot, placement, rejected)


def _compared(case: Case, snapshot: Snapshot, placement: Placement, rejected: Mapping[str, tuple[str, ...]]) -> Outcome:
    told = f"{placement.verdict} {placement.message} {list(placement.unmodelled)}"
    passing = _passing(case, snapshot)
    if passing is None:
        return Outcome(SET_ASIDE, "no node is asked about")
    expected = f"{sorted(case.nodes)} → {case.for_all or case.answers}"
    for name, passes in passing.items():
        is_rejected = name in rejected or (placement.verdict in ("Waiting", "Infeasible"))
        if passes and is_rejected:
            return Outcome(CONTRADICTS, f"{name or 'node'} passes upstream: {told}; {expected}")
        if not passes and not is_rejected and placement.verdict == "Feasible":
            return Outcome(CONTRADICTS, f"{name or 'node'} is rejected upstream: {told}; {expected}")
    if placement.verdict == "Unknown":
        return Outcome(UNKNOWN, ", ".join(placement.unmodelled))
    return Outcome(WAITING if placement.verdict == "Waiting" else AGREES)


def _compared_scores(case: Case, profile: Profile, info: PodInfo, snapshot: Snapshot) -> Outcome:
    """Compare the normalized scores; a plugin that is silent here must be indifferent upstream."""
    names = _names(case)
    expected = {names[name]: score for name, score in case.scores.items()}
    rows = np.array([snapshot.rows[name] for name in expected], dtype=np.intp)
    plugin, _ = profile.scores[0]
    scores = None if plugin.skips(info) else plugin.score(info, snapshot, rows, never)
    if scores is None:
        is_same = len(set(expected.values())) <= 1
    else:
        is_same = dict(zip(expected, scores.tolist(), strict=True)) == expected
    if is_same:
        return Outcome(AGREES)
    required, ranked = UnsupportedFeatures(frozenset()).on(snapshot, info)
    if case.plugin in required | ranked:
        return Outcome(UNKNOWN, case.plugin)
    ours = None if scores is None else dict(zip(expected, scores.tolist(), strict=True))
    return Outcome(CONTRADICTS, f"scores {ours}, upstream {expected}")


def _passing(case: Case, snapshot: Snapshot) -> Mapping[str, bool] | None:
    """Return for each node of the case true if it passes, by its name in the snapshot."""
    names = _names(case)
    if case.for_all is not None:
        return {info.node.name: case.for_all.passes for info in snapshot.nodes}
    return {names[name]: answer.passes for name, answer in case.answers.items()} or None


def _names(case: Case) -> Mapping[str, str]:
    return {name: name or _ANY_NODE for name in (case.nodes or ("",))}


def _profile(case: Case) -> Profile:
    enabled = [{"name": name} for name in (*_NEEDED, case.plugin)]
    every: Object = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    profile: Object = {"schedulerName": DEFAULT_SCHEDULER, "plugins": every}
    if case.args:
        profile["pluginConfig"] = [{"name": case.plugin, "args": _external(case.args)}]
    text = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    return parse_profiles(json.dumps(text), "profile")[DEFAULT_SCHEDULER]


def _external(value: Any) -> Any:
    """Args as the API has them: the fields of kube-scheduler's own types begin with capitals."""
    if isinstance(value, list):
        return [_external(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key[:1].lower() + key[1:]: _external(each) for key, each in value.items() if each not in (None, {}, [], "")}


def _list(case: Case, *, knows_all: bool) -> Object:
    items = list(_items(case))
    kinds = {each["kind"] for each in items}
    if knows_all:
        items += [
            {"apiVersion": further.api_version, "kind": f"{kind}List", "items": []}
            for kind, further in OPTIONAL_KINDS.items()
            if kind not in kinds
        ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _items(case: Case) -> Iterator[Object]:
    names = _names(case)
    seen: set[tuple[str, str]] = set()
    for name, (node, pods) in (case.nodes or {"": ({"metadata": {}}, [])}).items():
        yield {"apiVersion": "v1", "kind": "Node", **node, "metadata": {**node["metadata"], "name": names[name]}}
        for pod in pods:
            yield _running(pod, names[name], seen)
    keys = set()
    for each in case.objects:
        key = (each["kind"], each["metadata"].get("namespace"), each["metadata"].get("name"))
        if each["kind"] not in _PASSED_OVER and key not in keys:
            keys.add(key)
            yield each


def _running(pod: Object, node_name: str, seen: set[tuple[str, str]]) -> Object:
    """Return `pod` as it runs on the node; tests often leave its name out, or give one twice."""
    metadata = pod["metadata"]
    namespace, name = metadata.get("namespace") or "default", metadata.get("name", "")
    if not name or (namespace, name) in seen:
        name = f"{name or 'running'}-{len(seen)}"
    seen.add((namespace, name))
    spec = pod["spec"] | {"nodeName": node_name}
    return {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": metadata | {"name": name}, "spec": spec}
