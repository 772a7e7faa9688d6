"""The values that classes of pods have."""

import tracemalloc

import pytest

from tests.cluster.index.numbered import numbered
from tests.support.objects.builders import make_pod
from webhook.cluster.index.pod_classes import PodClasses
from webhook.cluster.node_info import RunningPod
from webhook.kube.selectors import LabelRequirement

_WEB, _DB, _BARE = make_pod().label("app", "web"), make_pod().label("app", "db"), make_pod()


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ("web",), [True, False, False]),
        ("In", ("web", "db"), [True, True, False]),
        ("NotIn", ("web",), [False, True, True]),
        ("Exists", (), [True, True, False]),
        ("DoesNotExist", (), [False, False, True]),
        ("Exists", ("web",), [False, False, False]),
        ("In", (), [False, False, False]),
    ],
)
def test_requirement_selects_classes_by_their_labels(
    operator: str, values: tuple[str, ...], expected: list[bool]
) -> None:
    classes = PodClasses()
    numbered(classes, _WEB, _DB, _BARE)
    selector = (LabelRequirement("app", operator, values),)
    assert classes.selected(3, ["default"], selector).tolist() == expected
    assert classes.selected(3, None, selector).tolist() == expected
    assert classes.selected(3, ["other"], selector).tolist() == [False] * 3


def test_a_label_takes_memory_for_the_classes_that_have_it_alone() -> None:
    classes = PodClasses()
    numbered(classes, *(make_pod().label("app", str(number)) for number in range(2000)))
    pod = make_pod()
    for number in range(300):
        pod = pod.label(f"key-{number}", "")
    running = RunningPod.of(pod.obj())
    tracemalloc.start()
    try:
        classes.number(running)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
