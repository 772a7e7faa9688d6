"""A suggestion is true: with its changes, the plain placement check finds the same number of nodes."""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.placement import oracle, strategies, strategies_pods
from tests.placement.applying import World, applied
from tests.placement.strategies_nominated import nominations
from tests.support.effort import examples
from webhook.cluster.file import snapshot_from_documents
from webhook.kube.documents import Document
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
