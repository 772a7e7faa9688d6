"""The running pods that a selector selects, and the pods that their own terms select."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.cluster.index.running_pods import RunningPods
from webhook.cluster.index.shown_pods import ShownPods
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.kube.selectors import LabelRequirement, selector_matches

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEB = {"matchLabels": {"app": "web"}}


def _info(name: str, *pods: PodBuilder) -> NodeInfo:
    return NodeInfo.of(Node.of(make_node_object(name)), [RunningPod.of(pod.obj()) for pod in pods])


_label_sets = st.dictionaries(st.sampled_from(("k", "l")), st.sampled_from(("a", "b", "")))
_requirements = st.builds(
    LabelRequirement,
    st.sampled_from(("k", "l", "absent")),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Like")),
    st.lists(st.sampled_from(("a", "b", "unknown")), max_size=2).map(tuple),
)
_pods = st.lists(st.tuples(st.sampled_from(("x", "y")), _label_sets), max_size=3)


def _running(pods: list[tuple[str, dict[str, str]]]) -> NodeInfo:
    made = [make_pod().namespace(namespace) for namespace, _ in pods]
    for index, (_, labels) in enumerate(pods):
        for key, value in labels.items():
            made[index] = made[index].label(key, value)
    return _info("n", *made)


def _show(table: ShownPods, row: int, before: NodeInfo | None, after: NodeInfo) -> None:
    """Show the pods of `after` in place of those of `before`, unless there is no such row."""
    if before is not None:
        for pod in before.pods:
            table.remove(pod, row)
        for pod in after.pods:
            table.add(pod, row)


@given(
    nodes=st.lists(_pods, max_size=4),
    changed=st.dictionaries(st.integers(0, 3), _pods, max_size=2),
    namespaces=st.none() | st.frozensets(st.sampled_from(("x", "y", "unknown"))),
    selector=st.none() | st.lists(_requirements, max_size=2).map(tuple),
)
def test_pods_are_selected_as_each_would_be(
    nodes: list[Any], changed: dict[int, Any], namespaces: frozenset[str] | None, selector: Any
) -> None:
    table = RunningPods.of([_running(pods) for pods in nodes])
    later = table.with_rows({row: _running(pods) for row, pods in changed.items() if row < len(nodes)})
    after = [changed.get(row, pods) for row, pods in enumerate(nodes)]
    # The classes of `later` are those of `table`, but not those of a table of shown pods.
    shown = ShownPods(table)
    for row, pods in changed.items():
        _show(shown, row, _running(nodes[row]) if row < len(nodes) else None, _running(pods))
    for found, expected in ((table, nodes), (later, after), (shown, after)):
        assert Counter(found.rows_selected(namespaces, selector).tolist()) == Counter(
            row
            for row, pods in enumerate(expected)
            for namespace, labels in pods
            if (namespaces is None or namespace in namespaces) and selector_matches(selector, labels)
        )


def test_pods_that_are_added_are_selected_and_carry_terms() -> None:
    web, away = make_pod().namespace("x").label("app", "web"), _anti_affinity(labelSelector=_WEB)
    table = RunningPods.of([_info("a", web), _info("b")])

    more = table.with_added({1: _info("b", web, away).pods, 0: _info("a", away).pods})

    is_web = (LabelRequirement("app", "In", ("web",)),)
    assert Counter(more.rows_selected(frozenset(("x",)), is_web).tolist()) == {0: 1, 1: 1}
    assert Counter(more.rows_selected(None, ()).tolist()) == {0: 2, 1: 2}
    (carried,) = more.carried("x", {}, {"app": "web"})
    rows, times = more.carrier_rows(carried)
    assert dict(zip(rows.tolist(), times.tolist(), strict=True)) == {0: 1, 1: 1}
    assert not table.has_terms


_rows = st.dictionaries(st.integers(0, 2), st.lists(st.booleans(), max_size=80), min_size=1, max_size=2)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), _rows), max_size=6))
def test_tables_of_one_origin_keep_to_their_own_pods(steps: list[tuple[int, bool, dict[int, list[bool]]]]) -> None:
    """`True` is a pod with a term. A step adds pods to a table, or replaces those of some rows, and keeps the table."""
    made = {True: _anti_affinity(labelSelector=_WEB), False: make_pod().namespace("x")}
    known: list[tuple[RunningPods, dict[int, Counter[bool]]]] = [(RunningPods.of([_info("a")] * 3), {})]
    for origin, is_added, rows in steps:
        table, held = known[origin % len(known)]
        infos = {row: _info("n", *(made[each] for each in pods)) for row, pods in rows.items()}
        if is_added:
            counts = {row: held.get(row, Counter()) + Counter(pods) for row, pods in rows.items()}
            table = table.with_added({row: info.pods for row, info in infos.items()})
        else:
            counts = {row: Counter(pods) for row, pods in rows.items()}
            table = table.with_rows(infos)
        known.append((table, held | counts))
    for table, held in known:
        assert Counter(table.rows_selected(None, ()).tolist()) == Counter(
            {row: counts.total() for row, counts in held.items() if counts}
        )
        assert Counter(table.carriers.row_of.tolist()) == Counter(
            {row: counts[True] for row, counts in held.items() if counts[True]}
        )


def test_equal_pods_are_one_class() -> None:
    pod = make_pod().label("app", "web")
    table = RunningPods.of([_info("a", pod, pod), _info("b", pod, pod.namespace("x"))])
    assert (len(table.classes), table.pods.row_of.tolist()) == (2, [0, 0, 1, 1])


def test_classes_beyond_the_initial_capacity_are_distinct() -> None:
    table = RunningPods.of([_info("a", *(make_pod().label("index", str(index)) for index in range(200)))])
    assert len(table.rows_selected(None, (LabelRequirement("index", "In", ("0", "77", "199")),))) == 3


def test_pods_being_deleted_can_be_left_out() -> None:
    leaving = PodBuilder({"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}})
    table = RunningPods.of([_info("a", leaving), _info("b", make_pod())])
    assert sorted(table.rows_selected(None, ())) == [0, 1]
    assert table.rows_selected(None, (), terminating=False).tolist() == [1]


def test_table_is_fragmented_after_many_pods_are_deleted() -> None:
    table = RunningPods.of([_info("a")])
    for index in range(1002):
        assert not table.is_fragmented
        table = table.with_rows({0: _info("a", make_pod().label("index", str(index)))})
    table = table.with_rows({0: _info("a")})
    assert table.is_fragmented


def _anti_affinity(kind: str = _REQUIRED, **term: Any) -> PodBuilder:
    term = {"topologyKey": "zone", **term}
    terms = [{"weight": 1, "podAffinityTerm": term}] if kind == _PREFERRED else [term]
    return make_pod().namespace("x").affinity({"podAntiAffinity": {kind: terms}})


@pytest.mark.parametrize(
    ("term", "namespace", "expected"),
    [
        pytest.param({"labelSelector": _WEB}, "x", True, id="its own namespace"),
        pytest.param({"labelSelector": _WEB}, "y", False, id="another namespace"),
        pytest.param({"labelSelector": {"matchLabels": {"app": "db"}}}, "x", False, id="other labels"),
        pytest.param({"labelSelector": {}, "namespaces": ["y"]}, "y", True, id="namespaces by name"),
        pytest.param({"labelSelector": {}, "namespaces": ["y"]}, "x", False, id="not its own then"),
        pytest.param({"labelSelector": {}, "namespaceSelector": {}}, "z", True, id="all namespaces"),
        pytest.param(
            {
                "labelSelector": {},
                "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]},
            },
            "y",
            True,
            id="namespaces by labels",
        ),
        pytest.param({"namespaces": ["x"]}, "x", False, id="no selector matches no pod"),
        pytest.param(
            {"labelSelector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}},
            "x",
            True,
            id="a label that is not there",
        ),
    ],
)
def test_pods_that_a_term_selects(term: dict[str, Any], namespace: str, expected: bool) -> None:
    table = RunningPods.of([_info("a", _anti_affinity(**term))])
    assert bool(list(table.carried(namespace, {"team": "a"}, {"app": "web"}))) is expected


def test_equal_terms_of_pods_are_one() -> None:
    required, preferred = _anti_affinity(labelSelector=_WEB), _anti_affinity(_PREFERRED, labelSelector=_WEB)
    table = RunningPods.of([_info("a", required, required), _info("b", required.label("k", "v"), preferred)])
    found = {carried.kind: carried for carried in table.carried("x", {}, {"app": "web"})}
    assert {kind: carried.weight for kind, carried in found.items()} == {"anti_required": 0, "preferred": -1}
    rows, times = table.carrier_rows(found["anti_required"])
    assert (rows.tolist(), times.tolist()) == ([0, 0, 1], [1, 1, 1])


def test_duplicate_term_of_a_pod_counts_twice() -> None:
    weighted = {"weight": 5, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": _WEB}}
    pod = make_pod().affinity({"podAffinity": {_PREFERRED: [weighted, weighted]}})
    table = RunningPods.of([_info("a", pod)])
    (carried,) = table.carried("default", {}, {"app": "web"})
    assert table.carrier_rows(carried)[1].tolist() == [2]


def test_terms_of_deleted_pods_have_no_carriers() -> None:
    table = RunningPods.of([_info("a", _anti_affinity(labelSelector=_WEB)), _info("b")])
    gone = table.with_rows({0: _info("a")})
    assert list(gone.carried("x", {}, {"app": "web"})) == []
    assert table.has_terms
    assert table.term_keys == {"app"}
    assert not gone.has_terms
    assert not gone.term_keys


def test_a_layer_and_its_base_get_classes_of_their_own() -> None:
    spread = {"podAntiAffinity": {_REQUIRED: [{"topologyKey": "zone", "labelSelector": _WEB}]}}
    pods = [make_pod().label("n", str(number)).affinity(spread) for number in range(3)]
    base = RunningPods.of([_info("n", pods[0]), _info("n")])
    layer = ShownPods(base)
    _show(layer, 1, _info("n"), _info("n", pods[1]))
    later = base.with_rows({1: _info("n", pods[0], pods[2])})
    for table, rows in ((base, [0]), (layer, [0, 1]), (later, [0, 1, 1])):
        found = [table.carrier_rows(each)[0].tolist() for each in table.carried("default", {}, {"app": "web"})]
        assert sorted(row for each in found for row in each) == rows
    assert (len(base.classes), layer.classes.own_count) == (2, 1)


def test_a_selection_is_remembered_for_its_own_table_only() -> None:
    web, is_web = make_pod().namespace("x").label("app", "web"), (LabelRequirement("app", "In", ("web",)),)
    table = RunningPods.of([_info("a", web), _info("b")])
    assert table.rows_selected(None, is_web).tolist() == [0]
    assert table.rows_selected(None, is_web).tolist() == [0]
    assert table.rows_selected(frozenset(("y",)), is_web).tolist() == []
    assert sorted(table.with_added({1: _info("b", web).pods}).rows_selected(None, is_web).tolist()) == [0, 1]
    shown = ShownPods(table)
    assert shown.rows_selected(None, is_web).tolist() == [0]
    _show(shown, 0, _info("a", web), _info("a"))
    assert shown.rows_selected(None, is_web).tolist() == []
    assert table.rows_selected(None, is_web).tolist() == [0]


def test_each_table_knows_whether_one_of_its_own_pods_is_being_deleted() -> None:
    kept, deleted = make_pod().label("n", "kept"), make_pod().deletion("2026-01-01T00:00:00Z")
    table = RunningPods.of([_info("a", kept), _info("b")])
    layer = ShownPods(table)
    _show(layer, 1, _info("b"), _info("b", deleted))
    later = table.with_added({1: _info("b", deleted).pods})

    for found, expected in (
        (table, False),
        (layer, True),
        (later, True),
        (ShownPods(table), False),
        (ShownPods(later), True),
    ):
        assert found.is_any_terminating is expected
        assert found.terminating().any() == expected
