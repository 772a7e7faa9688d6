"""Compare the results of `check` for upstream's cases with those of kube-scheduler's plugins."""

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tests.upstream.cases import Case, Object
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.optional_kinds import OPTIONAL_KINDS
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import parse
from webhook.documents.field import InvalidInput
from webhook.kube.deadline import never
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.kube.shape import check_pod
from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.profile import Profile
from webhook.placement.scheduler import Placement, PodSignature, Scheduler
from webhook.placement.unmodelled import unmodelled_plugins

AGREES, UNKNOWN, WAITING, SET_ASIDE, CONTRADICTS = "agrees", "Unknown", "Waiting", "set aside", "contradicts"


class Exclusion(NamedTuple):
    """Cases of a plugin, by its test and a text in its answers, that differ from a real cluster for `reason`."""

    plugin: str
    test: str
    answer: str
    reason: str

    def includes(self, case: Case) -> bool:
        """Return whether it excludes `case`."""
        answers = [*case.answers.values(), *([case.for_all] if case.for_all else [])]
        texts = " ".join(reason for answer in answers for reason in (answer.code, *answer.reasons))
        return case.plugin == self.plugin and self.test in case.test and self.answer in texts


_NO_PRE_FILTER = "the test leaves the pre-filter out, without which kube-scheduler asks no filter"
_GATE = "a feature gate that is off by default"
EXCLUDED = (
    *(
        Exclusion(plugin, "", "not found", _NO_PRE_FILTER)
        for plugin in ("InterPodAffinity", "NodePorts", "PodTopologySpread", "NodeDeclaredFeatures")
    ),
    Exclusion("PodTopologySpread", "TestPodTopoSignatures", "", "a pod that an API server refuses: maxSkew is 0"),
    Exclusion("TaintToleration", "_toleration_can_be_scheduled", "", f"{_GATE}: TaintTolerationComparisonOperators"),
    Exclusion("TaintToleration", "Numeric_", "", f"{_GATE}: TaintTolerationComparisonOperators"),
    Exclusion(
        "PodTopologySpread",
        "feature_gate_disabled",
        "",
        "a feature gate that is on by default: MatchLabelKeysInPodTopologySpread",
    ),
    Exclusion("NodeDeclaredFeatures", "TestFilter", "", "features that are made up for the test"),
    Exclusion("NodeVolumeLimits", "gate_disabled", "", "a feature gate that is on by default: VolumeLimitScaling"),
    Exclusion(
        "NodeResourcesFit", "TestDeferredResizeFit", "", f"{_GATE}: InPlacePodVerticalScalingSchedulerPreemption"
    ),
    Exclusion(
        "InterPodAffinity", "TestRemovePodHostScoped", "", "the test removes a pod of the state, as preemption does"
    ),
    Exclusion(
        "VolumeBinding",
        "generic-ephemeral,with-pvc",
        "",
        "a part of the plugin that leaves it to another to look whose claim it is",
    ),
    Exclusion("DynamicResources", "DRA-disabled", "", "a feature gate that is on for good: DynamicResourceAllocation"),
    Exclusion(
        "DynamicResources", "tainted-device-disabled", "", "a feature gate that is on by default: DRADeviceTaints"
    ),
    Exclusion("DynamicResources", "node-allocatable-", "", f"{_GATE}: DRANodeAllocatableResources"),
    Exclusion("DynamicResources", "OptionalNodeOperations", "", f"{_GATE}: DRAOptionalNodeOperations"),
    Exclusion("DynamicResources", "skip-node-operations", "", f"{_GATE}: DRAOptionalNodeOperations"),
    Exclusion("DynamicResources", "podgroup-claim-template", "", f"{_GATE}: DRAWorkloadResourceClaims"),
    Exclusion(
        "DynamicResources", "without-DRAAdminAccess", "", "a feature gate that cannot be switched off: DRAAdminAccess"
    ),
    Exclusion("DynamicResources", "in-flight-claim", "", "a claim whose allocation kube-scheduler has not yet written"),
)
_ANY_NODE = "any-node"
# Other arguments of a test add nothing to its node infos.
_PASSED_OVER = ("Node", "Pod")
_NEEDED = ("PrioritySort", "DefaultBinder")


class Outcome(NamedTuple):
    """The outcome of a case and its explanation; `exclusion` is the reason to exclude it."""

    kind: str
    detail: str = ""
    exclusion: Exclusion | None = None


class ComparedCase(NamedTuple):
    """A case and its outcome."""

    case: Case
    outcome: Outcome


def compare(case: Case) -> Outcome:
    """Compare the result here with upstream's, with kinds that have no object unknown, and then known to be empty.

    Neither result may contradict upstream, unless EXCLUDED gives the reason.
    """
    outcome = _compare_as(case, knows_all=False)
    if outcome.kind != CONTRADICTS:
        outcome = _compare_as(case, knows_all=True)
    if outcome.kind == CONTRADICTS:
        for each in EXCLUDED:
            if each.includes(case):
                return Outcome(SET_ASIDE, each.reason, each)
    return outcome


def _compare_as(case: Case, *, knows_all: bool) -> Outcome:
    try:
        profile = _profile(case)
        snapshot = snapshot_from_documents(parse(json.dumps(_list(case, knows_all=knows_all)), "case"))
        pod = case.pod
        check_pod(pod)
        signature = PodSignature.of(pod)
    except InvalidInput as error:
        return Outcome(CONTRADICTS, f"cannot be read: {error}")
    if case.scores:
        return _compare_scores(case, profile, signature.info.normalized_for(snapshot), snapshot)
    framework = Scheduler(profile)
    placement = framework.answer(signature, snapshot)
    rejected = framework.explain(signature, snapshot)
    return _compare_filters(case, snapshot, placement, rejected)


def _compare_filters(
    case: Case, snapshot: Snapshot, placement: Placement, rejected: Mapping[str, tuple[str, ...]]
) -> Outcome:
    result = f"{placement.verdict} {placement.message} {list(placement.unmodelled)}"
    passing = _passing(case, snapshot)
    if passing is None:
        return Outcome(SET_ASIDE, "no node is asked about")
    expected = f"{sorted(case.nodes)} → {case.for_all or case.answers}"
    for name, passes in passing.items():
        is_rejected = name in rejected or (placement.verdict in ("Waiting", "Infeasible"))
        if passes and is_rejected:
            return Outcome(CONTRADICTS, f"{name or 'node'} passes upstream: {result}; {expected}")
        if not passes and not is_rejected and placement.verdict == "Feasible":
            return Outcome(CONTRADICTS, f"{name or 'node'} is rejected upstream: {result}; {expected}")
    if placement.verdict == "Unknown":
        return Outcome(UNKNOWN, ", ".join(placement.unmodelled))
    return Outcome(WAITING if placement.verdict == "Waiting" else AGREES)


def _compare_scores(case: Case, profile: Profile, info: PodInfo, snapshot: Snapshot) -> Outcome:
    """Compare the normalized scores; a plugin that does not score here must score all nodes equally upstream."""
    names = _names(case)
    expected = {names[name]: score for name, score in case.scores.items()}
    rows = np.array([snapshot.rows[name] for name in expected], dtype=np.intp)
    plugin, _ = profile.scores[0]
    scores = plugin.score(info, snapshot, rows, never)
    if scores is None:
        is_same = len(set(expected.values())) <= 1
    else:
        is_same = dict(zip(expected, scores.tolist(), strict=True)) == expected
    if is_same:
        return Outcome(AGREES)
    required, ranked = unmodelled_plugins(info, snapshot)
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
    return _parsed(json.dumps(text))


@functools.cache
def _parsed(text: str) -> Profile:
    """Return the profile of a configuration; most cases of a plugin share one."""
    return parse_profiles(text, "profile")[DEFAULT_SCHEDULER]


def _external(value: Any) -> Any:
    """Return args as the API has them: the fields of kube-scheduler's own types begin with capitals."""
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
            {"apiVersion": optional.api_version, "kind": f"{kind}List", "items": []}
            for kind, optional in OPTIONAL_KINDS.items()
            if kind not in kinds
        ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _items(case: Case) -> Iterator[Object]:
    names = _names(case)
    used_names: set[tuple[str, str]] = set()
    for name, (node, pods) in (case.nodes or {"": ({"metadata": {}}, [])}).items():
        yield {"apiVersion": "v1", "kind": "Node", **node, "metadata": {**node["metadata"], "name": names[name]}}
        for pod in pods:
            yield _running(pod, names[name], used_names)
    keys = set()
    for each in case.objects:
        key = (each["kind"], each["metadata"].get("namespace"), each["metadata"].get("name"))
        if each["kind"] not in _PASSED_OVER and key not in keys:
            keys.add(key)
            yield each


def _running(pod: Object, node_name: str, used_names: set[tuple[str, str]]) -> Object:
    """Return `pod` as it runs on the node, with a unique name: many tests omit names or repeat them."""
    metadata = pod["metadata"]
    namespace, name = metadata.get("namespace") or "default", metadata.get("name", "")
    if not name or (namespace, name) in used_names:
        name = f"{name or 'running'}-{len(used_names)}"
    used_names.add((namespace, name))
    spec = pod["spec"] | {"nodeName": node_name}
    return {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": metadata | {"name": name}, "spec": spec}
