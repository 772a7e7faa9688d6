"""Ask a real batch scheduler about pods, one at a time, and restore the cluster after each."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.differential.kube_scheduler import KubeScheduler
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.worlds import World, pending_pods, random_world
from tests.schedulers.jobs import refusal
from tests.schedulers.running import KUBE_SCHEDULER_ALONE
from webhook.placement.framework.result import Placement
from webhook.placement.profiles.profile import Profile
from webhook.placement.scheduler import Scheduler

_SIZES = ((6, 12), (12, 30))
_FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
# The fields of a pod's status that report its resize in place.
_OF_RESIZES = {"resources", "allocatedResources", "containerStatuses", "initContainerStatuses", "conditions"}
# Predicted scores have two decimals.
_ROUNDING = 0.01


@dataclass(frozen=True, slots=True)
class Answer:
    """The result for a pod: its `node`, or the `message` of the scheduler; `scores` by node, if they are logged."""

    node: str | None
    message: str
    scores: Mapping[str, float]


def world_for_batch_scheduler(dice: Dice) -> World:
    """Return a random world without what the objects do not determine, and what a batch scheduler does not read.

    Volcano takes the number of nodes with an image when a node last changed, so its score of images depends on the
    order in which nodes came. Claims would be bound by controllers that do not run. Volcano counts what a resized pod
    requests, not what is allocated to it. KAI gets the same clusters.
    """
    while (world := random_world(dice, _SIZES)).storage:
        pass
    nodes = tuple(_without(node, {"images"}) for node in world.nodes)
    pods = tuple(_without(pod, _OF_RESIZES) for pod in world.pods)
    return replace(world, nominated=(), nodes=nodes, pods=pods)


def _without(obj: Object, fields: set[str]) -> Object:
    """Return the object without fields of its status."""
    if not fields & obj.get("status", {}).keys():
        return obj
    return {**obj, "status": {key: value for key, value in obj["status"].items() if key not in fields}}


class Asked:
    """A real batch scheduler, on a control plane that holds one world.

    `pod_groups` is the API version of its PodGroups. `scores_of` returns the scores of the latest attempt at a pod.
    """

    def __init__(
        self, cluster: Cluster, pod_groups: str, scores_of: Callable[[Object], Mapping[str, float]] | None = None
    ) -> None:
        self._cluster = cluster
        self._client = cluster.client
        self._pod_groups = pod_groups
        self._scores_of = scores_of

    def ask(self, pod: Object) -> Answer:
        """Return the scheduler's result for `pod`; delete it afterwards.

        The next pod is asked about with this one gone: both come by the same watch, in order.
        """
        stored = self._cluster.create(pod).object
        name, namespace = stored["metadata"]["name"], stored["metadata"]["namespace"]
        node, message = wait_for(lambda: self._outcome(stored), f"an answer for {name}")
        answer = Answer(node, message, self._scores_of(stored) if node and self._scores_of else {})
        self._cluster.delete_pod(stored)
        for group in self._client.list("PodGroup", namespace, api_version=self._pod_groups):
            self._client.delete(
                "PodGroup", group["metadata"]["name"], namespace=namespace, api_version=self._pod_groups
            )
        return answer

    def _outcome(self, pod: Object) -> tuple[str | None, str] | None:
        current = self._client.get("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
        if node := current["spec"].get("nodeName"):
            return node, ""
        message = refusal(current)
        return None if message is None else (None, message)


class Compared(NamedTuple):
    """A pod, the prediction for it, and the result of the real scheduler."""

    name: str
    pod: Object
    placement: Placement
    answer: Answer

    @property
    def agrees_on_binding(self) -> bool:
        """True if the pod was bound as predicted."""
        return (self.placement.verdict == "Feasible") == (self.answer.node is not None)

    @property
    def is_best(self) -> bool:
        """True if the node of the pod is one of those with the best predicted score."""
        totals = {node: scores["total"] for node, scores in self.placement.scores.items()}
        return bool(totals) and totals.get(str(self.answer.node)) == max(totals.values())

    @property
    def has_same_scores(self) -> bool:
        """True if the predicted scores are those that the scheduler logs."""
        totals = {node: scores["total"] for node, scores in self.placement.scores.items()}
        return self.answer.scores == pytest.approx(totals, abs=_ROUNDING)

    def __str__(self) -> str:
        found = f"{self.placement.verdict} {self.placement.node} {self.placement.message}"
        return f"{self.name}: predicted {found}; found: {self.answer}"


def compared_on_random_worlds(
    cluster: Cluster,
    profile: Profile,
    asking: Callable[[Path], AbstractContextManager[Asked]],
    folder: Path,
    *,
    scheduler_name: str,
    worlds: int,
    pods_per_world: int,
    alter: Callable[[Object], Object] = lambda pod: pod,
    alter_running: Callable[[Object], Object] = lambda pod: pod,
) -> list[Compared]:
    """Compare the predictions by `profile` for random pods, each altered, with a real batch scheduler.

    `asking` runs the scheduler in a folder of its own, for each world once.
    """
    cluster.control_plane.start_scheduler(KUBE_SCHEDULER_ALONE)
    kube_scheduler, found = KubeScheduler(cluster), list[Compared]()
    for seed in range(_FIRST_SEED, _FIRST_SEED + worlds):
        own = folder / str(seed)
        own.mkdir()
        dice = Dice(seed)
        world = world_for_batch_scheduler(dice)
        world = replace(world, pods=tuple(map(alter_running, world.pods)))
        kube_scheduler.establish(world)
        snapshot, scheduler = kube_scheduler.snapshot(), Scheduler(profile)
        # Started after the world is there, the scheduler knows all of it when it is ready.
        with asking(own) as asked:
            for pod in map(alter, pending_pods(dice, world, pods_per_world, (scheduler_name,))):
                name = f"seed {seed} {pod['metadata']['name']}"
                found.append(Compared(name, pod, scheduler.place(pod, snapshot), asked.ask(pod)))
    return found
