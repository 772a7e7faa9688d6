"""What a snapshot holds of its nodes and their pods."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.pods.waiting_nodes import info_of
from tests.support.objects.builders import make_node_object, make_pod
from webhook.cluster.dra.devices import NO_DEVICES
from webhook.cluster.index.labels import LabelColumns
from webhook.cluster.node_info import Node, RunningPod
from webhook.cluster.objects.priority_class import PriorityClass
from webhook.cluster.objects.selecting_objects import SelectingObjects
from webhook.cluster.pods.nominated_pods import NominatedPods
from webhook.cluster.snapshot import LARGEST_AMOUNT, Namespace, Snapshot
from webhook.cluster.storage.csi import NO_CSI
from webhook.cluster.storage.storage import NO_STORAGE
from webhook.kube.pod.ports import HostPort
from webhook.kube.pod.taints import Taint
from webhook.kube.selectors import requirement_matches

_MI = 1024 * 1024


def test_rows_are_in_the_order_of_names() -> None:
    snapshot = Snapshot.of([info_of("b"), info_of("c"), info_of("a")])
    assert [info.node.name for info in snapshot.nodes] == ["a", "b", "c"]
    assert snapshot.rows == {"a": 0, "b": 1, "c": 2}


def test_pods_are_summed_by_node() -> None:
    pod = make_pod().requests(cpu="1").gpu(2)
    snapshot = Snapshot.of([info_of("a", pod, pod), info_of("b"), info_of("c", pod)])
    assert snapshot.requested("nvidia.com/gpu").tolist() == [4, 0, 2]
    assert snapshot.non_zero_requested("cpu").tolist() == [2000, 0, 1000]
    assert snapshot.non_zero_requested("memory").tolist() == [400 * _MI, 0, 200 * _MI]
    assert snapshot.requested("memory").tolist() == [0, 0, 0]
    assert snapshot.load.pods.tolist() == [2, 0, 1]


def test_resource_that_no_node_has_is_none_everywhere() -> None:
    assert Snapshot.of([info_of("a")]).allocatable("amd.com/gpu").tolist() == [0]


def test_equal_taints_are_one_class() -> None:
    taint = "use=training:NoSchedule"
    taints = Snapshot.of([info_of("a", taints=[taint]), info_of("b"), info_of("c", taints=[taint])]).taints
    assert taints.classes == ((Taint("use", "training", "NoSchedule"),), ())
    assert taints.class_of.tolist() == [0, 1, 0]


def test_taken_ports_are_found_by_protocol_and_number() -> None:
    snapshot = Snapshot.of([info_of("a"), info_of("b", make_pod().host_port(80, host_ip="10.0.0.1"))])
    assert snapshot.load.host_ports == {("TCP", 80): ((HostPort("TCP", 80, "10.0.0.1"), 1),)}


def test_emptied_snapshot_has_no_pods_and_the_same_nodes() -> None:
    snapshot = Snapshot.of([info_of("a", make_pod().requests(cpu="1").host_port(80))])
    emptied = snapshot.without_pods()
    assert (
        emptied.requested("cpu").tolist()
        == emptied.non_zero_requested("cpu").tolist()
        == emptied.load.pods.tolist()
        == [0]
    )
    assert emptied.load.host_ports == {}
    assert emptied.allocatable("cpu").tolist() == snapshot.allocatable("cpu").tolist() == [64000]


_WAITING = RunningPod.of(make_pod("waits").node_name("a").obj())


def test_other_nodes_are_those_of_the_same_cluster() -> None:
    snapshot = replace(
        Snapshot.of(
            [info_of("a", make_pod())],
            {"x": Namespace({}, {})},
            generation=7,
            workloads=SelectingObjects({}),
            storage=replace(NO_STORAGE),
            csi=replace(NO_CSI),
            devices=replace(NO_DEVICES),
            priority_classes={"high": PriorityClass("high", 1000)},
            full_quotas={"team-a": "none"},
        ),
        nominated=NominatedPods.of([_WAITING]),
    )
    changed = snapshot.with_nodes([info_of("b")], 8)
    assert [info.node.name for info in changed.nodes] == ["b"]
    assert changed.generation == 8
    for field in (
        "namespaces",
        "workloads",
        "storage",
        "csi",
        "devices",
        "priority_classes",
        "full_quotas",
        "nominated",
    ):
        assert getattr(changed, field) is getattr(snapshot, field), field


def test_columns_cannot_be_written() -> None:
    snapshot = Snapshot.of([info_of("a")])
    for column in (
        snapshot.allocatable("cpu"),
        snapshot.requested("cpu"),
        snapshot.non_zero_requested("cpu"),
        snapshot.load.pods,
    ):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_huge_amounts_are_cut_so_that_scores_stay_in_an_int64() -> None:
    snapshot = Snapshot.of([info_of("a", capacity={"memory": "8Ei"})])
    assert snapshot.allocatable("memory").tolist() == [LARGEST_AMOUNT]
    assert np.iinfo(np.int64).max >= LARGEST_AMOUNT * 100


def test_capacity_replaces_a_missing_allocatable_but_not_an_empty_one() -> None:
    node = make_node_object("a")
    node["status"] = {"capacity": {"cpu": "4", "pods": "9"}}
    assert (Node.of(node).allocatable, Node.of(node).allowed_pods) == ({"cpu": 4000}, 9)
    node["status"]["allocatable"] = {}
    assert (Node.of(node).allocatable, Node.of(node).allowed_pods) == ({}, 0)


def test_namespace_without_metadata_has_nothing() -> None:
    assert Namespace.of({}) == Namespace({}, {})


_values = st.sampled_from(("a", "b", "3", "07", ""))
_label_sets = st.dictionaries(st.sampled_from(("k", "l")), _values)


@given(
    labels=st.lists(_label_sets, max_size=6),
    key=st.sampled_from(("k", "l", "absent")),
    operator=st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like")),
    values=st.lists(st.one_of(_values, st.just("unknown")), max_size=3),
)
def test_columns_answer_as_each_node_would(
    labels: list[dict[str, str]], key: str, operator: str, values: list[str]
) -> None:
    requirement = {"key": key, "operator": operator, "values": values}
    answers = LabelColumns(labels).matches(key, operator, values)
    assert answers.tolist() == [requirement_matches(requirement, each) for each in labels]
