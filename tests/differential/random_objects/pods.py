"""Random pods: containers, ports, images, and the constraints of `constraints.py`."""

from collections.abc import Callable, Sequence

from tests.differential.random_objects import constraints
from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.workloads import owner_reference

# The RuntimeClass that brings an overhead with it, and that overhead: the API server wants a pod to have both alike.
RUNTIME_CLASS = "sandboxed"
OVERHEAD = {"cpu": "250m", "memory": "120Mi"}

# Name, size in bytes: some below the 23 MB from which ImageLocality counts, one above the 1000 MB where it ends.
IMAGES = (
    ("pause:3.10", 320_000),
    ("web:1.2", 80_000_000),
    ("trainer:latest", 700_000_000),
    ("library/db@sha256:" + "ab" * 32, 240_000_000),
    ("huge:v1", 2_500_000_000),
)
_IMAGE_NAMES = ("pause:3.10", "web:1.2", "trainer", "library/db@sha256:" + "ab" * 32, "huge:v1", "unknown:v9")

_CPU = ("50m", "100m", "0.3", "1", "1500m", "2", "2e-1", "0")
_MEMORY = ("64Mi", "128M", "0.3Gi", "1Gi", "1500Mi", "2e9", "900m", "0")
_DEVICES = {
    "nvidia.com/gpu": ("1", "2", "4", "8"),
    "example.com/nic": ("1", "2"),
    "hugepages-2Mi": ("2Mi", "64Mi"),
    "ephemeral-storage": ("100Mi", "20G"),
}
_PORTS = (8080, 9090, 9100)
_ADDRESSES = ("", "", "0.0.0.0", "10.0.0.1", "10.0.0.2")

Feature = Callable[[Dice, Object, Sequence[str], Sequence[str]], None]


def base_pod(dice: Dice, name: str, namespace: str) -> Object:
    """Return a pod with labels, containers and all that these bring with them."""
    pod_labels = constraints.labels(dice, constraints.POD_LABELS, 70)
    pod_labels |= constraints.labels(dice, constraints.REVISION_LABELS, 40)
    spec: Object = {"containers": [_container(dice, f"c{index}") for index in range(1 + dice.chance(25))]}
    if dice.chance(20):
        spec["initContainers"] = [_init_container(dice, f"i{index}") for index in range(dice.randint(1, 3))]
    if dice.chance(10):
        spec |= {"runtimeClassName": RUNTIME_CLASS, "overhead": dict(OVERHEAD)}
    if dice.chance(12):
        _add_pod_level_resources(dice, spec)
    if dice.chance(20):
        _add_host_ports(dice, spec)
    metadata: Object = {"name": name, "namespace": namespace, "labels": pod_labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(dice: Dice, name: str) -> Object:
    container: Object = {"name": name, "image": dice.choice(_IMAGE_NAMES)}
    requests = {key: dice.choice(values) for key, values in (("cpu", _CPU), ("memory", _MEMORY)) if dice.chance(65)}
    limits: dict[str, str] = {}
    if dice.chance(25):
        resource = dice.choice(tuple(_DEVICES))
        limits[resource] = dice.choice(_DEVICES[resource])
        if resource.startswith("hugepages"):
            requests.setdefault("cpu", "100m")
        if dice.chance(70):
            requests[resource] = limits[resource]
    if dice.chance(15):
        # Requests that are not there become what the limits are.
        limits |= {"cpu": "2", "memory": "4Gi"}
    if requests or limits:
        container["resources"] = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return container


def _init_container(dice: Dice, name: str) -> Object:
    return _container(dice, name) | ({"restartPolicy": "Always"} if dice.chance(45) else {})


def _add_pod_level_resources(dice: Dice, spec: Object) -> None:
    """Requests and limits of the pod as a whole, larger than those of any of these containers together."""
    amounts = {"cpu": dice.choice(("20", "24500m")), "memory": dice.choice(("32Gi", "40e9"))}
    chosen = {resource: amounts[resource] for resource in dice.some(tuple(amounts), 1, 2)}
    spec["resources"] = {dice.choice(("requests", "limits")): chosen}


def _add_host_ports(dice: Dice, spec: Object) -> None:
    sidecars = [each for each in spec.get("initContainers", ()) if each.get("restartPolicy") == "Always"]
    on_host = dice.chance(15)
    if on_host:
        spec["hostNetwork"] = True
    for number in dice.some(_PORTS, 1, 2):
        port: Object = {"containerPort": number}
        if dice.chance(30):
            port["protocol"] = "UDP"
        if not on_host or dice.chance(50):
            port["hostPort"] = number
        if not on_host and (address := dice.choice(_ADDRESSES)):
            port["hostIP"] = address
        dice.choice([*spec["containers"], *sidecars]).setdefault("ports", []).append(port)


def random_pod(dice: Dice, name: str, namespaces: Sequence[str], node_names: Sequence[str]) -> Object:
    """Return a pending pod with up to four kinds of constraints."""
    pod = base_pod(dice, name, dice.choice(namespaces))
    for add in dice.some(_FEATURES, 0, 4):
        add(dice, pod["spec"], namespaces, node_names)
    if dice.chance(45):
        # Without it half of all pods would fail for taints alone.
        pod["spec"].setdefault("tolerations", []).append({"operator": "Exists"})
    if dice.chance(20):
        pod["metadata"]["ownerReferences"] = [owner_reference(dice)]
    if dice.chance(2):
        pod["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    return pod


def _tolerate(dice: Dice, spec: Object, _namespaces: Sequence[str], _node_names: Sequence[str]) -> None:
    spec["tolerations"] = constraints.tolerations(dice)


def _select_nodes(dice: Dice, spec: Object, _namespaces: Sequence[str], _node_names: Sequence[str]) -> None:
    spec["nodeSelector"] = constraints.node_selector(dice)


def _node_affinity(dice: Dice, spec: Object, _namespaces: Sequence[str], node_names: Sequence[str]) -> None:
    spec.setdefault("affinity", {})["nodeAffinity"] = constraints.node_affinity(dice, node_names)


def _pod_affinity(dice: Dice, spec: Object, namespaces: Sequence[str], _node_names: Sequence[str]) -> None:
    spec.setdefault("affinity", {}).update(constraints.pod_affinity(dice, namespaces, 50))


def _spread(dice: Dice, spec: Object, _namespaces: Sequence[str], _node_names: Sequence[str]) -> None:
    spec["topologySpreadConstraints"] = constraints.spread_constraints(dice)


def _ask_for_much(dice: Dice, spec: Object, _namespaces: Sequence[str], _node_names: Sequence[str]) -> None:
    """Requests that few nodes or none can meet."""
    amounts = {"cpu": dice.choice(("4", "7", "33")), "memory": dice.choice(("12Gi", "60Gi"))}
    if "resources" not in spec:
        resources = spec["containers"][0].setdefault("resources", {})
        resources.setdefault("requests", {}).update({key: amounts[key] for key in dice.some(tuple(amounts), 1, 2)})
        resources["limits"] = {key: each for key, each in resources.get("limits", {}).items() if key not in amounts}


_FEATURES: tuple[Feature, ...] = (
    _tolerate,
    _select_nodes,
    _node_affinity,
    _pod_affinity,
    _pod_affinity,
    _spread,
    _spread,
    _ask_for_much,
)
