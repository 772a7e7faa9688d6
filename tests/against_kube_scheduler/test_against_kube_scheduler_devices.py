"""Compare predictions for ResourceSlices and ResourceClaims with the real kube-scheduler."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.against_kube_scheduler.devices_as_predicted import (
    API,
    MODEL,
    assert_pod_as_predicted,
    assert_right,
    make,
    predict,
)
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.oracles.strategies_devices import NODES, device_worlds, parted_worlds
from tests.support.effort import examples
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.devices import (
    DRIVER,
    allocated,
    claiming,
    constrained,
    exactly,
    first_of,
    make_cards,
    make_counters,
    make_device,
    make_device_class,
    make_part,
    make_resource_claim,
    make_shared_device,
    make_slice,
)

Object = dict[str, Any]

_MEMORY = f'device.capacity["{DRIVER}"].memory'
_VERSION = f'device.attributes["{DRIVER}"].driver'
_RACK = "topology.kubernetes.io/rack"

# Four cards of two models on a, of which one is another claim's; two on b; c has none; d's pool lacks a slice.
_WORLD = (
    make_device_class(),
    make_device_class("h100", f'device.driver == "{DRIVER}" && {MODEL} == "H100"'),
    make_slice(
        "a",
        *make_cards(2, model="H100", numa=0, driver="v1.2.3", capacity={"memory": "80Gi"}),
        *make_cards(2, 2, model="A100", numa=1, driver="v1.10.0", capacity={"memory": "40Gi"}),
    ),
    make_slice(
        "b",
        make_device("card-0", {"memory": "80Gi"}, model="NVIDIA H100", numa=0, fast=True, driver="v2.0.0"),
        make_device("card-1", {"memory": "40Gi"}, model="A100", numa=0, driver="v1.2.3-rc.1"),
    ),
    make_slice("d", *make_cards(4, model="H100"), count=2),
    allocated(make_resource_claim("other", exactly()), "a", "card-0"),
)


def _assert_as_predicted(
    cluster: Cluster, *claims: Object, verdict: str, nodes: set[str] | None = None, binds: bool = True
) -> None:
    """kube-scheduler's message for a pod with `claims`, or the `nodes` that it finds, with their scores."""
    make(cluster, *claims)
    names = [claim["metadata"]["name"] for claim in claims]
    pod = make_pod(names[-1]).spec(resourceClaims=claiming(*names))
    assert_pod_as_predicted(cluster, pod, verdict=verdict, nodes=nodes, binds=binds)


def _let_administrators_in(cluster: Cluster) -> None:
    labels = {"resource.kubernetes.io/admin-access": "true"}
    cluster.client.patch("Namespace", cluster.namespace, {"metadata": {"labels": labels}})


def _world(cluster: Cluster) -> None:
    make(cluster, *_WORLD)
    cluster.make_nodes(*(make_node_object(name) for name in ("a", "b", "c", "d")))


@pytest.mark.parametrize(
    ("requests", "nodes"),
    [
        pytest.param([exactly()], {"a", "b"}, id="any"),
        pytest.param([exactly("cards", 3)], {"a"}, id="count"),
        pytest.param([exactly("cards", 1, device_class="h100")], {"a"}, id="class"),
        pytest.param([exactly("cards", 1, f'{MODEL} in ["A100"]'), exactly("more", 1)], {"a", "b"}, id="two requests"),
        pytest.param([exactly("cards", 1, f'{MODEL}.lowerAscii().matches("^.*h100.*$")')], {"a", "b"}, id="pattern"),
        pytest.param([exactly("cards", 1, f'{MODEL}.startsWith("NVIDIA")')], {"b"}, id="text"),
        pytest.param([exactly("cards", 2, f'{_MEMORY}.compareTo(quantity("40Gi")) >= 0')], {"a", "b"}, id="quantity"),
        pytest.param([exactly("cards", 2, f'{_MEMORY}.isLessThan(quantity("60Gi"))')], {"a"}, id="less"),
        pytest.param([exactly("cards", 1, f'{_VERSION}.isGreaterThan(semver("1.9.0"))')], {"a", "b"}, id="version"),
        pytest.param([exactly("cards", 1, f'{_VERSION}.compareTo(semver("1.2.3")) < 0')], {"b"}, id="pre-release"),
        pytest.param(
            [exactly("cards", 1, f'has(device.attributes["{DRIVER}"].fast) && device.attributes["{DRIVER}"].fast')],
            {"b"},
            id="attribute that not all have",
        ),
        pytest.param(
            [exactly("cards", 1, f'"fast" in device.attributes["{DRIVER}"] ? true : {MODEL} != "A100"')],
            {"a", "b"},
            id="conditional",
        ),
        pytest.param(
            [
                exactly(
                    "cards", 1, f'cel.bind(own, device.attributes["{DRIVER}"], own.numa == 0 && own.model == "A100")'
                )
            ],
            {"b"},
            id="bound variable",
        ),
        pytest.param(
            [first_of("cards", best=exactly("", 2, f'{MODEL} == "A100"'), other=exactly("", 2))],
            {"a", "b"},
            id="first available",
        ),
        pytest.param(
            [
                first_of("cards", best=exactly("", 4), good=exactly("", 3), other=exactly("", 2)),
                first_of("more", best=exactly("", 1)),
            ],
            {"a"},
            id="lists",
        ),
    ],
)
def test_claim_that_some_nodes_can_serve(cluster: Cluster, requests: list[Object], nodes: set[str]) -> None:
    _world(cluster)
    _assert_as_predicted(cluster, make_resource_claim("own", *requests), verdict="Feasible", nodes=nodes)


@pytest.mark.parametrize(
    ("claims", "verdict"),
    [
        pytest.param(
            [make_resource_claim("own", exactly("cards", 5))], "Waiting", id="a pool that lacks a slice may come"
        ),
        pytest.param([make_resource_claim("own", exactly("cards", 1, f'{MODEL} == "B200"'))], "Waiting", id="no such"),
        pytest.param(
            [make_resource_claim("own", exactly("cards", 2, device_class="h100"))], "Waiting", id="one is taken"
        ),
        pytest.param(
            [make_resource_claim("x", exactly("cards", 2)), make_resource_claim("y", exactly("cards", 2))],
            "Waiting",
            id="two",
        ),
    ],
)
def test_claim_that_no_node_can_serve_now(cluster: Cluster, claims: list[Object], verdict: str) -> None:
    _world(cluster)
    _assert_as_predicted(cluster, *claims, verdict=verdict)


@pytest.mark.parametrize(
    ("claim", "verdict", "nodes"),
    [
        pytest.param(
            constrained(make_resource_claim("own", exactly("c", 2)), f"{DRIVER}/numa"), "Feasible", {"a", "b"}, id="2"
        ),
        pytest.param(
            constrained(make_resource_claim("own", exactly("c", 3)), f"{DRIVER}/numa"), "Infeasible", None, id="3"
        ),
        pytest.param(
            constrained(make_resource_claim("own", exactly("c", 1), exactly("d", 2)), f"{DRIVER}/numa", "d"),
            "Feasible",
            {"a"},
            id="of one request",
        ),
        pytest.param(
            constrained(make_resource_claim("own", exactly("c", 2)), "other.example.com/numa"),
            "Infeasible",
            None,
            id="none has",
        ),
        pytest.param(make_resource_claim("own", exactly("c", 5)), "Infeasible", None, id="too many"),
        pytest.param(make_resource_claim("own", exactly("c", 0)), "Feasible", {"b"}, id="all, where all are free"),
        pytest.param(
            make_resource_claim("own", exactly("c", 0), exactly("d")), "Infeasible", None, id="all and one more"
        ),
        pytest.param(make_resource_claim("own", exactly("c", 4)), "Waiting", None, id="too many now"),
        pytest.param(
            make_resource_claim("own", first_of("c", best=exactly("", 9), other=exactly("", 4))),
            "Waiting",
            None,
            id="list",
        ),
        pytest.param(
            make_resource_claim("own", exactly("c", 1, "device.driver == 'x'")), "Infeasible", None, id="other driver"
        ),
    ],
)
def test_claim_where_all_pools_are_complete(
    cluster: Cluster, claim: Object, verdict: str, nodes: set[str] | None
) -> None:
    make(cluster, *(each for each in _WORLD if each["spec"].get("nodeName") != "d"))
    cluster.make_nodes(*(make_node_object(name) for name in ("a", "b", "c")))
    _assert_as_predicted(cluster, claim, verdict=verdict, nodes=nodes)


def test_claim_that_has_got_its_devices(cluster: Cluster) -> None:
    _world(cluster)
    own = allocated(make_resource_claim("own", exactly()), "b", "card-0")
    _assert_as_predicted(cluster, own, make_resource_claim("more", exactly()), verdict="Feasible", nodes={"b"})


def test_claim_whose_devices_are_on_a_node_that_will_not_do(cluster: Cluster) -> None:
    _world(cluster)
    shared = allocated(make_resource_claim("own", exactly()), "gone", "card-0")
    shared["status"]["reservedFor"] = [{"resource": "pods", "name": "p", "uid": "1"}, *_RESERVED]
    _assert_as_predicted(cluster, shared, verdict="Waiting")


_RESERVED = [{"resource": "pods", "name": "q", "uid": "2"}]


@pytest.mark.parametrize(
    ("claims", "verdict", "nodes"),
    [
        pytest.param(
            [make_resource_claim("own", exactly("c", 2, adminAccess=True))], "Feasible", {"a", "b"}, id="taken or not"
        ),
        pytest.param(
            [make_resource_claim("own", exactly("c", 0, adminAccess=True))], "Feasible", {"a", "b", "c"}, id="all"
        ),
        pytest.param(
            [make_resource_claim("own", exactly("c", 3, adminAccess=True))], "Infeasible", None, id="too many"
        ),
        pytest.param(
            [make_resource_claim("own", exactly("c", 1, adminAccess=True), exactly("d"))],
            "Feasible",
            {"a", "b"},
            id="and own",
        ),
        pytest.param(
            [make_resource_claim("x", exactly("c", 1, adminAccess=True)), make_resource_claim("y", exactly("c"))],
            "Feasible",
            {"a", "b"},
            id="what an administrator has is not another claim's of the pod",
        ),
        pytest.param(
            [make_resource_claim("x", exactly("c")), make_resource_claim("y", exactly("c", 1, adminAccess=True))],
            "Feasible",
            {"a", "b", "c"},
            id="what another claim of the pod has can be an administrator's",
        ),
        pytest.param(
            [allocated(make_resource_claim("x", exactly("c", 1, adminAccess=True)), "b", "card-1", adminAccess=True)],
            "Feasible",
            {"b"},
            id="that it has got",
        ),
    ],
)
def test_access_of_an_administrator(
    cluster: Cluster, claims: list[Object], verdict: str, nodes: set[str] | None
) -> None:
    """Node a has two devices with one taken, b two of which an administrator looks at one, c a single one."""
    _let_administrators_in(cluster)
    make(
        cluster,
        make_device_class(),
        make_slice("a", *make_cards(2)),
        make_slice("b", *make_cards(2)),
        make_slice("c", *make_cards(1)),
        allocated(make_resource_claim("other", exactly()), "a", "card-0"),
        allocated(make_resource_claim("admin", exactly("c", 1, adminAccess=True)), "b", "card-0", adminAccess=True),
    )
    cluster.make_nodes(*(make_node_object(name) for name in "abc"))
    _assert_as_predicted(cluster, *claims, verdict=verdict, nodes=nodes)


@pytest.mark.parametrize(
    ("claim", "verdict", "nodes"),
    [
        pytest.param(exactly("c", 2), "Feasible", {"a", "b"}, id="two"),
        pytest.param(exactly("c", 3), "Infeasible", None, id="a value comes again after another one"),
        pytest.param(exactly("c", 4), "Infeasible", None, id="four"),
    ],
)
def test_distinct_values_of_an_attribute(cluster: Cluster, claim: Object, verdict: str, nodes: set[str] | None) -> None:
    """A device is compared with all others, of the same request as well."""
    make(
        cluster,
        make_device_class(),
        make_slice("a", *make_cards(2, numa=0), *make_cards(1, 2, numa=1)),
        make_slice("b", *make_cards(1, numa=0), *make_cards(1, 1, numa=1), *make_cards(1, 2, numa=0)),
        make_slice("c", *make_cards(3, numa=0), *make_cards(1, 3, model="none")),
        allocated(make_resource_claim("other", exactly()), "gone", "card-0"),
    )
    cluster.make_nodes(*(make_node_object(name) for name in "abc"))
    own = constrained(make_resource_claim("own", claim), f"{DRIVER}/numa", distinct=True)
    _assert_as_predicted(cluster, own, verdict=verdict, nodes=nodes)


def test_distinct_values_over_requests(cluster: Cluster) -> None:
    make(
        cluster,
        make_device_class(),
        make_slice("a", *make_cards(2, numa=0), *make_cards(1, 2, numa=1)),
        make_slice("b", *make_cards(3, numa=0)),
        allocated(make_resource_claim("other", exactly()), "gone", "card-0"),
    )
    cluster.make_nodes(make_node_object("a"), make_node_object("b"))
    either = first_of("e", best=exactly("", 2), other=exactly("", 1))
    own = constrained(make_resource_claim("own", exactly("c"), either), f"{DRIVER}/numa", distinct=True)
    _assert_as_predicted(cluster, own, verdict="Feasible", nodes={"a"})


_CONDITIONS: Object = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}


def test_devices_that_have_to_be_made_ready_come_last(cluster: Cluster) -> None:
    """Of equal devices it takes those of a pool whose devices are ready: the other ones are left for the list."""
    make(
        cluster,
        make_device_class(),
        make_slice("a", make_device("x", numa=0, **_CONDITIONS), driver=DRIVER, pool="a-first", nodeName="a"),
        make_slice("a", make_device("y", numa=1), pool="a-second", nodeName="a"),
        make_slice("b", make_device("x", numa=1, **_CONDITIONS)),
        allocated(make_resource_claim("other", exactly()), "gone", "card-0"),
    )
    cluster.make_nodes(*(make_node_object(name) for name in "abc"))
    numa = f'device.attributes["{DRIVER}"].numa'
    best = first_of("e", best=exactly("", 1, f"{numa} == 0"), other=exactly("", 1))
    own = make_resource_claim("own", exactly("c"), best)
    _assert_as_predicted(cluster, own, verdict="Feasible", nodes={"a"}, binds=False)


@pytest.mark.parametrize(
    ("conditions", "verdict", "nodes"),
    [
        pytest.param([("ready", "True")], "Feasible", {"a"}, id="ready"),
        pytest.param([("failed", "True"), ("ready", "True")], "Waiting", None, id="failed"),
    ],
)
def test_claim_whose_device_has_been_made_ready_or_not(
    cluster: Cluster, conditions: list[tuple[str, str]], verdict: str, nodes: set[str] | None
) -> None:
    make(
        cluster,
        make_device_class(),
        make_slice("a", make_device("x", **_CONDITIONS)),
        make_slice("b", make_device("x", **_CONDITIONS)),
    )
    cluster.make_nodes(make_node_object("a"), make_node_object("b"))
    own = allocated(make_resource_claim("own", exactly()), "a", "x", **_CONDITIONS)
    own["status"]["reservedFor"] = _RESERVED
    device_conditions = [
        {"type": kind, "status": status, "reason": "x", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind, status in conditions
    ]
    own["status"]["devices"] = [{"driver": DRIVER, "pool": "a", "device": "x", "conditions": device_conditions}]
    _assert_as_predicted(cluster, own, verdict=verdict, nodes=nodes)


@pytest.mark.parametrize(
    ("claim", "verdict", "nodes"),
    [
        pytest.param(exactly("c", 1), "Feasible", {"a", "b"}, id="a part"),
        pytest.param(exactly("c", 2), "Feasible", {"a", "b"}, id="two parts"),
        pytest.param(exactly("c", 3), "Feasible", {"a", "b"}, id="three parts"),
        pytest.param(exactly("c", 4), "Feasible", {"b"}, id="four parts, of which one is taken on a"),
        pytest.param(exactly("c", 1, 'device.attributes["gpu.example.com"].size == 4'), "Feasible", {"b"}, id="whole"),
        pytest.param(
            exactly("c", 2, 'device.attributes["gpu.example.com"].size > 1'), "Feasible", {"b"}, id="two halves"
        ),
        pytest.param(
            exactly("c", 2, 'device.attributes["gpu.example.com"].size > 2'), "Infeasible", None, id="too many"
        ),
        pytest.param(exactly("c", 0), "Infeasible", None, id="all parts"),
    ],
)
def test_parts_that_share_counters(cluster: Cluster, claim: Object, verdict: str, nodes: set[str] | None) -> None:
    """Each node has a card that can be used whole, in halves or in quarters; on a one quarter is taken."""
    for name in "ab":
        parts = [
            make_part(f"part-{size}-{number}", {"memory": str(size)}, size=size)
            for size in (1, 2, 4)
            for number in range(4 // size)
        ]
        make(cluster, make_slice(name, *parts, count=2), make_counters(name, {"memory": "4"}, count=2))
    make(cluster, make_device_class(), allocated(make_resource_claim("other", exactly()), "a", "part-1-0"))
    cluster.make_nodes(make_node_object("a"), make_node_object("b"), make_node_object("c"))
    _assert_as_predicted(cluster, make_resource_claim("own", claim), verdict=verdict, nodes=nodes)


@pytest.mark.parametrize(
    ("claims", "verdict", "nodes"),
    [
        pytest.param([exactly("c", 1, capacity={"requests": {"memory": "10"}})], "Feasible", {"a", "b", "c"}, id="10"),
        pytest.param([exactly("c", 1, capacity={"requests": {"memory": "30"}})], "Feasible", {"b", "c"}, id="30"),
        pytest.param([exactly("c", 1, capacity={"requests": {"memory": "60"}})], "Waiting", None, id="60"),
        pytest.param([exactly("c", 1, capacity={"requests": {"memory": "90"}})], "Infeasible", None, id="90"),
        pytest.param([exactly("c", 1, capacity={"requests": {"cores": "1"}})], "Infeasible", None, id="no such"),
        pytest.param([exactly("c", 1)], "Feasible", {"b", "c"}, id="none, which is all or the default"),
        pytest.param(
            [exactly(name, 1, capacity={"requests": {"memory": "15"}}) for name in "cdef"],
            "Feasible",
            {"b"},
            id="several of one claim",
        ),
    ],
)
def test_shares_of_devices(cluster: Cluster, claims: list[Object], verdict: str, nodes: set[str] | None) -> None:
    """Node a has 20 of 80 left, b has 80 with a policy whose default is 40, c a device of 50 that is taken whole."""
    policy = {"default": "40", "validRange": {"min": "10", "max": "50", "step": "10"}}
    share = {"shareID": "00000000-0000-4000-8000-000000000001", "consumedCapacity": {"memory": "60"}}
    make(
        cluster,
        make_device_class(),
        make_slice("a", make_shared_device("x", {"memory": "80"})),
        make_slice("b", make_shared_device("x", {"memory": "80"}, policy)),
        make_slice("c", make_device("x", {"memory": "50"})),
        allocated(make_resource_claim("other", exactly()), "a", "x", **share),
    )
    cluster.make_nodes(*(make_node_object(name) for name in "abc"))
    _assert_as_predicted(cluster, make_resource_claim("own", *claims), verdict=verdict, nodes=nodes)


def test_pools_beside_nodes(cluster: Cluster) -> None:
    in_rack = {"nodeSelectorTerms": [{"matchExpressions": [{"key": _RACK, "operator": "In", "values": ["r1"]}]}]}
    make(
        cluster,
        make_device_class(),
        make_slice("", *make_cards(1), pool="rack", nodeSelector=in_rack),
        make_slice("", *make_cards(1), pool="anywhere", allNodes=True),
        make_slice(
            "",
            make_device("x", nodeName="c"),
            make_device("y", nodeSelector=in_rack),
            pool="each",
            perDeviceNodeSelection=True,
        ),
        make_slice("a", *make_cards(4), pool="a", generation=1),
        make_slice("a", *make_cards(1), pool="a", generation=2),
        make_slice("d", *make_cards(2), pool="d", name="d-1", count=2),
        make_slice("d", *make_cards(1, 1), pool="d", name="d-2", count=2),
    )
    racks = {"a": "r1", "b": "r1", "c": "r2", "d": "r2"}
    cluster.make_nodes(*(make_node_object(name, labels={_RACK: rack}) for name, rack in racks.items()))
    _assert_as_predicted(cluster, make_resource_claim("four", exactly("cards", 4)), verdict="Feasible", nodes={"a"})


def test_pool_with_two_devices_of_one_name(cluster: Cluster) -> None:
    make(
        cluster,
        make_device_class(),
        make_slice("a", *make_cards(2), name="a-1", count=2),
        make_slice("a", *make_cards(1, 1), name="a-2", count=2),
    )
    cluster.make_nodes(make_node_object("a"), make_node_object("b"))
    _assert_as_predicted(cluster, make_resource_claim("own", exactly()), verdict="Waiting")


def test_tainted_devices(cluster: Cluster) -> None:
    taint = {"key": "health", "value": "bad", "effect": "NoSchedule"}
    make(
        cluster,
        make_device_class(),
        make_slice("a", make_device("x", taints=[taint]), make_device("y", taints=[taint | {"effect": "None"}])),
        make_slice("b", make_device("x", taints=[taint | {"effect": "NoExecute"}]), make_device("y")),
    )
    cluster.make_nodes(make_node_object("a"), make_node_object("b"))
    tolerant = exactly("cards", 2, tolerations=[{"key": "health", "operator": "Exists", "effect": "NoSchedule"}])
    _assert_as_predicted(cluster, make_resource_claim("own", tolerant), verdict="Feasible", nodes={"a"})
    _assert_as_predicted(cluster, make_resource_claim("two", exactly("cards", 2)), verdict="Waiting")


def test_rule_taints_the_devices_of_a_pool(cluster: Cluster) -> None:
    selected = {"driver": DRIVER, "pool": "a"}
    rule = {
        "apiVersion": API,
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {"deviceSelector": selected, "taint": {"key": "broken", "effect": "NoSchedule"}},
    }
    _world(cluster)
    cluster.client.create(rule)
    try:
        _assert_as_predicted(cluster, make_resource_claim("own", exactly()), verdict="Feasible", nodes={"b"})
    finally:
        cluster.client.delete("DeviceTaintRule", "broken", api_version=API)


def _tiny_part(name: str, amount: int, **fields: Any) -> Object:
    return make_part(name, {"memory": str(amount)}, **fields)


@pytest.mark.parametrize(
    ("objects", "claim"),
    [
        pytest.param(
            [
                make_slice("a", _tiny_part("x", 1), count=2),
                make_counters("a", {"memory": "1"}, count=2),
                make_slice("a", _tiny_part("y", 1), count=2, driver="nic.example.com"),
                make_counters("a", {"memory": "1"}, count=2, driver="nic.example.com") | {"metadata": {"name": "nic"}},
            ],
            make_resource_claim("own", exactly()),
            id="pools of one name have their own counters",
        ),
        pytest.param(
            [
                make_slice(
                    "a",
                    *(_tiny_part("x", 1, model="A"), _tiny_part("y", 2, model="B"), _tiny_part("z", 1, model="A")),
                    count=2,
                ),
                make_counters("a", {"memory": "3"}, count=2),
            ],
            constrained(make_resource_claim("own", exactly("parts", 2)), f"{DRIVER}/model"),
            id="a refused device gives its counters back",
        ),
    ],
)
def test_devices_as_since_1_37(cluster: Cluster, objects: list[Object], claim: Object) -> None:
    make(cluster, make_device_class(), *objects)
    cluster.make_nodes(make_node_object("a"), make_node_object("b"))
    _assert_as_predicted(cluster, claim, verdict="Feasible", nodes={"a"})


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(world=device_worlds())
def test_random_devices_and_claims(control_plane: ControlPlane, world: tuple[list[Object], Object]) -> None:
    _assert_world_as_predicted(control_plane, world)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(world=parted_worlds())
def test_random_parts_of_devices(control_plane: ControlPlane, world: tuple[list[Object], Object]) -> None:
    _assert_world_as_predicted(control_plane, world)


def _assert_world_as_predicted(control_plane: ControlPlane, world: tuple[list[Object], Object]) -> None:
    objects, pod = world
    for claim in objects:
        if "status" in claim:
            # Another pod's claim: kube-scheduler takes devices from one that is not reserved for a pod.
            claim["status"]["reservedFor"] = _RESERVED
    cluster = Cluster(control_plane)
    _let_administrators_in(cluster)
    try:
        make(cluster, *objects)
        cluster.make_nodes(*(make_node_object(name) for name in NODES))
        builder = PodBuilder(pod)
        predicted = predict(cluster, builder)
        assert predicted.verdict != "Unknown"
        assert_right(cluster, predicted, builder)
    finally:
        cluster.remove_everything()
