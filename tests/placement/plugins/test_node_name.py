"""NodeName: a pod that names its node."""

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node, rejections
from webhook.placement.plugins.node_name import ERR_REASON, NodeName


@pytest.mark.parametrize(
    ("name", "rejected"),
    [("", []), ("a", ["b"]), ("elsewhere", ["a", "b"])],
    ids=["no name", "one of them", "none of them"],
)
def test_other_nodes_are_rejected(name: str, rejected: list[str]) -> None:
    found = rejections(NodeName(), make_pod().node_name(name), node("a"), node("b"))
    assert found == {each: [ERR_REASON] for each in rejected}
