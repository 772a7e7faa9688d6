"""A suggestion is true: with its changes, the plain placement check finds the same number of nodes."""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.oracles import oracle, strategies, strategies_pods
from tests.oracles.strategies_nominated import nominations
from tests.placement.suggest.applying import World, applied
from tests.support.effort import examples
from tests.support.objects.builders import make_node_object, make_pod
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import PodSignature, Scheduler

Object = dict[str, Any]

_FRAMEWORK = Scheduler()
_PRIORITIES = st.sampled_from((0, 0, 10, 1000))


def _check(world: World, others: list[Object], priorities: list[int], nominated: Sequence[Object] = ()) -> None:
    for pod, priority in zip([world.pod, *world.running], priorities, strict=False):
        pod["spec"]["priority"] = priority
    documents = (Document("cluster", each) for each in (*world.nodes, *world.running, *nominated, *others))
    snapshot, question = snapshot_from_documents(documents), PodSignature.of(world.pod)
    placement = _FRAMEWORK.answer(question, snapshot)
    if placement.verdict not in ("Waiting", "Infeasible"):
        return
    for suggestion in _FRAMEWORK.suggest(question, snapshot, placement.verdict, 10):
        event(" ".join(sorted({type(change).__name__ for change in suggestion.changes})))
        after = applied(suggestion.changes, world)
        found = oracle.place(after.pod, after.nodes, [*after.running, *nominated], others)
        assert found.feasible >= suggestion.nodes >= 1, suggestion.text


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    cluster=strategies.clusters(),
    pod=strategies.pending_pods(),
    priorities=st.lists(_PRIORITIES, min_size=5, max_size=5),
)
def test_as_many_nodes_fit_as_a_suggestion_says(
    cluster: tuple[list[Object], list[Object]], pod: Object, priorities: list[int]
) -> None:
    nodes, running = cluster
    _check(World(pod, nodes, running), [], priorities)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    cluster=strategies_pods.clusters(),
    pod=strategies_pods.pending_pods(),
    priorities=st.lists(_PRIORITIES, min_size=9, max_size=9),
)
def test_as_many_nodes_fit_where_pods_attract_and_repel_each_other(
    cluster: tuple[list[Object], list[Object], list[Object]], pod: Object, priorities: list[int]
) -> None:
    nodes, running, others = cluster
    _check(World(pod, nodes, running), others, priorities)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    cluster=strategies.clusters(),
    pod=strategies.pending_pods(),
    priorities=st.lists(_PRIORITIES, min_size=5, max_size=5),
    data=st.data(),
)
def test_as_many_nodes_fit_where_some_are_kept_for_other_pods(
    cluster: tuple[list[Object], list[Object]], pod: Object, priorities: list[int], data: st.DataObject
) -> None:
    nodes, pods = cluster
    drawn = data.draw(nominations(pods))
    running = [each for each in drawn if each["spec"].get("nodeName")]
    nominated = [each for each in drawn if not each["spec"].get("nodeName")]
    _check(World(pod, nodes, running), [], priorities, nominated)


_DEVICES = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-1g.10gb",
    "nvidia.com/mig-3g.40gb",
    "rdma/hca_shared_devices_a",
    "rdma/ib",
)
_AMOUNTS = st.dictionaries(st.sampled_from(_DEVICES), st.integers(0, 4), max_size=3)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(asked=_AMOUNTS, offered=st.lists(_AMOUNTS, min_size=1, max_size=4), used=st.lists(_AMOUNTS, max_size=4))
def test_as_many_nodes_fit_with_another_form_of_a_device(
    asked: dict[str, int], offered: list[dict[str, int]], used: list[dict[str, int]]
) -> None:
    nodes = [make_node_object(f"n{number}", capacity=amounts) for number, amounts in enumerate(offered)]
    running = [
        make_pod(f"p{number}").requests(**amounts).node_name(f"n{number}").obj() | {"status": {"phase": "Running"}}
        for number, amounts in enumerate(used[: len(nodes)])
    ]
    _check(World(make_pod().requests(**asked).obj(), nodes, running), [], [])
