"""A decision rendered for one pod is the same for equal pods."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.case import cluster_of
from tests.serving.decisions.rendered import answers_and_records, body_of
from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.random.random_pods import pods
from tests.support.servers.server import World

NOW = "2026-01-31T12:00:00.000000Z"
NODE = make_node_object("node-1", labels={"kubernetes.io/hostname": "node-1"})
TRAINING = make_pod("a").annotate(TYPE, "training")


@pytest.mark.slow
@given(st.lists(pods(), min_size=1, max_size=3), st.booleans())
def test_answers_and_records_of_equal_pods_are_equal(kinds: list[dict[str, Any]], has_view: bool) -> None:
    cluster = cluster_of({"cluster": [NODE]}) if has_view else None
    renamed = [pod | {"metadata": pod["metadata"] | {"name": f"other-{at}"}} for at, pod in enumerate(kinds)]
    bodies = [body_of(pod, number) for number, pod in enumerate([*kinds, *renamed, *kinds])]

    together = answers_and_records(World(cluster=cluster, now=lambda: NOW), bodies)

    assert together == [answers_and_records(World(cluster=cluster, now=lambda: NOW), [body])[0] for body in bodies]


def test_another_policy_is_named_immediately() -> None:
    world = World()
    admissions, body = world.admissions(), body_of(TRAINING.obj(), 1)
    admissions.answer(body, 1000.0, None)
    world.policy = policy_with(placementCheck={"mode": "off"})

    answer = orjson.loads(admissions.answer(body, 1000.0, None).body)

    assert answer["response"]["auditAnnotations"]["policy"] == world.policy.identity
    assert [record.policy.revision for record in world.records if record.policy][1] == world.policy.revision


def test_record_names_what_is_left_out_of_it_beside_parts_of_an_equal_injection() -> None:
    """The pods differ in their owner only, whose name is too long for a record."""
    longer = make_pod("b").annotate(TYPE, "training").owner("Job", "x" * 3000)
    bodies = [body_of(pod.obj(), number) for number, pod in enumerate((TRAINING.owner("Job", "x"), longer))]

    (_, first), (_, second) = answers_and_records(World(now=lambda: NOW), bodies)

    assert (first.truncated, second.truncated) == ((), ("owner.name: 1976 more characters",))
