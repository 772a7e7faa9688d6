"""Suggestions in words, and which come first."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_pod, match_expressions
from tests.support.plugins import node
from webhook.cluster.node_info import NodeInfo
from webhook.cluster.objects.runtime_class import RuntimeClass, RuntimeClasses
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Scheduler

_USE = "maip.mxsf.io/node.usage"
_PRODUCT = "nvidia.com/gpu.product"


def suggestions(pod: PodBuilder, *nodes: NodeInfo, most: int = 3) -> Sequence[str]:
    return Scheduler(suggestions=most).place(pod.obj(), Snapshot.of(nodes)).suggestions


def gpus(name: str, used: int = 0, product: str = "H20", *, priority: int = 0, taint: str = "") -> NodeInfo:
    running = [make_pod(f"on-{name}-{index}").gpu(1).spec(priority=priority) for index in range(used)]
    labels = {_USE: "training", _PRODUCT: product}
    return node(name, *running, labels=labels, taints=[taint] if taint else [], capacity={"nvidia.com/gpu": 8})


_TRAINING = match_expressions((_USE, "In", ["training", "hybrid"]))
_H20 = match_expressions((_PRODUCT, "In", ["H20"]))
_ON_H20 = f"the requirement {_PRODUCT} in [H20]"
_TAINTED = [gpus(name, product="A100", taint=f"{_PRODUCT}=A100:NoSchedule") for name in "abc"]
_WEB = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
_BESIDE_WEB = {"requiredDuringSchedulingIgnoredDuringExecution": [_WEB]}
_SPREAD = _WEB | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
_MIXED = [node("small"), *_TAINTED, node("control", taints=["node-role.kubernetes.io/control-plane:NoSchedule"])]


@pytest.mark.parametrize(
    ("pod", "nodes", "wanted"),
    [
        pytest.param(
            make_pod().gpu(8), _MIXED, [f"3 nodes would fit if the pod tolerated {_PRODUCT}=A100"], id="a taint"
        ),
        pytest.param(
            make_pod().toleration("a", operator="Exists"),
            [node("n", taints=["a:NoSchedule", "b=1:NoExecute", "b=1:NoSchedule", "c=2:NoSchedule"])],
            ["1 node would fit if the pod tolerated b=1 and c=2"],
            id="several taints",
        ),
        pytest.param(
            make_pod().gpu(8).require_node(_TRAINING),
            [gpus("a", 6), gpus("b", 4)],
            [
                f"ask for 4 nvidia.com/gpu instead of 8: the largest free block in {_USE}=training is 4",
                "b fits once 4 nvidia.com/gpu are freed",
            ],
            id="fewer, or some freed",
        ),
        pytest.param(
            make_pod().gpu(8),
            [gpus("a", 5)],
            [
                "a fits once 5 nvidia.com/gpu are freed",
                "ask for 3 nvidia.com/gpu instead of 8: the largest free block is 3",
            ],
            id="less than half comes last",
        ),
        pytest.param(
            make_pod().gpu(8),
            [gpus("a", 4)],
            [
                "ask for 4 nvidia.com/gpu instead of 8: the largest free block is 4",
                "a fits once 4 nvidia.com/gpu are freed",
            ],
            id="half comes first",
        ),
        pytest.param(
            make_pod().gpu(8),
            [gpus("a", 7)],
            [
                "a fits once 7 nvidia.com/gpu are freed",
                "ask for 1 nvidia.com/gpu instead of 8: the largest free block is 1",
            ],
            id="much fewer comes last",
        ),
        pytest.param(
            make_pod().gpu(2), [gpus("a", 7)],
            [
                "ask for 1 nvidia.com/gpu instead of 2: the largest free block is 1",
                "a fits once 1 nvidia.com/gpu is freed",
            ],
            id="a single one is freed",
        ),
        pytest.param(
            make_pod().requests(cpu="100", memory="2000Gi"),
            [node("a")],
            ["1 node would fit if the pod asked for 64 cpu instead of 100 and 512Gi memory instead of 2000Gi"],
            id="less of two resources",
        ),
        pytest.param(
            make_pod().requests(cpu="60", memory="510Gi"),
            [node("a", make_pod("x").requests(cpu="5234m", memory="5Gi"))],
            [
                "a fits once 1234m cpu and 3Gi memory are freed",
                "1 node would fit if the pod asked for 58766m cpu instead of 60 and 507Gi memory instead of 510Gi",
            ],
            id="amounts are printed as they are",
        ),
        pytest.param(
            make_pod().gpu(8).require_node(_H20),
            [gpus("a", product="A100"), gpus("b", product="L40S")],
            [f"2 nodes would fit without {_ON_H20} (they have A100, L40S)"],
            id="a requirement",
        ),
        pytest.param(
            make_pod().gpu(8).require_node(_H20),
            _TAINTED,
            [
                f"3 nodes would fit without {_ON_H20} (they have A100) and if the pod tolerated {_PRODUCT}=A100",
            ],
            id="a requirement and a taint",
        ),
        pytest.param(
            make_pod().node_selector("pool", "x"),
            [node("a")],
            ["1 node would fit without the nodeSelector pool=x (it has none)"],
            id="nodeSelector",
        ),
        pytest.param(
            make_pod().require_node(match_expressions(("a", "Exists", [])), match_expressions(("b", "Gt", ["5"]))),
            [node("n")],
            ["1 node would fit without the nodeSelectorTerms of its required node affinity"],
            id="terms of different requirements",
        ),
        pytest.param(
            make_pod().require_node(
                match_expressions(("a", "Exists", [])), match_expressions(("b", "Exists", []), ("c", "In", ["x"]))
            ),
            [node("n")],
            ["1 node would fit without the nodeSelectorTerms of its required node affinity"],
            id="terms that are ORed",
        ),
        pytest.param(
            make_pod().require_node(match_expressions(("cards", "Gt", ["5"]), ("old", "DoesNotExist", []))),
            [node("n", labels={"cards": "4", "old": ""})],
            ["1 node would fit without the requirement cards > 5 (it has 4) and the requirement old does not exist"],
            id="two requirements",
        ),
        pytest.param(make_pod(), [node("n", unschedulable=True)], ["n fits once it is uncordoned"], id="a cordon"),
        pytest.param(
            make_pod(),
            [node("n", unschedulable=True, taints=["node.kubernetes.io/unschedulable:NoSchedule"])],
            ["n fits once it is uncordoned"],
            id="a cordon with its taint",
        ),
        pytest.param(
            make_pod().host_port(80),
            [node("n", make_pod("x").host_port(80))],
            ["n fits once host port 80/TCP is free", "1 node would fit without the host port 80/TCP"],
            id="a port",
        ),
        pytest.param(
            make_pod(),
            [node("n", make_pod("x"), capacity={"pods": 1})],
            ["n fits once 1 pod is gone"],
            id="the number of pods",
        ),
        pytest.param(
            make_pod().label("app", "web").affinity({"podAntiAffinity": _BESIDE_WEB}),
            [node("n", make_pod("x").label("app", "web"))],
            ["1 node would fit without its required podAntiAffinity"],
            id="pods that it keeps away from",
        ),
        pytest.param(
            make_pod().affinity({"podAffinity": _BESIDE_WEB}),
            [node("n"), node("m")],
            ["2 nodes would fit without its required podAffinity"],
            id="pods that it wants",
        ),
        pytest.param(
            make_pod().label("app", "web").spec(topologySpreadConstraints=[_SPREAD]),
            [node("n", make_pod("x").label("app", "web")), node("m", taints=["a:NoSchedule"])],
            [
                "1 node would fit if the pod tolerated a",
                "1 node would fit without its topologySpreadConstraints that are DoNotSchedule",
            ],
            id="a spread",
        ),
        pytest.param(
            make_pod().gpu(8).spec(priority=100),
            [gpus("a", 6, priority=10), gpus("b", 4, priority=1000), gpus("c", 5, priority=10)],
            [
                "c fits once 5 pods of lower priority are gone",
                "ask for 4 nvidia.com/gpu instead of 8: the largest free block is 4",
            ],
            id="pods of lower priority",
        ),
        pytest.param(
            make_pod().gpu(4).spec(priority=100),
            [
                node(
                    "n",
                    make_pod("a").gpu(1).spec(priority=50),
                    make_pod("b").gpu(4).spec(priority=10),
                    capacity={"nvidia.com/gpu": 5},
                )
            ],
            ["n fits once 1 pod of lower priority is gone"],
            id="the lowest priority goes first, not the first name",
        ),
        pytest.param(
            make_pod().gpu(4).spec(priority=100),
            [
                node(
                    "n",
                    make_pod("no-gpu").requests(cpu="1").spec(priority=10),
                    make_pod("gpu").gpu(4).spec(priority=50),
                    capacity={"nvidia.com/gpu": 4},
                )
            ],
            ["n fits once 1 pod of lower priority is gone"],
            id="a pod that would free nothing stays",
        ),
        pytest.param(
            make_pod().gpu(4).spec(priority=100),
            [gpus("a", 8, priority=10), gpus("b", 8, priority=10)],
            ["a fits once 4 pods of lower priority are gone"],
            id="the first of nodes with as many pods to evict",
        ),
        pytest.param(
            make_pod().host_port(80).spec(priority=100),
            [node("n", make_pod("x").host_port(80).spec(priority=10), make_pod("y").host_port(81))],
            [
                "n fits once 1 pod of lower priority is gone",
                "1 node would fit without the host port 80/TCP",
            ],
            id="a pod of lower priority has the port",
        ),
        pytest.param(
            make_pod().gpu(1).affinity({"podAntiAffinity": _BESIDE_WEB}).spec(priority=100),
            [
                node(
                    "n",
                    make_pod("web").label("app", "web").gpu(1).spec(priority=10),
                    make_pod("less-important").gpu(1).spec(priority=1),
                    labels={"kubernetes.io/hostname": "n"},
                    capacity={"nvidia.com/gpu": 2},
                )
            ],
            ["n fits once 1 pod of lower priority is gone"],
            id="no other change to evict another pod instead",
        ),
        pytest.param(
            make_pod().gpu(2).affinity({"podAntiAffinity": _BESIDE_WEB}).spec(priority=100),
            [
                node(
                    "n",
                    *(make_pod(name).label("app", "web").spec(priority=1) for name in "abc"),
                    make_pod("large").gpu(2).spec(priority=1),
                    labels={"kubernetes.io/hostname": "n"},
                    capacity={"nvidia.com/gpu": 2},
                )
            ],
            [
                "n fits once 4 pods of lower priority are gone",
                "n would fit once 1 pod of lower priority is gone without its required podAntiAffinity",
            ],
            id="another change to evict fewer pods",
        ),
        pytest.param(
            make_pod().spec(priority=100),
            [node("n", *(make_pod(name).spec(priority=10) for name in "abc"), capacity={"pods": 2})],
            ["n fits once 2 pods of lower priority are gone"],
            id="as many pods of lower priority as are too many",
        ),
        pytest.param(
            make_pod().gpu(8),
            [gpus("a", 8)],
            ["a fits once 8 nvidia.com/gpu are freed"],
            id="no advice to ask for nothing",
        ),
        pytest.param(
            make_pod().requests(memory="512Gi"),
            [node("a", make_pod("x").requests(memory="10753Mi"))],
            [
                "ask for 513535Mi memory instead of 512Gi: the largest free block is 513535Mi",
                "a fits once 10753Mi memory are freed",
            ],
            id="no more is to be freed than is taken",
        ),
        pytest.param(
            make_pod(),
            [node("n", taints=["a:NoSchedule", "b:NoSchedule", "c:NoSchedule"])],
            ["1 node would fit if the pod tolerated a, b and c"],
            id="three changes",
        ),
        pytest.param(
            make_pod(),
            [node("a", taints=["x:NoSchedule"]), *(node(name, taints=["y:NoSchedule"]) for name in "bc")],
            ["2 nodes would fit if the pod tolerated y", "1 node would fit if the pod tolerated x"],
            id="of as many changes, the one for more nodes first",
        ),
        pytest.param(
            make_pod(),
            [node("a", taints=["x:NoSchedule"]), node("b", taints=["x:NoSchedule", "y:NoSchedule"])],
            ["1 node would fit if the pod tolerated x"],
            id="no advice to do more than is enough",
        ),
        pytest.param(
            make_pod(),
            [
                node("a", taints=["x:NoSchedule"]),
                node("b", taints=["y:NoSchedule", "z:NoSchedule"]),
                node("c", taints=["u:NoSchedule", "v:NoSchedule", "w:NoSchedule"]),
            ],
            ["1 node would fit if the pod tolerated x", "1 node would fit if the pod tolerated y and z"],
            id="one change more than the best, but not two",
        ),
        pytest.param(
            make_pod().gpu(8).spec(priority=100, preemptionPolicy="Never"),
            [gpus("a", 3, priority=10)],
            [
                "ask for 5 nvidia.com/gpu instead of 8: the largest free block is 5",
                "a fits once 3 nvidia.com/gpu are freed",
            ],
            id="a pod that preempts no other",
        ),
    ],
)  # fmt: skip
def test_suggestions(pod: PodBuilder, nodes: Sequence[NodeInfo], wanted: Sequence[str]) -> None:
    assert list(suggestions(pod, *nodes)) == wanted


@pytest.mark.parametrize(
    ("pod", "nodes"),
    [
        pytest.param(make_pod(), [], id="no node"),
        pytest.param(make_pod(), [node("n")], id="a pod that fits"),
        pytest.param(
            make_pod(), [node("n", taints=["node-role.kubernetes.io/control-plane:NoSchedule"])], id="a control plane"
        ),
        pytest.param(make_pod(), [node("n", taints=["maip.mxsf.io/control-plane:NoSchedule"])], id="another key of it"),
        pytest.param(make_pod(), [node("n", taints=["node.kubernetes.io/not-ready:NoSchedule"])], id="a condition"),
        pytest.param(
            make_pod(), [node("n", taints=["node-role.kubernetes.io/master:NoSchedule"])], id="an old control plane"
        ),
        pytest.param(
            make_pod(),
            [node("n", taints=["node.cloudprovider.kubernetes.io/uninitialized:NoSchedule"])],
            id="a condition of the cloud",
        ),
        pytest.param(
            make_pod(),
            [node("n", taints=["node.kubernetes.io/unschedulable:NoSchedule"])],
            id="the taint of a cordon without the cordon",
        ),
        pytest.param(make_pod(), [node("n", taints=[f"{key}:NoSchedule" for key in "abcd"])], id="four changes"),
        pytest.param(make_pod(), [node("n", capacity={"pods": 0})], id="no place for any pod"),
        pytest.param(make_pod().gpu(1), [node("n")], id="a resource of which there is none"),
        pytest.param(make_pod().node_name("elsewhere"), [node("n")], id="bound elsewhere"),
    ],
)
def test_there_may_be_none(pod: PodBuilder, nodes: Sequence[NodeInfo]) -> None:
    assert list(suggestions(pod, *nodes)) == []


@pytest.mark.parametrize(
    ("running", "allowed", "wanted"),
    [
        pytest.param(1, 2, [], id="there is a place"),
        pytest.param(2, 2, ["n fits once 1 pod is gone"], id="all places are taken"),
        pytest.param(3, 2, ["n fits once 2 pods are gone"], id="there are more pods than places"),
        pytest.param(1, 1, ["n fits once 1 pod is gone"], id="the only place is taken"),
    ],
)
def test_as_many_pods_have_to_go_as_exceed_the_places_with_the_pod(
    running: int, allowed: int, wanted: list[str]
) -> None:
    """The pods have its priority, so that it cannot evict them."""
    full = node("n", *(make_pod(f"p{at}") for at in range(running)), capacity={"pods": allowed})

    assert list(suggestions(make_pod(), full)) == wanted


@pytest.mark.parametrize(
    ("state", "priorities", "wanted"),
    [
        pytest.param({}, [1, 1], "n fits once 2 pods of lower priority are gone", id="a node"),
        pytest.param(
            {"unschedulable": True},
            [1, 1],
            "n fits once it is uncordoned and 2 pods of lower priority are gone",
            id="a cordoned node",
        ),
        pytest.param(
            {"taints": ["x:NoSchedule"]},
            [1, 1],
            "n would fit once 2 pods of lower priority are gone if the pod tolerated x",
            id="a tainted node",
        ),
        pytest.param(
            {"unschedulable": True, "taints": ["x:NoSchedule"]},
            [1, 1],
            "n would fit once it is uncordoned and 2 pods of lower priority are gone if the pod tolerated x",
            id="a cordoned and tainted node",
        ),
        pytest.param(
            {"unschedulable": True},
            [1, 200],
            "n fits once it is uncordoned and 8 nvidia.com/gpu are freed",
            id="a cordoned node with a more important pod",
        ),
    ],
)
def test_pods_that_would_be_evicted_after_other_changes_of_a_node_are_counted(
    state: dict[str, Any], priorities: list[int], wanted: str
) -> None:
    pods = [make_pod(f"p{at}").gpu(4).spec(priority=each) for at, each in enumerate(priorities)]
    info = node("n", *pods, capacity={"nvidia.com/gpu": 8}, **state)

    found = suggestions(make_pod().gpu(8).spec(priority=100), info, most=9)

    assert wanted in found


def test_eviction_on_another_node_is_another_suggestion() -> None:
    low = make_pod("low").gpu(8).spec(priority=1)
    nodes = [
        node("a", low, capacity={"nvidia.com/gpu": 8}),
        node("b", low, capacity={"nvidia.com/gpu": 8}, taints=["x:NoSchedule"]),
    ]

    found = suggestions(make_pod().gpu(8).spec(priority=100), *nodes, most=9)

    assert list(found) == [
        "a fits once 1 pod of lower priority is gone",
        "b would fit once 1 pod of lower priority is gone if the pod tolerated x",
    ]


def test_node_of_a_suggestion_is_one_that_has_its_obstacles() -> None:
    """After the second change, the first node also fits, but its labels are not those that the pod should name."""
    nodes = [gpus("b", used=1), gpus("t", used=2, taint="x:NoSchedule")]

    remedies = Scheduler(suggestions=9).place(make_pod().gpu(8).obj(), Snapshot.of(nodes)).remedies

    found = {each.text: each.node for each in remedies if "asked for" in each.text or "ask for" in each.text}
    assert found == {
        "ask for 7 nvidia.com/gpu instead of 8: the largest free block is 7": "b",
        "2 nodes would fit if the pod tolerated x and asked for 6 nvidia.com/gpu instead of 8": "t",
    }


@pytest.mark.parametrize(
    ("class_name", "of_class", "source"),
    [
        pytest.param("kata", {"disk": "nvme"}, " of RuntimeClass kata", id="the class adds the label"),
        pytest.param("kata", {"disk": "ssd"}, "", id="it adds another value"),
        pytest.param("kata", {"zone": "a"}, "", id="it adds another label"),
        pytest.param("gvisor", {"disk": "nvme"}, "", id="the pod has another class"),
        pytest.param("", {"disk": "nvme"}, "", id="the pod has none"),
    ],
)
def test_label_that_a_runtime_class_adds_is_named_with_the_class(
    class_name: str, of_class: dict[str, str], source: str
) -> None:
    """The API server has added the label to the pod, so the user does not find it in the manifest."""
    pod = make_pod().node_selector("disk", "nvme")
    pod = pod.spec(runtimeClassName=class_name) if class_name else pod
    classes = RuntimeClasses({"kata": RuntimeClass("kata", None, of_class, ())}, are_known=True)
    snapshot = Snapshot.of([node("n", labels={"zone": "a"})], runtime_classes=classes)

    (first, *_) = Scheduler(suggestions=1).place(pod.obj(), snapshot).suggestions

    assert first == f"1 node would fit without the nodeSelector disk=nvme{source} (it has none)"


def test_room_behind_the_taint_of_a_cordon_without_the_cordon_is_not_asked_for() -> None:
    behind = node("a", taints=["node.kubernetes.io/unschedulable:NoSchedule"], capacity={"nvidia.com/gpu": 7})

    first, *_ = suggestions(make_pod().gpu(8), behind, gpus("b", used=2))

    assert first.endswith("the largest free block is 6")


def test_as_many_are_given_as_are_wanted() -> None:
    nodes = [gpus("a", 4), *_TAINTED, node("d", unschedulable=True, capacity={"nvidia.com/gpu": 8})]

    counts = [len(suggestions(make_pod().gpu(8), *nodes, most=most)) for most in (0, 1, 3)]

    assert counts == [0, 1, 3]


def test_they_are_remembered_with_the_answer() -> None:
    snapshot, framework = Snapshot.of(_MIXED), Scheduler(suggestions=1)

    first = framework.place(make_pod().gpu(8).obj(), snapshot)

    assert first.suggestions
    assert framework.place(make_pod().gpu(8).obj(), snapshot) is first


def test_near_the_deadline_the_answer_goes_out_without_and_is_not_remembered() -> None:
    snapshot, framework = Snapshot.of(_MIXED), Scheduler(suggestions=1)
    left = [False] * 1000

    def measured() -> bool:
        return left.pop() if left else True

    framework.place(make_pod().gpu(8).obj(), snapshot, measured)
    asked = 1000 - len(left)
    framework = Scheduler(suggestions=1)
    left = [False] * (asked - 1)

    hurried = framework.place(make_pod().gpu(8).obj(), snapshot, measured)

    assert (hurried.verdict, hurried.suggestions) == ("Infeasible", ())
    assert framework.place(make_pod().gpu(8).obj(), snapshot).suggestions
