"""Label columns return for all nodes what `requirement_matches` returns for one."""

from collections.abc import Mapping

from hypothesis import example, given
from hypothesis import strategies as st

from webhook.cluster.index.labels import LabelColumns
from webhook.kube.selectors import requirement_matches

VALUES = ["", "a", "b", "7", "-8", "+9", "1_0", "9223372036854775807", "9223372036854775808", "٣"]
labels = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(VALUES), max_size=2)
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near", ""])


@given(st.lists(labels, max_size=6), operators, st.lists(st.sampled_from(VALUES), max_size=2))
@example([{"x": "9223372036854775807"}], "Gt", ["7"])
def test_columns_answer_as_one_node_after_the_other(
    nodes: list[Mapping[str, str]], operator: str, values: list[str]
) -> None:
    requirement = {"key": "x", "operator": operator, "values": values}

    found = LabelColumns(nodes).matches("x", operator, values)

    assert found.tolist() == [requirement_matches(requirement, each) for each in nodes]
