"""Predictions for random pods on random clusters, compared with the real KAI: bound or not."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.schedulers.asked import Asked, compared_on_random_worlds
from tests.schedulers.build import Built
from tests.schedulers.installed import kai
from webhook.placement.batch_profiles.kai import KAI

PODS_PER_WORLD = 20
WORLDS = max(1, int(os.environ.get("DIFFERENTIAL_KAI", "60")) // PODS_PER_WORLD)


def without_owner(pod: Object) -> Object:
    return {**pod, "metadata": {key: value for key, value in pod["metadata"].items() if key != "ownerReferences"}}


def without_pod_resources(pod: Object) -> Object:
    return {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "resources"}}


@contextmanager
def asking(cluster: Cluster, built: Built, folder: Path) -> Iterator[Asked]:
    with kai.running(cluster, built, folder) as started:
        started.make_queue("default-queue")
        yield Asked(cluster, kai.POD_GROUPS)


@pytest.mark.timeout(900)
def test_random_pods_are_bound_by_kai_as_predicted(cluster: Cluster, kai_programs: Built, tmp_path: Path) -> None:
    found = compared_on_random_worlds(
        cluster,
        KAI,
        lambda folder: asking(cluster, kai_programs, folder),
        tmp_path,
        scheduler_name="kai-scheduler",
        worlds=WORLDS,
        pods_per_world=PODS_PER_WORLD,
        # Its pod grouper needs the owner of a pod, which may not exist.
        alter=without_owner,
        # It does not count these resources of a running pod, see docs/schedulers.md.
        alter_running=without_pod_resources,
    )

    bound = [each for each in found if each.answer.node]
    print(f"{len(found)} pods, {len(bound)} bound, {sum(each.is_best for each in bound)} on a best node")
    assert [str(each) for each in found if each.placement.verdict == "Unknown"] == []
    assert [str(each) for each in found if not each.agrees_on_binding] == []
    assert len(bound) >= len(found) / 4
