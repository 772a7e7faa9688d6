"""Pre-filters that name nodes: what several of them leave together, and in which words."""

from dataclasses import dataclass, replace

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.interface import PreFilterResult
from webhook.placement.pod.pod_info import PodInfo
from webhook.placement.profiles.profile import DEFAULT
from webhook.placement.scheduler import PodSignature, Scheduler

_NODES = Snapshot.of([node(name) for name in "abcd"])
_POD = make_pod().obj()


@dataclass(slots=True)
class Naming:
    """A plugin that names nodes before any is looked at."""

    name: str
    names: frozenset[str]

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:  # noqa: ARG002 - the contract of a plugin
        """The nodes that it was made with."""
        return PreFilterResult(node_names=self.names)


def _framework(**names: str) -> Scheduler:
    plugins = tuple(Naming(name, frozenset(named)) for name, named in names.items())
    return Scheduler(replace(DEFAULT, pre_filters=(*DEFAULT.pre_filters, *plugins)))


def test_nodes_that_each_pre_filter_names_are_in_question() -> None:
    placement = _framework(One="abc", Other="bcd").place(_POD, _NODES)
    assert (placement.feasible, placement.node) == (2, "b")


_NO = "0/4 nodes are available: "


@pytest.mark.parametrize(
    ("named", "message"),
    [
        pytest.param({"One": "x"}, _NO + "4 node(s) didn't satisfy plugin(s) [One].", id="a node that is not there"),
        pytest.param(
            {"One": "xa", "Another": "xb"},
            _NO + "4 node(s) didn't satisfy plugin(s) [Another One].",
            id="the only common one is not there",
        ),
        pytest.param(
            {"One": "ab", "Another": "cd"},
            _NO + "node(s) didn't satisfy plugin(s) [Another One] simultaneously.",
            id="none is named by both",
        ),
        pytest.param(
            {"One": "a", "Another": "b", "Third": "c"},
            _NO + "node(s) didn't satisfy plugin(s) [Another One] simultaneously.",
            id="the third is not asked",
        ),
        pytest.param({"One": ""}, _NO + "node(s) didn't satisfy plugin One.", id="one that names none"),
    ],
)
def test_message_names_the_plugins_as_kube_scheduler_does(named: dict[str, str], message: str) -> None:
    assert _framework(**named).place(_POD, _NODES).message == message


def test_each_left_out_node_is_explained_by_all_that_name_nodes() -> None:
    reasons = _framework(One="ab", Other="bc").explain(PodSignature.of(_POD), _NODES)
    assert reasons == dict.fromkeys("acd", ("node(s) didn't satisfy plugin(s) [One Other]",))


def test_nodes_are_explained_in_the_words_of_the_message_where_none_is_left() -> None:
    reasons = _framework(One="ab", Other="cd").explain(PodSignature.of(_POD), _NODES)
    assert reasons == dict.fromkeys("abcd", ("node(s) didn't satisfy plugin(s) [One Other] simultaneously",))
