"""Random clusters, as the raw objects that make them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.differential.random_objects import constraints
from tests.differential.random_objects.constraints import EFFECTS, HOSTNAME, NODE_LABELS, TAINT_VALUES, Object
from tests.differential.random_objects.devices import random_devices, use_devices
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.nominations import let_some_be_nominated, random_nominated_pods
from tests.differential.random_objects.pods import IMAGES, base_pod, random_pod
from tests.differential.random_objects.resizing import random_resize
from tests.differential.random_objects.storage import random_storage, use_storage
from tests.differential.random_objects.workloads import random_workloads

NAMESPACES = ("alpha", "beta", "gamma")

# From so many nodes to so many; small clusters are the more frequent ones.
SIZES = ((6, 10), (6, 10), (6, 12), (12, 30), (30, 90))

_PERCENT_WITH_STORAGE = 30

_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class World:
    """A cluster: namespaces, Services and controllers that select pods, nodes, their pods, storage and devices.

    `nominated` pods wait for the node that their status names; a gate that does not stand here keeps them back. A pod
    may have a `status` and a `metadata.deletionTimestamp` as kube-scheduler would see them.
    """

    namespaces: tuple[Object, ...]
    workloads: tuple[Object, ...]
    nodes: tuple[Object, ...]
    pods: tuple[Object, ...]
    nominated: tuple[Object, ...] = ()
    storage: tuple[Object, ...] = ()

    def with_nodes(self, nodes: Sequence[Object]) -> "World":
        """Return the same with those nodes alone, and the pods on them."""
        names = {node["metadata"]["name"] for node in nodes}
        pods = tuple(pod for pod in self.pods if pod["spec"]["nodeName"] in names)
        return replace(self, nodes=tuple(nodes), pods=pods)

    @property
    def objects(self) -> tuple[Object, ...]:
        """Return all of them, in the order in which they can be made."""
        return (*self.namespaces, *self.workloads, *self.storage, *self.nodes, *self.pods, *self.nominated)


def random_world(dice: Dice, sizes: Sequence[tuple[int, int]] = SIZES) -> World:
    """Return a cluster of one of `sizes`, with up to four pods a node."""
    names = [f"node-{number:02}" for number in range(dice.randint(*dice.choice(sizes)))]
    namespaces = tuple(_namespace(dice, name) for name in NAMESPACES[: dice.randint(2, 3)])
    percent_tainted = dice.choice((10, 30, 60))
    nodes = tuple(_node(dice, name, percent_tainted) for name in names)
    most = dice.choice((1, 2, 4))
    pods = tuple(
        _running_pod(dice, f"{name}-{number}", name, [each["metadata"]["name"] for each in namespaces])
        for name in names
        for number in range(dice.randint(0, most))
    )
    _let_each_have_its_ports(pods)
    workloads = random_workloads(dice, [each["metadata"]["name"] for each in namespaces])
    nominated = random_nominated_pods(dice, names, [each["metadata"]["name"] for each in namespaces])
    world = World(namespaces, workloads, nodes, pods, nominated)
    return _with_storage(dice, world) if dice.chance(_PERCENT_WITH_STORAGE) else world


def _with_storage(dice: Dice, world: World) -> World:
    namespaces = [each["metadata"]["name"] for each in world.namespaces]
    storage = random_storage(dice, namespaces, [each["metadata"]["name"] for each in world.nodes])
    use_storage(dice, world.pods, storage, 20)
    return replace(world, storage=(*random_devices(dice, namespaces), *storage))


def pending_pods(dice: Dice, world: World, count: int, schedulers: Sequence[str] = ()) -> list[Object]:
    """Return pods to ask about in `world`, of the default scheduler or of `schedulers`."""
    namespaces = [each["metadata"]["name"] for each in world.namespaces]
    nodes = [each["metadata"]["name"] for each in world.nodes]
    pods = [random_pod(dice, f"pending-{number}", namespaces, nodes) for number in range(count)]
    if world.storage:
        use_storage(dice, pods, world.storage, 60)
        use_devices(dice, pods, 5)
    for pod in pods:
        if schedulers:
            pod["spec"]["schedulerName"] = dice.choice(schedulers)
    if world.nominated:
        let_some_be_nominated(dice, pods, nodes)
    return pods


def counts(pod: Object) -> bool:
    """Return true if kube-scheduler counts the bound pod on its node."""
    return pod.get("status", {}).get("phase") not in _ENDED


def _let_each_have_its_ports(pods: Sequence[Object]) -> None:
    """Take the ports from pods that want one that another on the node has: no kubelet would run both.

    kube-scheduler would count a port as free as soon as one of two pods that have it is gone.
    """
    taken: set[tuple[str, str, int]] = set()
    for pod in pods:
        containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]
        ports = {
            (pod["spec"]["nodeName"], port.get("protocol", "TCP"), port["containerPort"])
            for container in containers
            for port in container.get("ports", ())
        }
        if ports & taken:
            for container in containers:
                container.pop("ports", None)
        else:
            taken |= ports


def _namespace(dice: Dice, name: str) -> Object:
    labels = {"kubernetes.io/metadata.name": name} | constraints.labels(dice, constraints.NAMESPACE_LABELS, 70)
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _node(dice: Dice, name: str, percent_tainted: float) -> Object:
    labels = constraints.labels(dice, NODE_LABELS, 80)
    if dice.chance(92):
        labels[HOSTNAME] = name if dice.chance(98) else "same"
    spec: Object = {}
    if dice.chance(percent_tainted):
        keys = dice.some(tuple(TAINT_VALUES), 1, 2)
        spec["taints"] = [{"key": key, "effect": dice.choice(EFFECTS), **_taint_value(dice, key)} for key in keys]
    if dice.chance(8):
        spec["unschedulable"] = True
    amounts = {
        "cpu": dice.choice(("2", "4", "7500m", "16", "32", "16e0")),
        "memory": dice.choice(("4Gi", "8Gi", "16e9", "64Gi", "1.5Ti")),
        "pods": dice.choice(("3", "8", "110", "110")),
        "ephemeral-storage": dice.choice(("10G", "100Gi")),
    }
    for resource, offered in (("nvidia.com/gpu", ("0", "2", "8")), ("example.com/nic", ("1", "4"))):
        if dice.chance(50):
            amounts[resource] = dice.choice(offered)
    if dice.chance(30):
        amounts["hugepages-2Mi"] = "64Mi"
    status: Object = {"allocatable": amounts}
    images = dice.some(IMAGES, 0)
    if images:
        status["images"] = [{"names": [image], "sizeBytes": size} for image, size in images]
    if dice.chance(4):
        del amounts[dice.choice(("cpu", "memory", "pods", "ephemeral-storage"))]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def _taint_value(dice: Dice, key: str) -> dict[str, str]:
    value = dice.choice(TAINT_VALUES[key])
    return {"value": value} if value else {}


def _running_pod(dice: Dice, name: str, node: str, namespaces: Sequence[str]) -> Object:
    pod = base_pod(dice, name, dice.choice(namespaces))
    pod["spec"]["nodeName"] = node
    if dice.chance(25):
        pod["spec"]["affinity"] = constraints.pod_affinity(dice, namespaces, 25)
    if dice.chance(5):
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    elif dice.chance(10):
        pod["status"] = {"phase": dice.choice(("Running", "Running", *_ENDED))}
    elif dice.chance(8):
        pod["status"] = random_resize(dice, pod)
    return pod
