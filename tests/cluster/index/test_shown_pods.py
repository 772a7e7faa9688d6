"""The table of a working snapshot has the pods that were added and not removed, whenever it is read."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.cluster.index.running_pods import RunningPods
from webhook.cluster.index.shown_pods import ShownPods
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.kube.selectors import LabelRequirement

_REPELS = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {}}],
    }
}
_IS_WEB = (LabelRequirement("app", "In", ("web",)),)


def _kinds() -> dict[str, PodBuilder]:
    return {"web": make_pod().label("app", "web"), "db": make_pod(), "alone": make_pod().affinity(_REPELS)}


def _pod(kind: str) -> RunningPod:
    return RunningPod.of(_kinds()[kind].obj())


def _base(pods: list[tuple[int, str]]) -> RunningPods:
    return RunningPods.of(
        [
            NodeInfo.of(Node.of(make_node_object("n")), [_pod(kind) for at, kind in pods if at == row])
            for row in range(3)
        ]
    )


_places = st.tuples(st.integers(0, 2), st.sampled_from(("web", "db", "alone")))


@given(
    st.lists(_places, max_size=12),
    st.lists(st.tuples(st.sampled_from(("add", "remove", "read")), _places), max_size=30),
)
def test_pods_that_are_added_and_removed_are_counted(
    pods: list[tuple[int, str]], steps: list[tuple[str, tuple[int, str]]]
) -> None:
    base, left = _base(pods), Counter(pods)
    table = ShownPods(base)
    shared = {kind: _pod(kind) for kind in _kinds()}
    for step, (row, kind) in steps:
        if step == "add":
            table.add(shared[kind], row)
            left[row, kind] += 1
        elif step == "remove" and left[row, kind]:
            table.remove(shared[kind], row)
            left[row, kind] -= 1
        elif step == "read":
            assert sorted(table.rows_selected(None, _IS_WEB).tolist()) == _rows(left, "web")
        assert table.has_terms == bool(_rows(left, "alone"))
    for found, expected in ((table, left), (base, Counter(pods))):
        assert sorted(found.rows_selected(None, ()).tolist()) == _rows(expected, "web", "db", "alone")
        assert sorted(found.rows_selected(None, _IS_WEB).tolist()) == _rows(expected, "web")
        assert sorted(found.carriers.row_of.tolist()) == _rows(expected, "alone")


def _rows(counts: Counter[tuple[int, str]], *kinds: str) -> list[int]:
    return sorted(row for (row, kind), count in counts.items() for _ in range(count) if kind in kinds)


def test_pods_that_share_labels_and_differ_otherwise_have_classes_of_their_own() -> None:
    table, web = ShownPods(_base([])), _pod("web")
    others = (web._replace(namespace="x"), web._replace(is_terminating=True), web._replace(terms=_pod("alone").terms))

    numbers = [table.add(pod, 0) for pod in (web, *others, web, *others)]

    assert (len(set(numbers)), numbers[:4]) == (4, numbers[4:])
    assert [table.remove(pod, 0) for pod in others] == numbers[1:4]


def test_many_templates_keep_their_numbers() -> None:
    table = ShownPods(_base([]))
    pods = [RunningPod.of(make_pod().label("n", str(number)).obj()) for number in range(1500)]
    numbers = [table.add(pod, 0) for pod in pods]
    assert [table.remove(pod, 0) for pod in pods] == numbers
    assert len(table.pods) == 0
