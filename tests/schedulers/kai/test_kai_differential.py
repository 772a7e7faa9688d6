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


def new_pod(pod: Object) -> Object:
    """Return the pod without its owner, which may not exist: KAI's pod grouper needs it."""
    metadata = {key: value for key, value in pod["metadata"].items() if key != "ownerReferences"}
    return without_sidecars({**pod, "metadata": metadata})


def running_pod(pod: Object) -> Object:
    """Return the pod without pod-level resources, which KAI does not count of running pods."""
    return without_sidecars({**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "resources"}})


def without_sidecars(pod: Object) -> Object:
    """Return the pod with its sidecars as init containers that end: KAI counts them so."""
    spec = pod["spec"]
    if "initContainers" not in spec:
        return pod
    ended = [{key: value for key, value in each.items() if key != "restartPolicy"} for each in spec["initContainers"]]
    return {**pod, "spec": {**spec, "initContainers": ended}}


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
        alter=new_pod,
        alter_running=running_pod,
    )

    bound = [each for each in found if each.answer.node]
    print(f"{len(found)} pods, {len(bound)} bound, {sum(each.is_best for each in bound)} on a best node")
    assert [str(each) for each in found if each.placement.verdict == "Unknown"] == []
    assert [str(each) for each in found if not each.agrees_on_binding] == []
    assert len(bound) >= len(found) / 4
