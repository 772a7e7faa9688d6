"""The steps of a request: which policy is for it, where labels of namespaces are not known, too."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest

from tests.policy.several import named, with_unknown
from tests.support.admission import DOMAIN, PRODUCT, TYPE, USAGE, admit_pod, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.plugins import node
from webhook.admission.cluster_view import ClusterView
from webhook.admission.evaluation import evaluate
from webhook.admission.injection import Bypassed, Injection
from webhook.admission.mutated_pod import Mutated
from webhook.admission.pipeline import (
    admit,
    cluster_warnings,
    conclude,
    not_a_pod_creation,
    policy_for,
    predict,
    read_pod,
    under_object,
)
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Allowed, DeniedPlacement
from webhook.backends.references import GangRequest, PodReferences
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.snapshot import Namespace, Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput, invalid
from webhook.mutation.mutate import RuleOutcome
from webhook.objects.admission import admit_request
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.framework.result import GangFit, Placement, PlacementVerdict
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.policy.policy_set import PolicySet
from webhook.policy.spec.admission import CheckMode

SELECTOR = {"matchLabels": {"team": "a"}}


def test_a_namespace_is_judged_by_its_own_labels() -> None:
    policies = PolicySet.of(named("default"), [named("a", SELECTOR)])
    content = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new", "labels": {"team": "a"}}}
    request = make_request(content, namespace="new", name="new", kind="Namespace", resource="namespaces")
    before = snapshot_from_documents([Document("f", content | {"metadata": {"name": "new", "labels": {"team": "b"}}})])
    for cluster in (None, ClusterView(before, None)):
        assert policy_for(request, policies, cluster).name == "a"


def test_a_namespace_is_selected_by_its_own_name() -> None:
    policies = PolicySet.of(named("default"), [named("a", {"matchLabels": {"kubernetes.io/metadata.name": "new"}})])
    content = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
    request = make_request(content, namespace="", name="new", kind="Namespace", resource="namespaces")
    assert policy_for(request, policies, None).name == "a"


@pytest.mark.parametrize(("handling", "outcome"), [("default", "Patched"), ("leave", "Bypassed"), ("deny", "Denied")])
def test_setting_decides_on_pods_of_a_namespace_whose_labels_are_not_known(handling: str, outcome: str) -> None:
    policies = with_unknown(handling, SELECTOR)
    request = make_request(make_pod("trainer").annotate(TYPE, "training").obj(), namespace="new")
    verdict = admit_request(request, policy_for(request, policies, None), None)
    assert verdict.outcome == outcome
    known = policies.of_namespace("new", {})
    assert admit_request(request, known, None).outcome == "Patched"


def test_pod_that_no_policy_reads_is_not_denied_for_an_unknown_namespace() -> None:
    pod = make_pod("agent").owner("DaemonSet", "agent").annotate(TYPE, "training").obj()
    request = make_request(pod, namespace="new")
    assert admit_request(request, policy_for(request, with_unknown("deny", SELECTOR), None), None).outcome == "Bypassed"


BATCH = {"kind": "Job", "resource": "jobs"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, None),
        ({"kind": "", "resource": ""}, None),
        ({"kind": "Pod", "resource": ""}, None),
        ({"operation": "UPDATE", "subresource": "resize", **BATCH}, "operation UPDATE"),
        ({"subresource": "binding", **BATCH}, "subresource binding"),
        (BATCH, "not a pod: Job"),
        ({"kind": "", "resource": "jobs"}, "not a pod: jobs"),
        ({"kind": "Job"}, "not a pod: Job"),
    ],
)
def test_only_the_creation_of_a_pod_is_evaluated(fields: dict[str, str], reason: str | None) -> None:
    """The object of another request is not read, so it may be anything."""
    request = make_request({} if reason else make_pod("p").obj(), **fields)

    assert not_a_pod_creation(request) == reason
    assert admit(request, policy_with(), None) == Bypassed(reason or "no workload type")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "exempt by spec.exemptions[0]: an operator"),
        ({"operation": "UPDATE"}, "operation UPDATE"),
        ({"subresource": "binding"}, "subresource binding"),
        (BATCH, "not a pod: Job"),
    ],
)
def test_an_exempt_user_is_the_reason_only_for_the_creation_of_a_pod(fields: dict[str, str], reason: str) -> None:
    policy = policy_with(exemptions=[{"users": ["operator"], "reason": "an operator"}])
    request = make_request(make_pod().obj(), user="operator", **fields)

    assert admit(request, policy, None) == Bypassed(reason)
    other = admit(replace(request, user="another"), policy, None)
    assert other == Bypassed(reason if fields else "no workload type")


def test_defaults_and_policy_are_those_of_the_namespace_default_for_a_request_without_one() -> None:
    namespaces = {name: Namespace({"team": name}, {"of": name}) for name in ("default", "lab")}
    view = ClusterView(replace(Snapshot.of([]), namespaces=namespaces), None)
    policies = PolicySet.of(named("other"), [named(name, {"matchLabels": {"team": name}}) for name in namespaces])
    for namespace, wanted in (("", "default"), ("default", "default"), ("lab", "lab")):
        request = make_request(make_pod("p").obj(), namespace=namespace)

        assert read_pod(request, view).defaults == {"of": wanted}
        assert read_pod(request, None).defaults == {}
        assert policy_for(request, policies, view).name == wanted
    assert policy_for(make_request({}, namespace="unknown"), policies, view).name == "other"


def test_an_error_of_a_pod_is_one_below_the_object_of_the_request() -> None:
    errors = under_object(InvalidInput([invalid("spec.x", 1, "no"), invalid("", 1, "no")])).errors
    assert [each.path for each in errors] == ["request.object.spec.x", "request.object"]
    with pytest.raises(InvalidInput) as caught:
        admit(make_request({"metadata": {"annotations": {TYPE: 1}}, "spec": {}}), policy_with(), None)
    assert {each.path.startswith("request.object.") for each in caught.value.errors} == {True}


TRAINING = make_pod("p").annotate(TYPE, "training").gpu(1)
HUGE = TRAINING.spec(nodeSelector={f"key-{number}": "x" * 60 for number in range(5000)})
# What keeps a pod from being placed, an earlier one first.
OBSTACLES = ("the placement check is off", "no view of the cluster", "old", "the scorer cannot read the pod")


@pytest.mark.parametrize("present", [*product((False, True), repeat=4)])
def test_the_first_obstacle_to_a_prediction_is_its_reason(present: tuple[bool, ...]) -> None:
    is_off, has_no_scorer, is_stale, is_huge = present
    policy = policy_with(placementCheck={"mode": "off" if is_off else "warn"})
    snapshot = Snapshot.of([node("a", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": "4"})])
    view = ClusterView(snapshot, None if has_no_scorer else Scheduler(), "old" if is_stale else "")

    found = [admit_pod((HUGE if is_huge else TRAINING).obj(), policy, view)]
    # Without a view, as without a scorer.
    found += [admit_pod(TRAINING.obj(), policy, None)] if has_no_scorer else []

    wanted = next((text for text, holds in zip(OBSTACLES, present, strict=True) if holds), None)
    for each in found:
        assert each.outcome == "Patched"
        if wanted is None:
            assert (each.placement.verdict, each.placement.node) == ("Feasible", "a")
        else:
            assert each.placement.verdict == "Unknown"
            assert each.placement.message.startswith(wanted)


def test_a_cluster_without_nodes_denies_no_pod() -> None:
    policy = policy_with(placementCheck={"mode": "deny"})
    verdict = admit_pod(TRAINING.obj(), policy, ClusterView(Snapshot.of([]), Scheduler()))

    assert verdict.outcome == "Patched"
    assert (verdict.placement.verdict, verdict.placement.message) == ("Unknown", "the view of the cluster has no node")


@pytest.mark.parametrize("nodes", [0, 1])
def test_a_prediction_that_the_deadline_ends_has_that_reason_also_without_nodes(nodes: int) -> None:
    snapshot = Snapshot.of([node("a", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": "4"})] * nodes)
    result = evaluate(read_pod(make_request(TRAINING.obj()), None), policy_with())
    assert isinstance(result, Mutated)
    assert isinstance(result.signature, PodSignature)

    placement = predict(result, policy_with(), ClusterView(snapshot, Scheduler()), lambda: True)

    assert (placement.verdict, placement.total, placement.is_final) == ("Unknown", 0, False)
    assert "no node" not in placement.message


def test_pods_of_a_template_are_predicted_on_different_nodes_of_equal_score() -> None:
    nodes = [node(f"n{number}", labels={USAGE: "training"}, capacity={"nvidia.com/gpu": "4"}) for number in range(8)]
    view = ClusterView(Snapshot.of(nodes), Scheduler())

    def chosen(pod: PodBuilder, namespace: str = "default") -> str | None:
        verdict = admit_pod(pod.obj(), policy_with(), view, namespace=namespace)
        assert verdict.outcome == "Patched"
        return verdict.placement.node

    pods = [make_pod(f"p{number}").annotate(TYPE, "training").gpu(1) for number in range(12)]
    assert len({chosen(pod) for pod in pods}) > 2
    assert len({chosen(pods[0], f"team-{number}") for number in range(12)}) > 2
    volume = "kube-api-access-{}"
    generated = [
        pods[0].generate_name("web-").spec(volumes=[{"name": volume.format(number), "projected": {"sources": []}}])
        for number in range(12)
    ]
    assert len({chosen(pod) for pod in generated}) > 2


GANG = GangFit("bert", 4, 2, 0, next_message="0/1 nodes.")
STARTED = replace(GANG, own=Placement("Feasible", "n", 1, 1, ""))
EVICTS = PredictedPreemption(
    ("n",), (RunningPod.of(make_pod("low").obj())._replace(namespace="lab"),), 1, 1, candidates=1
)
IN_PART = (
    "2 of the 4 pods of gang bert would start and hold what they request while the others wait, and two such gangs can "
    "deadlock: scheduler volcano starts pods one by one"
)
EVICTION = "kube-scheduler would evict 1 pod of lower priority on n"


def result_of(injection: Injection) -> Mutated:
    """Return a mutated pod for `conclude`, which reads its injection and the namespace of its content."""
    content = SimpleNamespace(request=SimpleNamespace(identity=SimpleNamespace(namespace="default")))
    return cast("Mutated", SimpleNamespace(injection=injection, content=content))


def injection(mode: CheckMode, operations: list[Any], *, in_gang: bool) -> Injection:
    gang = GangRequest("bert", 4, "volcano", starts_whole=False) if in_gang else None
    references = PodReferences(None, (), "volcano")
    return Injection("training", mode, operations, b"", (RuleOutcome("Spread"),), ("own",), references, gang)


def wanted_warnings(placement: Placement, mode: str) -> list[str]:
    """Return the warnings of an admitted pod, in the order in which users read them."""
    found = ["own", "of the cluster"]
    if placement.verdict in ("Feasible", "Unknown") and not placement.deny_exemption:
        return found
    gang = placement.gang
    text = placement.message
    if gang is not None and gang.next_message:
        text = "2 of 4 pods of gang bert fit now; the next: 0/1 nodes."
    found += [f"placement check: {placement.verdict}: {text}"]
    if gang is not None and gang.own is not None:
        found.append(IN_PART)
    found += ["placement check: not refused: doubt"] if placement.deny_exemption and mode == "deny" else []
    evicts = placement.preemption is not None and placement.verdict == "Waiting" and gang is None
    if evicts:
        found += [f"placement check: {EVICTION}"]
    else:
        found += [f"placement check: suggestion: {text}" for text in placement.suggestions[:1]]
    return found + [f"placement check: {text}" for text in placement.overdue]


@pytest.mark.parametrize("mode", get_args(CheckMode))
@pytest.mark.parametrize("verdict", get_args(PlacementVerdict))
def test_the_verdict_and_the_order_of_its_warnings(mode: CheckMode, verdict: PlacementVerdict) -> None:
    choices: list[tuple[Any, ...]] = [
        ("", "doubt"), ((), ("first", "second")), (None, GANG, STARTED, replace(GANG, next_message="")),
        (None, EVICTS), ((), ("late", "later")), ([], [{"op": "remove", "path": "/x"}]),
    ]  # fmt: skip
    for doubt, suggestions, gang, preemption, overdue, operations in product(*choices):
        placement = Placement(
            verdict, None, 3, 0, "0/3 nodes.", suggestions=suggestions, deny_exemption=doubt, gang=gang,
            preemption=preemption, overdue=overdue,
        )  # fmt: skip
        made = injection(mode, operations, in_gang=gang is not None)
        found = conclude(result_of(made), placement, ("of the cluster",))

        if verdict == "Infeasible" and mode == "deny" and not doubt:
            assert isinstance(found, DeniedPlacement)
            assert (found.placement, found.rules) == (placement, made.rules)
            assert found.warnings == ("own", "of the cluster")
            ending = " Suggestion: first." if suggestions else ""
            assert found.denial.message == f"no node of this cluster can take this pod as it is: 0/3 nodes.{ending}"
        else:
            assert isinstance(found, Allowed)
            assert found.outcome == ("Patched" if operations else "Unchanged")
            assert found.placement is placement
            assert [*found.warnings] == wanted_warnings(placement, mode)


@pytest.mark.parametrize(("most", "begin"), [(None, "no node of this cluster can take this pod"), (0, "this cluster")])
def test_a_denied_gang_is_one_that_an_empty_cluster_cannot_run(most: int | None, begin: str) -> None:
    placement = Placement("Infeasible", None, 3, 0, "0/3 nodes.", gang=replace(GANG, most=most))
    found = conclude(result_of(injection("deny", [], in_gang=True)), placement, ())

    assert isinstance(found, DeniedPlacement)
    assert found.denial.message.startswith(begin)


NAMING = TRAINING.annotate(PRODUCT, "NVIDIA-B300").spec(priorityClassName="gone", schedulerName="volcano")
# A warning about each name in the pod that the cluster does not have, in the order in which users read them.
OF_CLUSTER = (
    "gpu-product: no node has NVIDIA-B300",
    "gpu-memory: no node",
    "scheduler volcano: no sign that it runs",
    "PriorityClass gone does not exist",
)


def warned(pod: PodBuilder, *, stale: str = "", **spec: Any) -> list[str]:
    nodes = [make_node_object("n", labels={USAGE: "training"}, taints=["nvidia.com/gpu.product=NVIDIA-A10:NoSchedule"])]
    of_system = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 2_000_001_000}
    of_system["metadata"] = {"name": "system-node-critical"}
    snapshot = snapshot_from_documents([Document("c", each) for each in (*nodes, of_system)])
    snapshot.scheduler_evidence = SchedulerEvidence(frozenset(), "", "")
    view = ClusterView(snapshot, Scheduler(), stale)
    result = evaluate(PodContent(make_request(pod.obj()), {}), policy := policy_with(**spec))
    assert isinstance(result, Mutated)
    return [*cluster_warnings(result, policy, view)]


def test_names_that_the_cluster_lacks_are_warned_of_in_order() -> None:
    found = warned(NAMING.annotate(f"{DOMAIN}/gpu-memory", "80Gi"))

    assert [text.startswith(begin) for text, begin in zip(found, OF_CLUSTER, strict=True)] == [True] * len(OF_CLUSTER)
    # The scheduler that the pod names itself is not one of the policy.
    assert not any("scheduler other" in text for text in warned(NAMING.spec(schedulerName="other")))


@pytest.mark.parametrize(
    ("stale", "mode", "is_warned"), [("", "warn", True), ("old", "warn", False), ("", "off", False)]
)
def test_names_are_looked_up_in_a_current_view_unless_the_check_is_off(
    stale: str, mode: str, *, is_warned: bool
) -> None:
    assert bool(warned(NAMING, stale=stale, placementCheck={"mode": mode})) is is_warned


def test_a_product_that_no_node_offers_a_pod_of_the_namespace_is_warned_of() -> None:
    allowed = {"NVIDIA-A10": ["team-b"]}

    missing = "gpu-product is missing: the policy restricts products in this namespace (allowedProducts)"
    assert [each for each in warned(TRAINING, allowedProducts={"*": [], **allowed}) if each.startswith(missing)]
    assert [each for each in warned(TRAINING) if each.startswith(missing)] == []
