"""What `check` reports of the evictions that DefaultPreemption does not decide."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.batch_objects import pod_group, volcano_configuration
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.devices import (
    allocated,
    claiming,
    exactly,
    make_cards,
    make_device_class,
    make_resource_claim,
    make_slice,
)
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import fake_api

LOW, HIGH = {"priority": 0}, {"priority": 100}
NO_DEVICES = "preemption frees no devices: kube-scheduler evicts no pod for the devices of ResourceClaims"
GROUP = {"schedulingGroup": {"podGroupName": "g"}}


def of_scheduler(name: str) -> PodBuilder:
    return make_pod("asks").gpu(1).scheduler(name).spec(**HIGH)


def check(run: Run, folder: Path, pod: PodBuilder, *objects: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of `pod` on a node whose only card a pod of lower priority has, with these `objects`."""
    node = make_node_object("n", capacity={"nvidia.com/gpu": 1})
    cluster = folder / "cluster.json"
    cluster.write_text(as_list(node, make_pod("low").node_name("n").gpu(1).spec(**LOW), *objects))
    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(pod))
    found: dict[str, Any] = lines(outcome.output)[-1]
    return found


def claimed(*claims: str, **spec: Any) -> PodBuilder:
    return make_pod("asks").namespace("default").spec(resourceClaims=claiming(*claims), **HIGH, **spec)


def devices(cards: int) -> list[dict[str, Any]]:
    """The objects of a node with so many cards, one of them in use, and of a claim for one."""
    used = make_resource_claim("used", exactly())
    return [
        make_device_class(),
        make_slice("n", *make_cards(cards)),
        allocated(used, "n", "card-0"),
        make_resource_claim("own", exactly()),
    ]


@pytest.mark.parametrize(
    ("actions", "note"),
    [
        ("enqueue, allocate, backfill", "Volcano evicts no pod: its configuration has no action preempt or reclaim"),
        ("allocate, preempt", "not known: Volcano may evict pods of its queue (action preempt)"),
        ("allocate, reclaim", "not known: Volcano may evict pods of other queues (action reclaim)"),
        (
            "preempt, reclaim",
            "not known: Volcano may evict pods of its queue or of other queues (actions preempt, reclaim)",
        ),
        ("allocate, shuffle", "not known: Volcano may evict pods (action shuffle)"),
    ],
)
def test_volcano_evicts_by_the_actions_of_its_configuration(run: Run, tmp_path: Path, actions: str, note: str) -> None:
    line = check(run, tmp_path, of_scheduler("volcano"), volcano_configuration(f'actions: "{actions}"\n'))

    assert (line["verdict"], line["preemptionNote"]) == ("Waiting", note)
    assert "preemption" not in line


@pytest.mark.parametrize(
    ("scheduler", "start", "reason"),
    [
        ("volcano", "not known: ", "its ConfigMap volcano-system/volcano-scheduler-configmap is not known"),
        ("kai-scheduler", "not known: KAI may evict pods", "searches scenarios"),
    ],
)
def test_evictions_that_are_not_known_have_their_reason(
    run: Run, tmp_path: Path, scheduler: str, start: str, reason: str
) -> None:
    note = check(run, tmp_path, of_scheduler(scheduler))["preemptionNote"]

    assert note.startswith(start)
    assert reason in note


@pytest.mark.parametrize(
    ("topology", "end"),
    [
        pytest.param({}, "at once", id="without a topology"),
        pytest.param({"topology": [{"key": "rack"}]}, "at once, in a domain of rack of its choice", id="with one"),
    ],
)
def test_evictions_for_a_native_pod_group_are_not_known(
    run: Run, tmp_path: Path, topology: dict[str, Any], end: str
) -> None:
    group = pod_group("g", group="scheduling.k8s.io", members=1)
    group["spec"] |= {"schedulingConstraints": topology, "priority": 100}

    line = check(run, tmp_path, of_scheduler("default-scheduler").spec(**GROUP), group)

    assert line["verdict"] == "Waiting"
    assert line["preemptionNote"] == f"not known: kube-scheduler evicts pods for all pods of PodGroup g {end}"
    assert "preemption" not in line


@pytest.mark.parametrize("pod", [claimed("own"), claimed("own").gpu(1)], ids=["devices", "devices and a card"])
def test_no_eviction_frees_devices_of_claims(run: Run, tmp_path: Path, pod: PodBuilder) -> None:
    line = check(run, tmp_path, pod, *devices(cards=1))

    assert (line["verdict"], line["preemptionNote"]) == ("Waiting", NO_DEVICES)
    assert "preemption" not in line


@pytest.mark.parametrize(
    ("pod", "cards"),
    [
        pytest.param(of_scheduler("default-scheduler"), 1, id="waits for a card that a pod has"),
        pytest.param(claimed("own").gpu(1), 2, id="waits for a card, and its devices are free"),
        pytest.param(claimed("own", preemptionPolicy="Never"), 1, id="never preempts"),
        pytest.param(claimed("own"), 2, id="waits for nothing"),
        pytest.param(of_scheduler("volcano").gpu(2), 1, id="Infeasible"),
        pytest.param(of_scheduler("volcano").spec(schedulingGates=[{"name": "a"}]), 1, id="gated"),
    ],
)
def test_other_pods_have_no_note(run: Run, tmp_path: Path, pod: PodBuilder, cards: int) -> None:
    assert "preemptionNote" not in check(run, tmp_path, pod, *devices(cards))


def test_text_and_explain_have_the_note(run: Run, tmp_path: Path) -> None:
    pod = of_scheduler("volcano").namespace("default")
    cluster = tmp_path / "cluster.json"
    node = make_node_object("n", capacity={"nvidia.com/gpu": 1})
    cluster.write_text(as_list(node, make_pod("low").node_name("n").gpu(1).spec(**LOW), pod))

    checked = run("check", "-f", "-", "--cluster", cluster, stdin=as_list(of_scheduler("volcano")))
    explained = run("explain", "pod/asks", "--cluster", cluster)

    for each in (checked, explained):
        assert "\n  not known: Volcano may evict pods of its queue" in each.output


@pytest.mark.parametrize(
    ("served", "note"),
    [
        pytest.param(
            {"data": {"volcano-scheduler.conf": "actions: allocate\n"}}, "Volcano evicts no pod", id="readable"
        ),
        pytest.param(None, "not known: Volcano may evict pods of its queue", id="absent"),
    ],
)
def test_configuration_is_read_by_its_name_in_a_live_cluster(
    run: Run, tmp_path: Path, served: dict[str, Any] | None, note: str
) -> None:
    node = make_node_object("n", capacity={"nvidia.com/gpu": 1})
    lists = {
        "/api/v1/namespaces": [],
        "/api/v1/nodes": [node],
        "/api/v1/pods": [make_pod("low").node_name("n").gpu(1).obj()],
        "/apis/coordination.k8s.io/v1/leases": [],
    }
    path = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
    with fake_api() as api:
        api.objects = {each: {"metadata": {"resourceVersion": "7"}, "items": items} for each, items in lists.items()}
        api.objects["/apis"] = {"groups": [{"name": "scheduling.volcano.sh"}]}
        if served is not None:
            api.objects[path] = volcano_configuration("") | served
        stdin = as_list(of_scheduler("volcano"))
        outcome = run("check", "-f", "-", "--kubeconfig", api.kubeconfig(tmp_path), "-o", "json", stdin=stdin)

    assert lines(outcome.output)[0]["preemptionNote"].startswith(note)


def test_a_pod_evicts_others_once_the_pods_before_it_have_their_room(run: Run, tmp_path: Path) -> None:
    cluster, node = tmp_path / "cluster.json", make_node_object("n", capacity={"nvidia.com/gpu": 2})
    first = make_pod("first").gpu(1).spec(**HIGH).creation("2026-05-01T08:00:00Z")
    cluster.write_text(as_list(node, make_pod("low").node_name("n").gpu(1).spec(**LOW), first))

    output = run("check", "-f", "-", "--cluster", cluster, stdin=as_list(of_scheduler("default-scheduler"))).output

    assert "It would fit, but 1 pod that waits before it needs the room." in output
    assert "\n  kube-scheduler would evict 1 pod on n: default/low (priority 0, 1 card)\n" in output
    assert "\n  would fit without the pods that wait before it: n\n" in output
    assert "would fit if running pods were gone" not in output


def test_preemption_frees_no_devices_of_one_of_the_nodes(run: Run, tmp_path: Path) -> None:
    """The other node has a free card, and no room beside a pod of higher priority."""
    full = make_pod("full").node_name("m").requests(cpu=1).spec(priority=200).obj()
    other = make_node_object("m", capacity={"cpu": 1}), make_slice("m", *make_cards(1)), full

    line = check(run, tmp_path, claimed("own").requests(cpu=1), *devices(1), *other)

    assert (line["verdict"], line["preemptionNote"]) == ("Waiting", NO_DEVICES)
