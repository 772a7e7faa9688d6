"""Each node's own reasons, and the message that counts them."""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.oracles.strategies import clusters, pending_pods
from tests.support.effort import examples
from tests.support.objects.builders import make_pod, match_expressions
from tests.support.plugins import node
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.placement.framework.fit_error import fit_error
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.reasons.diagnosis import explain_in_detail
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
    if placement.total and not placement.feasible and "conflict" not in placement.message:
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
