"""`capacity`: report how many more of each pod fit, on which nodes, and what stops the next one."""

from pathlib import Path

from tests.support.builders import make_pod
from tests.support.cluster_files import FEASIBLE, INFEASIBLE, as_list, lines, write_cluster
from tests.support.command import Run


def test_json_is_one_object_a_line_in_the_order_of_the_pods(run: Run, tmp_path: Path) -> None:
    pods = as_list(make_pod("one").namespace("team-a").gpu(1), INFEASIBLE)

    outcome = run("capacity", "-f", "-", "--cluster", write_cluster(tmp_path), "-o", "json", stdin=pods)

    one, infeasible = lines(outcome.output)
    blocks = [
        {"pool": None, "resource": "nvidia.com/gpu", "product": None, "cards": 4, "nodes": 1},
        {"pool": "training", "resource": "nvidia.com/gpu", "product": None, "cards": 0, "nodes": 1},
    ]
    message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s)."
    assert one == {
        "pod": "team-a/one",
        "fits": 4,
        "nodes": {"free": 4},
        "stoppedBy": message,
        "complete": True,
        "endedEarly": None,
        "range": [4, 4],
        "refused": False,
        "largestBlocks": blocks,
    }
    assert infeasible == one | {"pod": "default/infeasible", "fits": 0, "nodes": {}, "range": [0, 0]}
    assert (outcome.code, outcome.errors) == (0, "")


def test_text_has_the_count_the_nodes_the_message_and_the_blocks(run: Run, tmp_path: Path) -> None:
    outcome = run("capacity", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(FEASIBLE))

    assert outcome.output.splitlines() == [
        "default/feasible: 1 more fits",
        "  1 on free",
        "  the next one: 0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s).",
        "largest free blocks on one node, as the cluster stands:",
        "  pool      resource        free cards  nodes",
        "  -         nvidia.com/gpu           4      1",
        "  training  nvidia.com/gpu           0      1",
    ]
