"""Pre-filters that name nodes: what several of them leave together, and in which words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.placement.framework.filtering import run_filters
from webhook.placement.framework.interface import Failure, FilterPlugin, PreFilterResult
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


Rejected = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Rejecting:
    """A plugin that rejects rows by reason, also with nominated pods on them."""

    rejected: Rejected
    beside_nominated: Rejected
    name: str = "Rejecting"

    def filter(self, *_: Any) -> list[Failure]:
        return [Failure(reason, _mask(rows)) for reason, rows in self.rejected]


@dataclass(frozen=True, slots=True)
class Nominated:
    """Nodes with nominated pods."""

    rows: tuple[int, ...]

    def failures(self, plugin: FilterPlugin, candidates: Mask) -> list[Failure]:
        own = cast(Rejecting, plugin).beside_nominated
        return [Failure(reason, _mask(rows) & candidates & _mask(self.rows)) for reason, rows in own]


def _mask(rows: Sequence[int]) -> Mask:
    return np.array([row in rows for row in range(4)], dtype=np.bool_)


def _plain(
    plugins: Sequence[Rejecting], nominated: Nominated | None, carry_on: frozenset[str] | None, candidates: set[int]
) -> tuple[set[int], Counter[str]]:
    """Return the rows that pass, and the reasons, as kube-scheduler and Volcano look at one node after the other."""
    passing, reasons = set(), Counter[str]()
    for row in candidates:
        steps = [each.rejected for each in plugins]
        if nominated is not None and carry_on is None and row in nominated.rows:
            steps = [each.beside_nominated for each in plugins] + steps
        is_rejected = False
        for step in steps:
            found = [reason for reason, rows in step if row in rows]
            reasons.update(found)
            is_rejected |= bool(found)
            if any(reason not in (carry_on or ()) for reason in found):
                break
        if not is_rejected:
            passing.add(row)
    return passing, reasons


REJECTED = st.lists(st.tuples(st.sampled_from("xyz"), st.lists(st.integers(0, 3)).map(tuple)), max_size=2).map(tuple)


@given(
    st.lists(st.builds(Rejecting, REJECTED, REJECTED), max_size=3),
    st.one_of(st.none(), st.builds(Nominated, st.lists(st.integers(0, 3)).map(tuple))),
    st.sampled_from((None, frozenset(), frozenset("x"), frozenset("xy"))),
    st.sets(st.integers(0, 3)),
)
@example([Rejecting((("x", (0,)),), ()), Rejecting((("x", (1,)),), ())], None, frozenset("x"), {0, 1, 2})
def test_nodes_are_filtered_as_one_after_the_other(
    plugins: list[Rejecting], nominated: Nominated | None, carry_on: frozenset[str] | None, candidates: set[int]
) -> None:
    reasons: Counter[str] = Counter()

    left = run_filters(
        cast(Any, plugins),
        carry_on,
        cast(Any, None),
        _NODES,
        cast(Any, nominated),
        never,
        _mask([*candidates]),
        reasons,
    )

    assert ({*np.flatnonzero(left).tolist()}, +reasons) == _plain(plugins, nominated, carry_on, candidates)
