"""How many more pods fit: the command `capacity` beside the real kube-scheduler."""

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.differential.profiles import CONFIGURATION
from tests.differential.random_objects.constraints import HOSTNAME, RACK, ZONE
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.worlds import World, pending_pods
from tests.support.programs.command import run_here
from tests.support.programs.messages import first_sentence

# Small worlds: a full cluster is a pod for each place of its nodes.
SIZES = ((3, 6), (6, 10), (6, 12))
_PLACES = ("2", "4", "7")


@dataclass(frozen=True, slots=True)
class Predicted:
    """The line of `capacity -o json` for a pod; `stopped_by` is None if all fit that were asked for."""

    fits: int
    lowest: int
    highest: int
    nodes: Mapping[str, int]
    stopped_by: str | None


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


def with_equal_nodes(dice: Dice, world: World) -> World:
    """Return `world` without pods, with nodes that differ in their names, zones and racks alone.

    Their scores are often equal, so chance decides.
    """
    model = deepcopy(dice.choice(world.nodes))
    nodes = []
    for node in world.nodes:
        own = {key: value for key, value in node["metadata"]["labels"].items() if key in (HOSTNAME, ZONE, RACK)}
        shared = {key: value for key, value in model["metadata"]["labels"].items() if key not in (HOSTNAME, ZONE, RACK)}
        nodes.append({**deepcopy(model), "metadata": {"name": node["metadata"]["name"], "labels": shared | own}})
    return replace(world, nodes=tuple(nodes), pods=(), nominated=())


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


def predicted(folder: Path, cluster: Sequence[Object], pods: Sequence[Object], *options: str) -> list[Predicted | None]:
    """Return what the command prints for each of `pods`; None for a count that ends early."""
    arguments = ["capacity", "-o", "json", *options]
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
    lowest, highest = line["range"]
    return Predicted(line["fits"], lowest, highest, line["nodes"], line["stoppedBy"])


def bound_in_turn(cluster: Cluster, pods: Sequence[Object], most: int) -> tuple[list[int], str]:
    """Create pods like `pods` in turn, until kube-scheduler has no node for one, at most `most` turns; delete them.

    Return how many of each are bound, and the message about the one that is not.
    """
    numbers, message = [0] * len(pods), ""
    made = []
    for turn, (which, pod) in itertools.product(range(most), enumerate(pods)):
        made.append(cluster.client.create(_named(pod, turn)).object)
        message = _decision(cluster, made[-1])
        if message:
            break
        numbers[which] += 1
    since = cluster.control_plane.scheduler_log.end()
    _delete(cluster, made[::-1] if message else made, made[:-1] if message else made, since)
    return numbers, message


def _decision(cluster: Cluster, pod: Object) -> str:
    """Return kube-scheduler's message about `pod`; empty once it is bound."""

    def decision() -> str | None:
        current = cluster.client.get("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
        return "" if current["spec"].get("nodeName") else _refusal(current) or None

    return first_sentence(wait_for(decision, f"a decision on {pod['metadata']['name']}"))


def _delete(cluster: Cluster, pods: Sequence[Object], bound: Sequence[Object], since: int) -> None:
    """Delete `pods` in order, and wait until kube-scheduler knows that the `bound` ones are gone."""
    for each in pods:
        cluster.client.delete("Pod", each["metadata"]["name"], namespace=each["metadata"]["namespace"])
    keys = [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in bound]
    cluster.control_plane.scheduler_log.wait_for_events("Delete event for scheduled pod", "pod", keys, since=since)


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
    # The pending ones go first: they must not be bound to what another's removal sets free.
    _delete(cluster, (*waiting, *running), running, since)
    message = first_sentence(_refusal(waiting[0])) if waiting else ""
    return Bound(Counter(each["spec"]["nodeName"] for each in running), message)


def _refusal(pod: Object) -> str:
    conditions = pod["status"].get("conditions", ())
    found = [each["message"] for each in conditions if (each["type"], each["status"]) == ("PodScheduled", "False")]
    return found[0] if found else ""


def _named(pod: Object, number: int) -> Object:
    return {**pod, "metadata": {**pod["metadata"], "name": f"{pod['metadata']['name']}-{number}"}}
