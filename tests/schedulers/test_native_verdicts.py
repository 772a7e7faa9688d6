"""The verdicts on gangs of kube-scheduler's own, compared with what the real one starts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.schedulers.groups import (
    IN_PART,
    Gangs,
    group_is_the_size_without_one,
    larger_group_never_starts,
    said,
    smaller_group_starts_in_part,
)
from tests.schedulers.jobs import bound, gpu_node, worker
from tests.support.admission import policy_with
from tests.support.objects.batch_objects import Object, pod_group
from tests.support.objects.builders import PodBuilder
from tests.support.on_cluster.registered import registered_as_shipped
from webhook.cluster.optional_kinds import BATCH_KINDS

POD_GROUPS = BATCH_KINDS["PodGroup.scheduling.k8s.io"].api_version
TO_KUBE_SCHEDULER = policy_with(
    schedulers={"default-scheduler": {"backend": "native"}},
    workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}},
)

HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10000}


def group_of(name: str, members: int, **spec: Any) -> Object:
    """Return a PodGroup in the namespace of the test; without `members` its policy is basic."""
    return {**pod_group(name, group="scheduling.k8s.io", members=members, **spec), "metadata": {"name": name}}


@pytest.fixture
def gangs(control_plane_programs: dict[str, Path], tmp_path: Path) -> Iterator[Gangs]:
    """A kube-scheduler that schedules gangs, and its control plane."""
    features = ("GenericWorkload",)
    folder = tmp_path / "control-plane"
    folder.mkdir()
    with ControlPlane(control_plane_programs, folder, features=features, served=(POD_GROUPS,)) as control_plane:
        cluster = Cluster(control_plane)

        def make_group(name: str, members: int) -> None:
            cluster.create(group_of(name, members))

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


@pytest.mark.parametrize(
    ("of_group", "of_pods", "numbers"), [("high", "", "got 0 and 10000"), ("", "high", "got 10000 and 0")]
)
def test_pods_of_another_priority_than_their_group_never_start(
    gangs: Gangs, of_group: str, of_pods: str, numbers: str
) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 8))
    gangs.cluster.create(HIGH)
    named = {"priorityClassName": of_group} if of_group else {}
    gangs.cluster.create(group_of("bert", 2, **named))
    words = f"all pods in a single pod group should have the same priority as the pod group's priority, {numbers}"

    gangs.look()
    pods = [gang_worker(number, of_pods) for number in range(2)]
    answers = [gangs.cluster.create(pod) for pod in pods]

    for each in answers:
        reason, verdict = said(each)
        assert reason == f"kube-scheduler: {words}: PodGroup bert never starts"
        assert verdict.startswith("placement check: Infeasible: 1/1 nodes are available. All pods in a single")
    assert gangs.bound_at_last(answers) == 0
    wait_for(lambda: words in conditions(gangs), "the words of kube-scheduler")


def gang_worker(number: int, priority_class: str) -> PodBuilder:
    pod = worker(f"bert-{number}", gang="bert", gang_size=2)
    return pod.spec(priorityClassName=priority_class) if priority_class else pod


def conditions(gangs: Gangs) -> str:
    """Return the messages of the conditions of the PodGroup."""
    found = gangs.cluster.client.get("PodGroup", "bert", gangs.cluster.namespace, api_version=POD_GROUPS)
    return " ".join(each["message"] for each in found.get("status", {}).get("conditions", ()))


def test_group_with_the_policy_basic_starts_in_part(gangs: Gangs) -> None:
    gangs.cluster.make_nodes(gpu_node("n1", 2))
    gangs.make_group("bert", 0)

    answers = gangs.create(3, gang_size=3)

    for each in answers:
        assert [text for text in said(each) if IN_PART in text] != []
    pods = [each.object for each in answers]
    wait_for(lambda: bound(gangs.cluster, pods) >= 2, "two bound pods")
    assert gangs.bound_at_last(answers) == 2
