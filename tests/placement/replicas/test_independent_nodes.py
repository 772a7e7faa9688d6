"""Copies counted on each node at once, beside the same pods placed one after the other."""

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.views import made_anew
from webhook.cluster.node_info import RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.update import updated
from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.replicas.independent_nodes import are_nodes_independent, fill
from webhook.placement.scheduler import PodSignature, Scheduler

Object = dict[str, Any]
GPU, ZONE, HOST = "nvidia.com/gpu", "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SCHEDULER = Scheduler()


def term(key: str, app: str) -> Object:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def apart(key: str, app: str = "web") -> Object:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(key, app)]}}


def spread(when: str, key: str = ZONE) -> Object:
    selector = {"matchLabels": {"app": "web"}}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}


def nominated(name: str, node: str, priority: int, pod: PodBuilder) -> Object:
    found = pod.spec(priority=priority).status(phase="Pending", nominatedNodeName=node).obj()
    found["metadata"]["name"] = name
    return found


def nodes(*names: str, cards: int = 8, pods: int = 110, zone: str = "z") -> list[Object]:
    return [
        make_node_object(name, labels={HOST: name, ZONE: zone}, capacity={"cpu": 64, GPU: cards, "pods": pods})
        for name in names
    ]


def one_by_one(pod: Object, snapshot: Snapshot, row: int, most: int) -> int:
    """Return how many copies the filters let onto the node in `row`, each after the earlier ones."""
    signature, running = PodSignature.of(pod), RunningPod.of(pod)
    for count in range(most):
        if not SCHEDULER.feasible(signature, snapshot)[row]:
            return count
        info = snapshot.nodes[row].with_pods((running._replace(node_name=snapshot.nodes[row].node.name),))
        snapshot = updated(snapshot, [info], snapshot.generation + 1)
    return most


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Object, list[Object]]:
    """Draw a pod, and nodes with running and nominated pods."""
    web = make_pod("p").namespace("default").label("app", "web").gpu(draw(st.integers(0, 3)))
    if draw(st.booleans()):
        web = web.requests(cpu=draw(st.integers(0, 3)))
    if draw(st.booleans()):
        web = web.affinity(apart(HOST))
    objects = []
    for name in "abc":
        objects += nodes(name, cards=draw(st.integers(0, 9)), pods=draw(st.sampled_from((2, 5, 110))))
        for number in range(draw(st.integers(0, 2))):
            pod = make_pod(f"{name}{number}").namespace("default").gpu(draw(st.integers(0, 3)))
            pod = pod.label("app", draw(st.sampled_from(("web", "db"))))
            if draw(st.booleans()):
                objects.append(pod.node_name(name).status(phase="Running").obj())
            else:
                objects.append(nominated(f"{name}{number}", name, draw(st.sampled_from((-1, 0, 5))), pod))
    return web.spec(priority=0).obj(), objects


@given(clusters())
def test_copies_on_each_node_are_those_that_fit_one_by_one(drawn: tuple[Object, list[Object]]) -> None:
    pod, objects = drawn
    snapshot, signature = made_anew(objects), PodSignature.of(pod)
    assert are_nodes_independent(SCHEDULER, signature, snapshot)

    filled = fill(SCHEDULER, signature, RunningPod.of(pod), snapshot, most=12)

    wanted = [one_by_one(pod, snapshot, row, 12) for row in range(len(snapshot.nodes))]
    assert filled.copies.tolist() == wanted
    assert filled.is_complete == all(each < 12 for each in wanted)
    assert (filled.snapshot.load.pods - snapshot.load.pods).tolist() == wanted
    used = filled.snapshot.requested(GPU) - snapshot.requested(GPU)
    assert used.tolist() == [each * dict(signature.info.requests).get(GPU, 0) for each in wanted]
    assert not SCHEDULER.feasible(signature, filled.snapshot)[np.array(wanted) < 12].any()


@pytest.mark.parametrize(
    ("pod", "others", "is_independent"),
    [
        pytest.param(make_pod().gpu(1), [], True, id="only amounts"),
        pytest.param(make_pod().label("app", "web").affinity(apart(HOST)), [], True, id="a host for each"),
        pytest.param(make_pod().label("app", "web").affinity(apart(ZONE)), [], False, id="a zone for each"),
        pytest.param(
            make_pod().affinity(
                {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(HOST, "db")]}}
            ),
            [],
            False,
            id="beside another pod",
        ),
        pytest.param(
            make_pod().spec(topologySpreadConstraints=[spread("DoNotSchedule")]), [], False, id="must be spread"
        ),
        pytest.param(
            make_pod().spec(topologySpreadConstraints=[spread("ScheduleAnyway")]), [], True, id="should be spread"
        ),
        pytest.param(
            make_pod(),
            [make_pod("x").node_name("a").affinity(apart(ZONE, "none")).obj()],
            True,
            id="beside a pod that keeps others off",
        ),
        pytest.param(
            make_pod(),
            [nominated("x", "a", 0, make_pod().affinity(apart(ZONE, "none")))],
            False,
            id="beside a nominated pod that keeps others off",
        ),
        pytest.param(make_pod(), [nominated("x", "a", 0, make_pod())], True, id="beside a nominated pod"),
    ],
)
def test_nodes_are_independent_unless_pods_elsewhere_matter(
    pod: PodBuilder, others: list[Object], is_independent: bool
) -> None:
    snapshot = made_anew([*nodes("a", "b"), *others])

    assert are_nodes_independent(SCHEDULER, PodSignature.of(pod.obj()), snapshot) is is_independent


@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"])
def test_default_constraints_of_the_profile_spread_pods_without_their_own(when: str) -> None:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": when}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    profile = {"schedulerName": "s", "pluginConfig": [{"name": "PodTopologySpread", "args": args}]}
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profiles = parse_profiles(orjson.dumps(configuration | {"profiles": [profile]}), "config")
    signature, snapshot = PodSignature.of(make_pod().obj()), made_anew(nodes("a", "b"))

    assert are_nodes_independent(Scheduler(DEFAULT), signature, snapshot)
    assert are_nodes_independent(Scheduler(profiles["s"]), signature, snapshot) is (when == "ScheduleAnyway")
