"""The verdicts on gangs of kube-scheduler's own, compared with what the real one starts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.schedulers.groups import (
    Gangs,
    group_is_the_size_without_one,
    larger_group_never_starts,
    smaller_group_starts_in_part,
)
from tests.support.admission import policy_with
from tests.support.on_cluster.registered import registered_as_shipped
from webhook.cluster.optional_kinds import BATCH_KINDS

POD_GROUPS = BATCH_KINDS["PodGroup.scheduling.k8s.io"].api_version
TO_KUBE_SCHEDULER = policy_with(
    schedulers={"default-scheduler": {"backend": "native"}},
    workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}},
)


@pytest.fixture
def gangs(control_plane_programs: dict[str, Path], tmp_path: Path) -> Iterator[Gangs]:
    """A kube-scheduler that schedules gangs, and its control plane."""
    features = ("GenericWorkload",)
    folder = tmp_path / "control-plane"
    folder.mkdir()
    with ControlPlane(control_plane_programs, folder, features=features, served=(POD_GROUPS,)) as control_plane:
        cluster = Cluster(control_plane)

        def make_group(name: str, members: int) -> None:
            spec = {"schedulingPolicy": {"gang": {"minCount": members}}}
            cluster.create({"apiVersion": POD_GROUPS, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec})

        with registered_as_shipped(cluster, tmp_path) as webhook:
            webhook.world.policy = TO_KUBE_SCHEDULER
            kinds = "podgroups.scheduling.k8s.io"
            yield Gangs("kube-scheduler", "default-scheduler", cluster, webhook, kinds, make_group)


def test_group_that_needs_fewer_pods_than_the_gang_starts_in_part(gangs: Gangs) -> None:
    smaller_group_starts_in_part(gangs)


def test_group_that_needs_more_pods_than_the_gang_never_starts(gangs: Gangs) -> None:
    larger_group_never_starts(gangs)


@pytest.mark.parametrize("cards", [3, 4])
def test_group_is_the_size_of_a_gang_without_one(gangs: Gangs, cards: int) -> None:
    group_is_the_size_without_one(gangs, cards)
