"""Pods share a kept decision only if they have equal keys."""

import pytest

from tests.serving.decisions.rendered import answers_and_records, body_of
from tests.support.admission import TYPE
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.servers.server import World

NOW = "2026-01-31T12:00:00.000000Z"
TRAINING = make_pod("a").annotate(TYPE, "training")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(TRAINING, make_pod("b"), id="type"),
        pytest.param(TRAINING.owner("Job", "x"), TRAINING.owner("Job", "y"), id="owner"),
        pytest.param(make_pod("a").owner("Job", "x"), make_pod("a").owner("Job", "y"), id="owner, left alone"),
        pytest.param(TRAINING, TRAINING.scheduler("mine"), id="what stood there before"),
    ],
)
def test_pods_with_different_renderings_have_different_keys(first: PodBuilder, second: PodBuilder) -> None:
    bodies = [body_of(pod.obj(), number) for number, pod in enumerate([first, second, first])]

    assert answers_and_records(World(now=lambda: NOW), bodies) == [
        answers_and_records(World(now=lambda: NOW), [body])[0] for body in bodies
    ]
