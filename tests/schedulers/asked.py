"""Ask the real Volcano about pods, one at a time, and restore the cluster after each."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.differential.dice import Dice
from tests.differential.worlds import World, random_world
from tests.schedulers.jobs import refusal
from tests.schedulers.volcano import SCHEDULING, Volcano

_SIZES = ((6, 12), (12, 30))


@dataclass(frozen=True, slots=True)
class Answer:
    """The result for a pod: its `node`, or the `message` of Volcano; `scores` if more than one node was feasible."""

    node: str | None
    message: str
    scores: Mapping[str, float]


def world_for_volcano(dice: Dice) -> World:
    """Return a random world without what the objects do not determine, and what Volcano does not read.

    Volcano takes the number of nodes with an image when a node last changed, so its score of images depends on the
    order in which nodes came. Claims would be bound by controllers that do not run. Volcano, linked with libraries of
    1.35, does not count what a pod as a whole was resized to.
    """
    while (world := random_world(dice, _SIZES)).storage:
        pass
    nodes = tuple(_without(node, {"images"}) for node in world.nodes)
    pods = tuple(_without(pod, {"resources", "allocatedResources"}) for pod in world.pods)
    return replace(world, nominated=(), nodes=nodes, pods=pods)


def _without(obj: Object, fields: set[str]) -> Object:
    """Return the object without fields of its status."""
    if not fields & obj.get("status", {}).keys():
        return obj
    return {**obj, "status": {key: value for key, value in obj["status"].items() if key not in fields}}


class AskedVolcano:
    """The real Volcano, on a control plane that holds one world."""

    def __init__(self, cluster: Cluster, volcano: Volcano) -> None:
        self._cluster = cluster
        self._client = cluster.client
        self._volcano = volcano

    def ask(self, pod: Object) -> tuple[Answer, Object]:
        """Return Volcano's result for `pod`, and the pod as the API server stored it; delete it afterwards.

        The next pod is asked about with this one gone: both come by the same watch, in order.
        """
        stored = self._cluster.create(pod).object
        name, namespace = stored["metadata"]["name"], stored["metadata"]["namespace"]
        node, message = wait_for(lambda: self._outcome(stored), f"an answer for {name}")
        answer = Answer(node, message, self._volcano.scores(stored) if node else {})
        self._cluster.delete_pod(stored)
        for group in self._client.list("PodGroup", namespace, api_version=SCHEDULING):
            self._client.delete("PodGroup", group["metadata"]["name"], namespace=namespace, api_version=SCHEDULING)
        return answer, stored

    def _outcome(self, pod: Object) -> tuple[str | None, str] | None:
        current = self._client.get("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
        if node := current["spec"].get("nodeName"):
            return node, ""
        message = refusal(current)
        return None if message is None else (None, message)
