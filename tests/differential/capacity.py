"""How many more pods fit: the command `capacity` beside the real kube-scheduler."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.differential.dice import Dice
from tests.differential.profiles import CONFIGURATION
from tests.differential.worlds import World, pending_pods
from tests.support.command import run_here

# Small worlds: a full cluster is a pod for each place of its nodes.
SIZES = ((3, 6), (6, 10), (6, 12))
_PLACES = ("2", "4", "7")


@dataclass(frozen=True, slots=True)
class Predicted:
    """The line of `capacity -o json` for a pod."""

    fits: int
    lowest: int
    highest: int
    nodes: Mapping[str, int]
    stopped_by: str


@dataclass(frozen=True, slots=True)
class Bound:
    """The pods that kube-scheduler bound, by node, and its message about the next one, up to the first full stop."""

    nodes: Mapping[str, int]
    message: str

    @property
    def number(self) -> int:
        """Return the number of bound pods."""
        return sum(self.nodes.values())


def with_few_places(dice: Dice, world: World) -> World:
    """Return `world` with room for a few more pods on a node."""
    nodes = deepcopy(world.nodes)
    for node in nodes:
        if "pods" in node["status"]["allocatable"]:
            node["status"]["allocatable"]["pods"] = dice.choice(_PLACES)
    return replace(world, nodes=nodes)


def templates(dice: Dice, world: World, count: int, schedulers: Sequence[str]) -> list[Object]:
    """Return `count` pods to count: without nominations, and without what is allocated or bound to one pod alone."""
    found: list[Object] = []
    while len(found) < count:
        pods = pending_pods(dice, world, count, schedulers)
        found += [pod for pod in pods if not pod["spec"].keys() & {"schedulingGates", "volumes", "resourceClaims"}]
    return [
        {key: value for key, value in pod.items() if key != "status"}
        | {"metadata": {**pod["metadata"], "name": f"template-{number}"}}
        for number, pod in enumerate(found[:count])
    ]


def predicted(folder: Path, cluster: Sequence[Object], pods: Sequence[Object]) -> list[Predicted | None]:
    """Return what the command prints for each of `pods`; None for a count that ends early."""
    arguments = ["capacity", "-o", "json"]
    for flag, content in (
        ("--cluster", {"apiVersion": "v1", "kind": "List", "items": cluster}),
        ("--filename", {"apiVersion": "v1", "kind": "List", "items": pods}),
        ("--scheduler-config", CONFIGURATION),
    ):
        file = folder / f"{flag.strip('-')}.json"
        file.write_text(json.dumps(content))
        arguments += [flag, str(file)]
    run = run_here(*arguments)
    assert run.code == 0, run.errors
    return [_read(json.loads(line)) for line in run.output.splitlines()]


def _read(line: Object) -> Predicted | None:
    if not line["complete"]:
        return None
    return Predicted(line["fits"], *line["range"], line["nodes"], line["stoppedBy"])


def bound(cluster: Cluster, pod: Object, asked: int) -> Bound:
    """Create `asked` pods like `pod`, wait until kube-scheduler has decided on each, and delete them again."""
    namespace, log = pod["metadata"]["namespace"], cluster.control_plane.scheduler_log
    made = [cluster.client.create(_named(pod, number)).object for number in range(asked)]
    names = {each["metadata"]["name"] for each in made}

    def decided() -> list[Object] | None:
        pods = [each for each in cluster.client.list("Pod", namespace) if each["metadata"]["name"] in names]
        return pods if all(each["spec"].get("nodeName") or _refusal(each) for each in pods) else None

    pods = wait_for(decided, f"a decision on {asked} pods like {namespace}/{pod['metadata']['name']}")
    since = log.end()
    running = [each for each in pods if each["spec"].get("nodeName")]
    waiting = [each for each in pods if not each["spec"].get("nodeName")]
    for each in (*waiting, *running):
        cluster.client.delete("Pod", each["metadata"]["name"], namespace=namespace)
    keys = [f"{namespace}/{each['metadata']['name']}" for each in running]
    log.wait_for_events("Delete event for scheduled pod", "pod", keys, since=since)
    message = _refusal(waiting[0]).partition(". ")[0] if waiting else ""
    return Bound(Counter(each["spec"]["nodeName"] for each in running), message.removesuffix(".") + ".")


def _refusal(pod: Object) -> str:
    conditions = pod["status"].get("conditions", ())
    found = [each["message"] for each in conditions if (each["type"], each["status"]) == ("PodScheduled", "False")]
    return found[0] if found else ""


def _named(pod: Object, number: int) -> Object:
    return {**pod, "metadata": {**pod["metadata"], "name": f"{pod['metadata']['name']}-{number}"}}
