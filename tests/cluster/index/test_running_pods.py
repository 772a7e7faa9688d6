"""The running pods that a selector selects, and the pods that their own terms select."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.index.terms import anti_affinity, info_of, show
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.cluster.index.running_pods import RunningPods
from webhook.cluster.index.shown_pods import ShownPods
from webhook.cluster.node_info import NodeInfo
from webhook.kube.selectors import LabelRequirement, selector_matches

_WEB = {"matchLabels": {"app": "web"}}
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
    return info_of("n", *made)


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
        show(shown, row, _running(nodes[row]) if row < len(nodes) else None, _running(pods))
    for found, expected in ((table, nodes), (later, after), (shown, after)):
        assert Counter(found.rows_selected(namespaces, selector).tolist()) == Counter(
            row
            for row, pods in enumerate(expected)
            for namespace, labels in pods
            if (namespaces is None or namespace in namespaces) and selector_matches(selector, labels)
        )


_rows = st.dictionaries(st.integers(0, 2), st.lists(st.booleans(), max_size=80), min_size=1, max_size=2)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), _rows), max_size=6))
def test_tables_of_one_origin_keep_to_their_own_pods(steps: list[tuple[int, bool, dict[int, list[bool]]]]) -> None:
    """`True` is a pod with a term. A step adds pods to a table, or replaces those of some rows, and keeps the table."""
    made = {True: anti_affinity(labelSelector=_WEB), False: make_pod().namespace("x")}
    known: list[tuple[RunningPods, dict[int, Counter[bool]]]] = [(RunningPods.of([info_of("a")] * 3), {})]
    for origin, is_added, rows in steps:
        table, held = known[origin % len(known)]
        infos = {row: info_of("n", *(made[each] for each in pods)) for row, pods in rows.items()}
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
    table = RunningPods.of([info_of("a", pod, pod), info_of("b", pod, pod.namespace("x"))])
    assert (len(table.classes), table.pods.row_of.tolist()) == (2, [0, 0, 1, 1])


def test_classes_beyond_the_initial_capacity_are_distinct() -> None:
    table = RunningPods.of([info_of("a", *(make_pod().label("index", str(index)) for index in range(200)))])
    assert len(table.rows_selected(None, (LabelRequirement("index", "In", ("0", "77", "199")),))) == 3


def test_pods_being_deleted_can_be_left_out() -> None:
    leaving = PodBuilder({"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}})
    table = RunningPods.of([info_of("a", leaving), info_of("b", make_pod())])
    assert sorted(table.rows_selected(None, ())) == [0, 1]
    assert table.rows_selected(None, (), terminating=False).tolist() == [1]


def test_terms_of_deleted_pods_have_no_carriers() -> None:
    table = RunningPods.of([info_of("a", anti_affinity(labelSelector=_WEB)), info_of("b")])
    gone = table.with_rows({0: info_of("a")})
    assert list(gone.carried("x", {}, {"app": "web"})) == []
    assert table.has_terms
    assert table.term_keys == {"app"}
    assert not gone.has_terms
    assert not gone.term_keys


def test_a_selection_is_remembered_for_its_own_table_only() -> None:
    web, is_web = make_pod().namespace("x").label("app", "web"), (LabelRequirement("app", "In", ("web",)),)
    table = RunningPods.of([info_of("a", web), info_of("b")])
    assert table.rows_selected(None, is_web).tolist() == [0]
    assert table.rows_selected(None, is_web).tolist() == [0]
    assert table.rows_selected(frozenset(("y",)), is_web).tolist() == []
    assert sorted(table.with_added({1: info_of("b", web).pods}).rows_selected(None, is_web).tolist()) == [0, 1]
    shown = ShownPods(table)
    assert shown.rows_selected(None, is_web).tolist() == [0]
    show(shown, 0, info_of("a", web), info_of("a"))
    assert shown.rows_selected(None, is_web).tolist() == []
    assert table.rows_selected(None, is_web).tolist() == [0]


def test_each_table_knows_whether_one_of_its_own_pods_is_being_deleted() -> None:
    kept, deleted = make_pod().label("n", "kept"), make_pod().deletion("2026-01-01T00:00:00Z")
    table = RunningPods.of([info_of("a", kept), info_of("b")])
    layer = ShownPods(table)
    show(layer, 1, info_of("b"), info_of("b", deleted))
    later = table.with_added({1: info_of("b", deleted).pods})

    for found, expected in (
        (table, False),
        (layer, True),
        (later, True),
        (ShownPods(table), False),
        (ShownPods(later), True),
    ):
        assert found.is_any_terminating is expected
        assert found.terminating().any() == expected
