"""Label columns return for all nodes what `requirement_matches` returns for one."""

from collections.abc import Mapping

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from webhook.cluster.index.labels import LabelColumns
from webhook.kube.selectors import requirement_matches

VALUES = ["", "a", "b", "7", "-8", "+9", "1_0", "9223372036854775807", "9223372036854775808", "٣"]
labels = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(VALUES), max_size=2)
labels_of_three = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("abc"), max_size=3)
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near", ""])


@given(st.lists(labels, max_size=6), operators, st.lists(st.sampled_from(VALUES), max_size=2))
@example([{"x": "9223372036854775807"}], "Gt", ["7"])
@example([{"x": "a"}, {}], "NotIn", [])
@example([{"x": "7"}, {"x": "-8"}], "Gt", ["7"])
@example([{"x": "7"}, {"x": "-8"}], "Lt", ["-8"])
def test_columns_answer_as_one_node_after_the_other(
    nodes: list[Mapping[str, str]], operator: str, values: list[str]
) -> None:
    requirement = {"key": "x", "operator": operator, "values": values}

    found = LabelColumns(nodes).matches("x", operator, values)

    assert found.tolist() == [requirement_matches(requirement, each) for each in nodes]


def test_moved_row_has_the_labels_that_it_had_and_a_new_one_has_none() -> None:
    columns = LabelColumns([{"x": "a", "y": "1"}, {"x": "b"}, {}])

    moved = columns.with_rows_moved(np.array([2, -1, 0, 1]))

    assert moved.count == 4
    assert moved.matches("x", "In", ["a"]).tolist() == [False, False, True, False]
    assert moved.matches("x", "DoesNotExist", []).tolist() == [True, True, False, False]
    assert moved.domains("x").codes.tolist() == [-1, -1, 0, 1]


def test_label_that_no_node_has_any_more_makes_no_domain() -> None:
    """Its first value is code 0: it counts as long as one node has it."""
    columns = LabelColumns([{"x": "a"}, {"y": "1"}])
    assert columns.with_rows_moved(np.array([1])).domains("x").size == 0
    assert columns.with_rows_moved(np.array([0])).domains("x").size == 1


@given(
    st.lists(labels_of_three, max_size=5), st.lists(st.integers(-1, 4), max_size=6), st.sampled_from(("x", "xy", "xyz"))
)
def test_values_and_domains_are_those_of_the_nodes(nodes: list[dict[str, str]], source: list[int], keys: str) -> None:
    rows = [each for each in source if each < len(nodes)]
    moved = [nodes[row] if row >= 0 else {} for row in rows]

    for columns, wanted in (
        (LabelColumns(nodes), nodes),
        (LabelColumns(nodes).with_rows_moved(np.array(rows, dtype=np.intp)), moved),
    ):
        assert columns.count == len(wanted)
        assert columns.values("x") == {each["x"] for each in wanted if "x" in each}
        codes, paths = columns.paths(keys)
        assert [paths[code] if code >= 0 else None for code in codes.tolist()] == [
            tuple(each[key] for key in keys) if all(key in each for key in keys) else None for each in wanted
        ]
