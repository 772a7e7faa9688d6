"""The profile of KAI: what differs from kube-scheduler in filters, messages and scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.placement.batch_profiles.batch_clusters import GPU, Object, running, sized_node, volcano
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.plugins import pod_info
from tests.support.views import made_anew
from webhook.placement.batch_profiles.kai import KAI, Pack, ResourceType
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.scheduler import Placement, Scheduler

NOTE = " Predicted: node constraints; the queue decides when it starts."


def kai(pod: PodBuilder, *objects: Object) -> Placement:
    return Scheduler(KAI, suggestions=1).place(pod.obj(), made_anew(objects))


def test_kai_reports_the_largest_node() -> None:
    placement = kai(make_pod().gpu(9), sized_node("a", gpus=8), sized_node("b"))
    assert placement.message == "Max GPU resources available in a single node is topped at 8."
    assert placement.verdict == "Infeasible"
    assert kai(make_pod().gpu(1), sized_node("b")).message == "No node has GPU resources."


@pytest.mark.parametrize(
    ("requests", "resource"),
    [
        pytest.param({"cpu": "9", "memory": "9Ti", GPU: "9", "a.io/x": "9"}, "GPU", id="all are too much"),
        pytest.param({"cpu": "9", "memory": "9Ti", GPU: "8", "a.io/x": "9"}, "CPU", id="as many GPUs as a node has"),
        pytest.param({"cpu": "8", "memory": "9Ti", "a.io/x": "9"}, "memory", id="as much cpu"),
        pytest.param({"cpu": "8", "a.io/x": "9", "b.io/y": "9"}, "a.io/x", id="the first other resource"),
    ],
)
def test_kai_names_the_first_resource_that_exceeds_the_largest_node_gpus_first(
    requests: dict[str, str], resource: str
) -> None:
    node = make_node_object("a", capacity={"cpu": 8, "memory": "8Gi", GPU: 8, "a.io/x": 1, "b.io/y": 1})
    message = kai(make_pod().requests(**requests), node).message
    assert message.startswith(f"Max {resource} resources available in a single node is topped at ")


@pytest.mark.parametrize(("places", "takes"), [(1, False), (2, False), (3, True)])
def test_kai_puts_no_more_pods_on_a_node_than_it_allows(places: int, takes: bool) -> None:
    pods = [running(name, "a", cpu="1") for name in "pq"]
    placement = kai(make_pod().requests(cpu="1"), sized_node("a", pods=places), *pods)
    full = "no nodes with enough resources were found: 1 node(s) didn't have enough resources: pods."
    assert (placement.verdict == "Feasible") is takes
    assert takes or placement.message.startswith(full)


def test_kai_counts_every_missing_resource_in_its_own_words() -> None:
    objects = (
        sized_node("a", gpus=1),
        running("r", "a", **{"cpu": "4", GPU: "1"}),
        sized_node("b", taints=["k=v:NoSchedule"], gpus=8),
    )
    placement = kai(make_pod().requests(cpu="1").gpu(1), *objects)
    assert placement.message == (
        "no nodes with enough resources were found: 1 node(s) didn't have enough resources: CPU cores, "
        "1 node(s) didn't have enough resources: GPUs, 1 node(s) had untolerated taint(s)."
    )


def test_kai_reads_the_requests_of_containers_alone() -> None:
    plain = make_pod().requests(cpu="1").obj()
    whole = {**plain, "spec": {**plain["spec"], "resources": {"requests": {"cpu": "5"}}}}
    nodes = made_anew([sized_node("a")])
    assert Scheduler(KAI).place(whole, nodes).verdict == "Feasible"
    assert Scheduler(DEFAULT).place(whole, nodes).verdict == "Infeasible"


def test_kai_puts_no_pod_on_a_node_that_is_over_its_gpus_or_cordoned() -> None:
    over_gpus = make_pod("r").node_name("a").gpu(1).status(phase="Running").obj()
    objects = sized_node("a"), sized_node("b", unschedulable=True), over_gpus
    placement = kai(make_pod().requests(cpu="1"), *objects)
    over = "1 node(s) didn't have enough resources: GPUs"
    assert placement.message == f"no nodes with enough resources were found: 1 node is unschedulable, {over}."


@pytest.mark.parametrize("pod", [make_pod(), make_pod().toleration(operator="Exists")], ids=["plain", "tolerant"])
def test_kai_puts_no_pod_on_a_cordoned_node_and_the_pod_is_not_denied(pod: PodBuilder) -> None:
    placement = kai(pod.requests(cpu="1"), sized_node("a", unschedulable=True))
    assert placement.verdict == "Infeasible"
    assert placement.message == "no nodes with enough resources were found: 1 node is unschedulable."
    assert placement.deny_exemption == "1 node would do that is cordoned, not ready or not well"
    assert placement.suggestions == ("a fits once it is uncordoned",)


def test_kai_counts_a_node_without_cards_once_for_a_share() -> None:
    over_gpus = make_pod("r").node_name("a").gpu(1).status(phase="Running").obj()
    half = make_pod().annotate("gpu-fraction", "0.5").requests(cpu="2")
    placement = kai(half, sized_node("a"), sized_node("b", "2", 1), over_gpus, running("s", "b", cpu="1"))
    assert "1 node(s) didn't have enough resources: GPUs" in placement.message


def test_kai_packs_and_keeps_pods_without_gpus_off_gpu_nodes() -> None:
    objects = sized_node("a", gpus=8), sized_node("b", gpus=8), sized_node("c"), running("r", "b", **{GPU: "4"})
    assert kai(make_pod().gpu(1), *objects).node == "b"
    assert kai(make_pod().requests(cpu="1"), *objects).node == "c"


def test_kai_ignores_spreading_and_preferred_node_affinity() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    pod = make_pod().label("app", "web").gpu(1).spec(topologySpreadConstraints=[spread])
    pod = pod.prefer_node(100, {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["y"]}]})
    web = make_pod("web").label("app", "web").gpu(1).node_name("a").status(phase="Running").obj()
    objects = sized_node("a", gpus=8, labels={"zone": "x"}), sized_node("b", gpus=8, labels={"zone": "y"}), web
    assert kai(pod, *objects).node == "a"
    assert Scheduler(DEFAULT).place(pod.obj(), made_anew(objects)).node == "b"


@pytest.mark.parametrize("key", ["gpu-fraction", "gpu-memory"])
def test_kai_needs_a_node_with_cards_for_a_share_of_one_and_which_will_do_is_unknown(key: str) -> None:
    pod = make_pod().requests(cpu="1").annotate(key, "0.5")
    some = kai(pod, sized_node("a", gpus=8), sized_node("b"))
    assert (some.verdict, some.node, some.unmodelled) == ("Unknown", None, ("GPU sharing",))
    assert some.message == (
        f"1/2 nodes are available.{NOTE} Whether one of them will do depends on GPU sharing, which is not modelled."
    )
    none = kai(pod, sized_node("b"))
    assert (none.verdict, none.message) == ("Infeasible", "No node has GPU resources.")


def test_a_share_of_a_card_is_for_kai_alone() -> None:
    pod = make_pod().requests(cpu="1").annotate("gpu-fraction", "0.5")
    assert volcano(pod, sized_node("b")).verdict == "Feasible"
    assert Scheduler(DEFAULT).place(pod.obj(), made_anew([sized_node("b")])).verdict == "Feasible"


def test_kai_names_nodes_without_cards_beside_other_reasons() -> None:
    placement = kai(
        make_pod().requests(cpu="1").annotate("gpu-fraction", "0.5"),
        *(sized_node("a", gpus=8, taints=["k=v:NoSchedule"]), sized_node("b")),
    )
    assert (placement.verdict, placement.suggestions) == (
        "Infeasible",
        ("1 node would fit if the pod tolerated k=v",),
    )
    assert placement.message == (
        "no nodes with enough resources were found: 1 node(s) didn't have enough resources: GPUs, "
        "1 node(s) had untolerated taint(s)."
    )


def test_kai_names_a_mig_profile_that_is_short() -> None:
    mig = "nvidia.com/mig-1g.5gb"
    nodes = [make_node_object("a", capacity={mig: "1"}), make_node_object("b", capacity={mig: "2"})]
    running = make_pod("r").requests(**{mig: 1}).node_name("b").obj()

    placement = Scheduler(KAI).place(make_pod().requests(**{mig: 2}).obj(), made_anew([*nodes, running]))

    assert f": 2 node(s) didn't have enough of mig profile: {mig}." in placement.message


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=4), st.booleans())
def test_kai_scores_nodes_by_the_share_of_what_is_not_free(amounts: list[tuple[int, int]], is_of_cards: bool) -> None:
    objects, free = [], []
    for number, (capacity, used) in enumerate(amounts):
        cpu, cards = ("4", capacity) if is_of_cards else (str(capacity), 0)
        objects += [sized_node(f"n{number}", cpu, cards)]
        objects += [running(f"p{number}", f"n{number}", **{GPU if is_of_cards else "cpu": str(used)})] if used else []
        free.append((capacity - used) * (1 if is_of_cards else 1000) if capacity else None)
    pod = make_pod().gpu(1) if is_of_cards else make_pod().requests(cpu="1")

    found = Pack().score(pod_info(pod), made_anew(objects), np.arange(len(amounts)))

    known = [each for each in free if each is not None]
    wanted = []
    for each in free:
        if each is None or max(known) == 0:
            wanted.append(0.0)
        elif min(known) == max(known):
            wanted.append(9.0)
        else:
            wanted.append(9 * (1 - (each - min(known)) / (max(known) - min(known))))
    assert found.tolist() == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        (make_pod().requests(cpu="1"), [0, 10]),
        (make_pod().gpu(1), None),
        (make_pod().annotate("gpu-fraction", "0.5"), None),
    ],
)
def test_kai_scores_nodes_without_gpus_for_pods_that_use_none(pod: PodBuilder, wanted: list[int] | None) -> None:
    nodes = made_anew([sized_node("a", gpus=8), sized_node("b")])

    found = ResourceType().score(pod_info(pod.scheduler("kai-scheduler")), nodes, np.arange(2))

    assert (None if found is None else found.tolist()) == wanted
