"""The JSON of a predicted preemption."""

from webhook.placement.framework.predicted_preemption import PredictedPreemption


def test_a_certain_node_is_named_by_itself() -> None:
    found = PredictedPreemption(nodes=("a",), violates=("team/web",), candidates=1)
    assert found.to_json() == {"node": "a", "victims": [], "violates": ["team/web"], "isExact": True}


def test_nodes_of_which_one_is_chosen_are_listed_with_the_reason() -> None:
    found = PredictedPreemption(nodes=("a", "b"), is_exact=False, why="one of a, b; 1 victim each", candidates=2)
    assert found.to_json() == {
        "oneOf": ["a", "b"],
        "victims": [],
        "violates": [],
        "isExact": False,
        "why": "one of a, b; 1 victim each",
    }


def test_no_candidate_evicts_nobody() -> None:
    assert not PredictedPreemption(message="preemption: …").evicts
