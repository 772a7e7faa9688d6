"""The nominated node of a pod is evaluated before all others, and counted once."""

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.ranking.nodes_that_fit import find_nodes_that_fit
from webhook.placement.scheduler import PodSignature

NODES = Snapshot.of(
    [
        node("a"),
        node("b", taints=["use=x:NoSchedule"]),
        node("c", unschedulable=True),
        node("d", capacity={"nvidia.com/gpu": 8}),
    ]
)
TAINTED, CORDONED, TOO_SMALL, NOT_NAMED = (
    "node(s) had untolerated taint(s)",
    "node(s) were unschedulable",
    "Insufficient nvidia.com/gpu",
    "node(s) didn't match Pod's node affinity/selector",
)


def named(*names: str) -> PodBuilder:
    """Return a pod whose pre-filter names these nodes."""
    values = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": values}}
    return make_pod().affinity({"nodeAffinity": required})


def left_out(*plugins: str) -> str:
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"


@pytest.mark.parametrize(
    ("pod", "nominated", "fitting", "reasons"),
    [
        pytest.param(make_pod(), "", "ad", {TAINTED: 1, CORDONED: 1}, id="none"),
        pytest.param(make_pod(), "gone", "ad", {TAINTED: 1, CORDONED: 1}, id="a node that is gone"),
        pytest.param(make_pod(), "d", "d", {}, id="it fits"),
        pytest.param(make_pod(), "b", "ad", {TAINTED: 1, CORDONED: 1}, id="it does not fit and is counted once"),
        pytest.param(
            make_pod().gpu(9), "a", "", {TAINTED: 1, CORDONED: 1, TOO_SMALL: 2}, id="no other node fits either"
        ),
        pytest.param(named("a", "b"), "", "a", {left_out("NodeAffinity"): 2, TAINTED: 1}, id="named nodes"),
        pytest.param(
            named("a"), "d", "a", {left_out("NodeAffinity"): 2, NOT_NAMED: 1}, id="its filter rejects it by name"
        ),
        pytest.param(
            named("a"),
            "b",
            "a",
            {left_out("NodeAffinity", "TaintToleration"): 2, TAINTED: 1},
            id="it is not named and does not fit",
        ),
        pytest.param(
            named("a", "b"),
            "b",
            "a",
            {left_out("NodeAffinity", "TaintToleration"): 2, TAINTED: 1},
            id="it is named and does not fit",
        ),
    ],
)
def test_nominated_node_is_evaluated_first(
    pod: PodBuilder, nominated: str, fitting: str, reasons: dict[str, int]
) -> None:
    content = pod.status(nominatedNodeName=nominated).obj() if nominated else pod.obj()
    info = PodSignature.of(content).info.normalized_for(NODES)

    found = find_nodes_that_fit(DEFAULT, info, NODES, never)

    assert "".join(each.node.name for each, fits in zip(NODES.nodes, found.feasible, strict=True) if fits) == fitting
    assert dict(found.reasons) == reasons
