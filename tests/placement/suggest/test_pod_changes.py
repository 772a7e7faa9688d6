"""Changes of a pod that would let it run: what is left of its required node affinity."""

import pytest

from tests.support.objects.builders import PodBuilder, make_pod, match_expressions
from tests.support.plugins import pod_info
from webhook.cluster.index.node_selector import Requirement, Term
from webhook.cluster.snapshot import Snapshot
from webhook.placement.suggest.changes import Scenario
from webhook.placement.suggest.pod_changes import PodChange, ReduceRequest, ReplaceRequest, WithoutRequirement

_IN_A = ("pool", "In", ["a"])
_FAST: tuple[str, str, list[str]] = ("disk", "Exists", [])
_ON_N = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
_POOL, _DISK = Requirement("pool", "In", ("a",)), Requirement("disk", "Exists", ())
_NAME = Requirement("metadata.name", "In", ("n",))


@pytest.mark.parametrize(
    ("pod", "change", "required"),
    [
        pytest.param(
            make_pod().require_node(match_expressions(_IN_A, _FAST)),
            WithoutRequirement(_POOL),
            (Term((_DISK,), ()),),
            id="another label stays",
        ),
        pytest.param(
            make_pod().require_node(match_expressions(_IN_A) | _ON_N),
            WithoutRequirement(_POOL),
            (Term((), (_NAME,)),),
            id="a field stays",
        ),
        pytest.param(
            make_pod().require_node(match_expressions(_IN_A) | _ON_N),
            WithoutRequirement(_NAME, is_of_field=True),
            (Term((_POOL,), ()),),
            id="a label stays",
        ),
        pytest.param(
            make_pod().require_node(match_expressions(_IN_A)), WithoutRequirement(_POOL), None, id="nothing stays"
        ),
        pytest.param(
            make_pod().require_node(match_expressions(_IN_A), match_expressions(_IN_A, _FAST)),
            WithoutRequirement(_POOL),
            None,
            id="one of the terms takes every node",
        ),
    ],
)
def test_pod_keeps_what_else_its_node_affinity_requires(
    pod: PodBuilder, change: WithoutRequirement, required: tuple[Term, ...] | None
) -> None:
    assert change.apply(Scenario(pod_info(pod), Snapshot.of([]))).pod.required == required


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (ReduceRequest("nvidia.com/gpu", 4, 8), make_pod().gpu(4).requests(cpu="2")),
        (ReduceRequest("cpu", 1000, 2000), make_pod().gpu(8).requests(cpu="1")),
        (ReplaceRequest("nvidia.com/gpu", "amd.com/gpu", 8), make_pod().gpu(8, "amd.com/gpu").requests(cpu="2")),
    ],
)
def test_changed_request_counts_for_filters_and_for_scores(change: PodChange, wanted: PodBuilder) -> None:
    pod, nodes = pod_info(make_pod().gpu(8).requests(cpu="2")), Snapshot.of(())

    (changed, _), other = change.apply(Scenario(pod, nodes)), pod_info(wanted)

    assert dict(changed.requests) == dict(other.requests)
    assert dict(changed.scoring_requests) == dict(other.scoring_requests)
