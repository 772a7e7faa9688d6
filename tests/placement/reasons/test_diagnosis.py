"""Each node's own reasons, and the message that counts them."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.oracles.strategies import clusters, pending_pods
from tests.support.effort import examples
from tests.support.objects.builders import make_node_object, make_pod, match_expressions
from tests.support.plugins import node
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.deadline import never
from webhook.placement.batch_profiles.kai import KAI
from webhook.placement.batch_profiles.volcano import VOLCANO
from webhook.placement.framework.fit_error import fit_error
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.reasons.diagnosis import explain_in_detail, rejecting_plugins
from webhook.placement.scheduler import PodSignature, Scheduler

Object = dict[str, Any]


def test_a_node_has_the_reasons_of_the_first_plugin_that_rejects_it() -> None:
    pod = make_pod().gpu(8).requests(cpu="100").node_selector("pool", "a")
    snapshot = Snapshot.of(
        [
            node("cordoned", unschedulable=True, taints=["use=x:NoSchedule"]),
            node("full", labels={"pool": "a"}, capacity={"nvidia.com/gpu": 4}),
            node("tainted", taints=["use=x:NoSchedule"]),
            node("unlabelled"),
            node("wide", labels={"pool": "a"}, capacity={"cpu": 128, "nvidia.com/gpu": 8}),
        ]
    )

    assert Scheduler().explain(PodSignature.of(pod.obj()), snapshot) == {
        "cordoned": ("node(s) were unschedulable",),
        "full": ("Insufficient nvidia.com/gpu", "Insufficient cpu"),
        "tainted": ("node(s) had untolerated taint(s)",),
        "unlabelled": ("node(s) didn't match Pod's node affinity/selector",),
    }


def test_a_node_left_out_beforehand_is_explained_by_that_alone() -> None:
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    snapshot = Snapshot.of([node("a"), node("b", taints=["use=x:NoSchedule"])])

    reasons = Scheduler().explain(PodSignature.of(make_pod().require_node(by_name).obj()), snapshot)

    assert reasons == {"b": ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)}


def test_a_refusal_is_the_reason_of_every_node() -> None:
    names = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in "ab"]
    pod = make_pod().require_node({"matchFields": names} | match_expressions(("pool", "Exists", [])))
    snapshot = Snapshot.of([node("a"), node("b")])

    reasons = Scheduler().explain(PodSignature.of(pod.obj()), snapshot)

    assert reasons == {"a": ("pod affinity terms conflict",), "b": ("pod affinity terms conflict",)}


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cluster=clusters(), pod=pending_pods())
def test_the_message_counts_these_reasons(cluster: tuple[list[Object], list[Object]], pod: Object) -> None:
    nodes, running = cluster
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*nodes, *running))
    framework, question = Scheduler(), PodSignature.of(pod)

    placement, reasons = framework.answer(question, snapshot), framework.explain(question, snapshot)

    assert len(reasons) == placement.total - placement.feasible
    assert set(reasons).isdisjoint(placement.scores)
    # A pre-filter that leaves no node has one reason for all, without a number.
    is_counted = not any(each in placement.message for each in ("conflict", "simultaneously"))
    if placement.total and not placement.feasible and is_counted:
        counts = Counter(reason for each in reasons.values() for reason in each)
        assert fit_error(placement.total, counts) == placement.message


_ONLY_A = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}


def test_node_that_a_pod_is_nominated_to_is_asked_about_though_it_is_left_out_beforehand() -> None:
    """Of the others the plugin that rejects it is counted, too: kube-scheduler reports both."""
    pod = make_pod().require_node(_ONLY_A).gpu(9).status(nominatedNodeName="b")
    snapshot = Snapshot.of([node("a"), node("b", taints=["use=x:NoSchedule"]), node("c")])

    reasons = Scheduler().explain(PodSignature.of(pod.obj()), snapshot)

    assert reasons == {
        "a": ("Insufficient nvidia.com/gpu",),
        "b": ("node(s) had untolerated taint(s)",),
        "c": ("node(s) didn't satisfy plugin(s) [NodeAffinity TaintToleration]",),
    }


def test_nominated_node_that_can_take_the_pod_is_the_reason_of_all_others() -> None:
    pod = make_pod().status(nominatedNodeName="b")
    snapshot = Snapshot.of([node("a"), node("b"), node("c", unschedulable=True)])

    reasons = Scheduler().explain(PodSignature.of(pod.obj()), snapshot)

    assert reasons == dict.fromkeys("ac", ("not looked at: the pod is nominated to b",))


def test_nominated_node_that_is_left_out_beforehand_has_the_reason_of_its_first_filter() -> None:
    pod = make_pod().require_node(_ONLY_A).status(nominatedNodeName="b")
    snapshot = Snapshot.of([node("a", unschedulable=True), node("b"), node("c")])

    reasons = Scheduler().explain(PodSignature.of(pod.obj()), snapshot)

    assert reasons == {
        "a": ("node(s) were unschedulable",),
        "b": ("node(s) didn't match Pod's node affinity/selector",),
        "c": ("node(s) didn't satisfy plugin(s) [NodeAffinity]",),
    }


@pytest.mark.parametrize(
    ("cards", "nominated", "reasons"),
    [
        pytest.param(4, 4, ("Insufficient nvidia.com/gpu",), id="with and without the nominated pod"),
        pytest.param(0, 4, ("Insufficient nvidia.com/gpu",), id="only with it"),
        pytest.param(4, 0, ("Insufficient nvidia.com/gpu",), id="without any"),
    ],
)
def test_reason_counts_once_on_a_node_with_nominated_pods(cards: int, nominated: int, reasons: tuple[str, ...]) -> None:
    """kube-scheduler filters such a node with its nominated pods, then without them, and stops at the first failure."""
    running = make_pod("runs").gpu(cards).node_name("a")
    waits = make_pod("waits").gpu(nominated).spec(priority=9).status(phase="Pending", nominatedNodeName="a")
    objects = [make_node_object("a", capacity={"nvidia.com/gpu": 8})]
    objects += [each.obj() for each, count in ((running, cards), (waits, nominated)) if count]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)

    assert Scheduler().explain(PodSignature.of(make_pod().gpu(8).obj()), snapshot) == {"a": reasons}


def test_details_name_the_taint_the_amounts_and_the_label_values() -> None:
    pod = make_pod().gpu(2).requests(cpu="100").node_selector("pool", "a")
    labels = {"pool": "a"}
    snapshot = Snapshot.of(
        [
            node("cordoned", unschedulable=True),
            node("full", labels=labels, capacity={"nvidia.com/gpu": 1, "cpu": "1500m"}),
            node("other", labels={"pool": "b"}),
            node("tainted", labels=labels, taints=["use=x:NoSchedule"]),
            node("unlabelled"),
        ]
    )

    assert explain_in_detail(DEFAULT, PodSignature.of(pod.obj()).info.normalized_for(snapshot), snapshot) == {
        "cordoned": ("node(s) were unschedulable",),
        "full": ("wants 2 nvidia.com/gpu, free 1 of 1", "wants 100 cpu, free 1500m of 1500m"),
        "other": ("wants pool In [a], has b",),
        "tainted": ("untolerated taint use=x:NoSchedule",),
        "unlabelled": ("wants pool In [a], has none",),
    }


@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cluster=clusters(), pod=pending_pods())
def test_details_have_the_nodes_and_the_number_of_reasons_of_the_words(
    cluster: tuple[list[Object], list[Object]], pod: Object
) -> None:
    nodes, running = cluster
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*nodes, *running))
    framework, question = Scheduler(), PodSignature.of(pod)

    words = framework.explain(question, snapshot)
    details = explain_in_detail(DEFAULT, question.info.normalized_for(snapshot), snapshot)

    assert {name: len(each) for name, each in details.items()} == {name: len(each) for name, each in words.items()}


def test_details_are_those_of_all_terms() -> None:
    """A node needs to match one of several terms, so it surely lacks only a label that all of them require."""
    terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": [value]}]} for value in "ab"]

    def details(*chosen: Object) -> Mapping[str, tuple[str, ...]]:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*chosen]}}
        pod, snapshot = make_pod().affinity({"nodeAffinity": required}), Snapshot.of([node("c", labels={"pool": "c"})])
        return explain_in_detail(DEFAULT, PodSignature.of(pod.obj()).info.normalized_for(snapshot), snapshot)

    assert details(terms[0]) == {"c": ("wants pool In [a], has c",)}
    assert details(*terms) == {"c": ("node(s) didn't match Pod's node affinity/selector",)}
    usage = {"key": "usage", "operator": "Exists"}
    with_usage = [{"matchExpressions": [*each["matchExpressions"], usage]} for each in terms]
    assert details(*with_usage) == {"c": ("wants usage Exists, has none",)}
    assert details(*with_usage, {}) == {"c": ("node(s) didn't match Pod's node affinity/selector",)}


def test_amounts_are_no_reason_on_a_node_that_is_kept_for_another_pod() -> None:
    full = make_pod("full").gpu(8).spec(priority=0).status(phase="Pending", nominatedNodeName="a").obj()
    objects = [make_node_object("a", capacity={"nvidia.com/gpu": 8}), full]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    info = PodSignature.of(make_pod().gpu(8).spec(priority=0).obj()).info.normalized_for(snapshot)

    assert explain_in_detail(DEFAULT, info, snapshot) == {"a": ("Insufficient nvidia.com/gpu",)}


def test_node_of_a_batch_scheduler_has_the_reasons_of_later_plugins_after_one_that_goes_on() -> None:
    busy = make_pod("busy").node_name("a").host_port(80)
    snapshot = Snapshot.of([node("a", busy, labels={"zone": "z"})])
    spread = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    pod = make_pod().requests(cpu="1").host_port(80).spec(topologySpreadConstraints=[spread])

    reasons = {
        profile.name: Scheduler(profile).explain(PodSignature.of(pod.obj()), snapshot)["a"]
        for profile in (DEFAULT, VOLCANO)
    }

    ports = "node(s) didn't have free ports for the requested pod ports"
    unlabelled = "node(s) didn't match pod topology spread constraints (missing required label)"
    assert reasons == {DEFAULT.name: (ports,), "volcano": (ports, unlabelled)}


def test_summary_of_a_batch_scheduler_leaves_each_node_its_own_reason() -> None:
    snapshot = Snapshot.of([node("a", capacity={"nvidia.com/gpu": 4, "cpu": 8}), node("b", capacity={"cpu": 8})])
    signature = PodSignature.of(make_pod().scheduler("kai-scheduler").gpu(8).obj())

    assert Scheduler(KAI).answer(signature, snapshot).message.startswith("Max GPU resources available")
    short = "node(s) didn't have enough resources: GPUs"
    assert Scheduler(KAI).explain(signature, snapshot) == {"a": (short,), "b": (short,)}


def test_first_plugin_that_rejects_the_nominated_node_is_named_alone() -> None:
    pod = make_pod().require_node(_ONLY_A).gpu(9).status(nominatedNodeName="b")
    snapshot = Snapshot.of([node("a"), node("b", unschedulable=True, taints=["use=x:NoSchedule"])])
    info = PodSignature.of(pod.obj()).info.normalized_for(snapshot)

    found = [rejecting_plugins(DEFAULT, info, snapshot, snapshot.rows[name], never) for name in "ab"]

    assert found == [frozenset({"NodeResourcesFit"}), frozenset({"NodeUnschedulable"})]
