"""The fast placement check gives the answers of the plain one where nodes are kept for other pods."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracles import oracle, strategies, strategies_pods
from tests.oracles.plain_answer import as_plain
from tests.oracles.strategies_nominated import nominations, nominees
from tests.support.effort import examples
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.framework.fit_error import fit_error
from webhook.placement.scheduler import PodSignature, Scheduler

Object = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

_SETTINGS = settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def _plain_worlds(draw: Draw) -> tuple[list[Object], list[Object], list[Object], list[Object]]:
    nodes, pods = draw(strategies.clusters())
    asked = [draw(nominees(f"asked-{number}", draw(strategies.pending_pods()))) for number in range(2)]
    return nodes, draw(nominations(pods)), [], asked


@st.composite
def _worlds_of_peers(draw: Draw) -> tuple[list[Object], list[Object], list[Object], list[Object]]:
    nodes, pods, others = draw(strategies_pods.clusters())
    asked = [draw(nominees(f"asked-{number}", draw(strategies_pods.pending_pods()))) for number in range(2)]
    return nodes, draw(nominations(pods)), others, asked


@_SETTINGS
@given(world=st.one_of(_plain_worlds(), _worlds_of_peers(), _worlds_of_peers()), is_there=st.booleans())
def test_fast_and_plain_placement_agree_beside_nominated_pods(
    world: tuple[list[Object], list[Object], list[Object], list[Object]], is_there: bool
) -> None:
    nodes, pods, others, asked = world
    framework = Scheduler()
    there = [*pods, asked[0]] if is_there else pods
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*nodes, *there, *others))
    for pod in (*asked, *asked):
        placement = framework.place(pod, snapshot)
        assert as_plain(placement) == oracle.place(pod, nodes, there, others)
        reasons = framework.explain(PodSignature.of(pod), snapshot)
        if placement.verdict in ("Waiting", "Infeasible") and placement.total:
            counts: dict[str, int] = {}
            for each in (reason for of_node in reasons.values() for reason in of_node):
                counts[each] = counts.get(each, 0) + 1
            refused = set(reasons.values()) if "terms conflict" in placement.message else set()
            assert placement.message == fit_error(len(nodes), counts, "".join(each[0] for each in refused))
        else:
            assert reasons.keys().isdisjoint(placement.scores)
