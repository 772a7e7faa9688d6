"""Random clusters and pods over so few names and amounts that constraints meet."""

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.support.objects.builders import make_node_object

Object = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
T = TypeVar("T")

_LABELS = {"zone": ("a", "b", "c"), "gpu": ("H20", "A100"), "size": ("1", "5", "07", "x")}
_BASIC = {
    "cpu": ("0", "100m", "0.5", "1", "2", "3500m"),
    "memory": ("0", "128Mi", "1Gi", "1500M", "1.5Gi", "1e9", "128974848000m"),
}
_DEVICES = {
    "ephemeral-storage": ("0", "1Gi", "10G"),
    "nvidia.com/gpu": ("0", "1", "2"),
    "hugepages-2Mi": ("0", "4Mi"),
    "example.com/widget": ("1", "3"),
    "unprefixed": ("1",),
}
_IMAGES = ("pause", "pause", "r:5000/app", "r:5000/app:1", "r:5000/app:2")
_ALLOCATABLE = {
    "cpu": ("0", "1", "4", "16"),
    "memory": ("0", "1Gi", "4Gi", "64G"),
    "ephemeral-storage": ("1Gi", "100G"),
    "nvidia.com/gpu": ("0", "2", "8"),
    "hugepages-2Mi": ("4Mi", "1Gi"),
    "example.com/widget": ("2", "9"),
    "pods": ("0", "1", "2", "110"),
}


def _some(amounts: dict[str, tuple[str, ...]]) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in amounts.items()})


labels = _some(_LABELS)
_basic_amounts = _some(_BASIC)
_pod_level_amounts = _some(_BASIC | {"hugepages-2Mi": _DEVICES["hugepages-2Mi"]})


@st.composite
def _amounts(draw: Draw) -> Object:
    found: Object = draw(_basic_amounts)
    device = draw(st.sampled_from((None, None, None, *_DEVICES)))
    return found | ({device: draw(st.sampled_from(_DEVICES[device]))} if device else {})


def _without_nulls(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value is not None}


def _objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries(fields).map(_without_nulls)


def _rarely(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.one_of(st.none(), st.none(), strategy)


taints = _objects(
    key=st.sampled_from(("use", "gpu", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready")),
    value=st.sampled_from((None, "a", "b", "5")),
    effect=st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute")),
)
tolerations = _objects(
    key=st.sampled_from((None, "use", "gpu", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready")),
    operator=st.sampled_from((None, "Equal", "Exists", "Exists", "Gt", "Lt")),
    value=st.sampled_from((None, "a", "b", "3")),
    effect=st.sampled_from((None, "NoSchedule", "PreferNoSchedule", "NoExecute")),
)


@st.composite
def _requirements(draw: Draw, *, preferred: bool = False) -> Object:
    key = draw(st.sampled_from((*_LABELS, "absent", "kubernetes.io/hostname")))
    operator = draw(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")))
    values = (*_LABELS.get(key, ()), "node-1", "node-2")
    if operator in ("In", "NotIn"):
        return {"key": key, "operator": operator, "values": draw(st.lists(st.sampled_from(values), min_size=1))}
    if operator in ("Gt", "Lt"):
        return {
            "key": key,
            "operator": operator,
            "values": [draw(st.sampled_from(("0", "3", "3" if preferred else "x")))],
        }
    return {"key": key, "operator": operator}


_field_requirements = _objects(
    key=st.just("metadata.name"),
    operator=st.sampled_from(("In", "In", "NotIn")),
    values=st.sampled_from(("node-0", "node-1", "node-2", "nowhere")).map(lambda name: [name]),
)


def _terms(*, preferred: bool = False) -> st.SearchStrategy[Object]:
    return _objects(
        matchExpressions=_rarely(st.lists(_requirements(preferred=preferred), max_size=2))
        if not preferred
        else st.lists(_requirements(preferred=True), max_size=2),
        matchFields=_rarely(st.lists(_field_requirements, max_size=2)),
    )


_node_affinities = _objects(
    requiredDuringSchedulingIgnoredDuringExecution=_rarely(
        _objects(nodeSelectorTerms=st.lists(_terms(), min_size=1, max_size=3))
    ),
    preferredDuringSchedulingIgnoredDuringExecution=_rarely(
        st.lists(_objects(weight=st.integers(1, 100), preference=_terms(preferred=True)), min_size=1, max_size=3)
    ),
)

_ports = _objects(
    containerPort=st.sampled_from((80, 443)),
    hostPort=st.sampled_from((None, 80, 443)),
    protocol=st.sampled_from((None, "TCP", "UDP")),
    hostIP=st.sampled_from((None, "0.0.0.0", "10.0.0.1", "10.0.0.2")),
)


@st.composite
def _containers(draw: Draw, name: str, *, init: bool = False) -> Object:
    container: Object = {"name": name, "image": draw(st.sampled_from(_IMAGES))}
    limits = draw(_rarely(_amounts()))
    # An API server wants the requests and limits of huge pages alike.
    huge = {name: amount for name, amount in (limits or {}).items() if name.startswith("hugepages-")}
    requests = draw(_rarely(_amounts()))
    resources = _without_nulls({"requests": requests and requests | huge, "limits": limits})
    if resources:
        container["resources"] = resources
    if init and draw(st.booleans()):
        container["restartPolicy"] = "Always"
    ports = draw(_rarely(st.lists(_ports, max_size=2)))
    if ports:
        container["ports"] = ports
    return container


@st.composite
def _pods(draw: Draw, name: str, namespace: str = "default") -> Object:
    spec: Object = {
        "containers": [draw(_containers(f"c{index}")) for index in range(draw(st.integers(1, 2)))],
        "initContainers": [draw(_containers(f"i{index}", init=True)) for index in range(draw(st.integers(0, 2)))],
        "hostNetwork": draw(_rarely(_rarely(st.booleans()))),
        "overhead": draw(_rarely(_some({"cpu": ("250m",), "memory": ("100Mi",)}))),
        "resources": draw(_rarely(_objects(requests=_rarely(_pod_level_amounts), limits=_rarely(_pod_level_amounts)))),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": _without_nulls(spec),
    }


@st.composite
def pending_pods(draw: Draw) -> Object:
    """A pod that waits for a node."""
    pod: Object = draw(_pods("incoming"))
    added = {
        "tolerations": draw(_rarely(st.lists(tolerations, max_size=3))),
        "nodeSelector": draw(_rarely(labels)),
        "affinity": draw(_rarely(_objects(nodeAffinity=_node_affinities))),
        "nodeName": draw(st.sampled_from((*[None] * 20, "node-0", "nowhere"))),
    }
    pod["spec"] |= _without_nulls(added)
    return pod


_MIB = 1024 * 1024
_images = _objects(
    names=st.sets(st.sampled_from(("pause:latest", "r:5000/app:latest", "r:5000/app:1")), min_size=1).map(sorted),
    sizeBytes=st.sampled_from((10 * _MIB, 23 * _MIB, 555_555_555, 1000 * _MIB, 5000 * _MIB)),
)


@st.composite
def nodes(draw: Draw, name: str) -> Object:
    """A node, often a small one."""
    node = make_node_object(name, labels=draw(labels), unschedulable=draw(st.integers(0, 9)) == 9)
    node["spec"]["taints"] = draw(_rarely(st.lists(taints, max_size=2)))
    offered = {"cpu": "8", "memory": "8Gi", "pods": "110"} | draw(_some(_ALLOCATABLE))
    node["status"] = {
        "allocatable": {name: amount for name, amount in offered.items() if draw(st.integers(0, 19)) < 19},
        "images": draw(_rarely(st.lists(_images, max_size=3))) or [],
    }
    return node


_resized_containers = _objects(
    name=st.sampled_from(("c0", "i0")),
    resources=_rarely(_objects(requests=_basic_amounts)),
    allocatedResources=_rarely(_basic_amounts),
)
_resized_statuses = _objects(
    containerStatuses=st.lists(_resized_containers, max_size=1),
    initContainerStatuses=st.lists(_resized_containers, max_size=1),
    resources=_rarely(_objects(requests=_basic_amounts)),
    allocatedResources=_rarely(_basic_amounts),
    conditions=_rarely(
        st.sampled_from(("Infeasible", "Deferred")).map(
            lambda reason: [{"type": "PodResizePending", "status": "True", "reason": reason}]
        )
    ),
)


@st.composite
def running_pods(draw: Draw, name: str) -> Object:
    """A pod bound to one of the first three nodes, or to one that is not there, perhaps at its end."""
    pod: Object = draw(_pods(name, "other"))
    pod["spec"]["nodeName"] = draw(st.sampled_from(("node-0", "node-1", "node-2", "nowhere")))
    pod["status"] = {"phase": draw(st.sampled_from(("Running", "Running", "Pending", "Succeeded", "Failed")))}
    resized = draw(_rarely(_resized_statuses))
    if resized:
        pod["status"] |= resized
    return pod


@st.composite
def clusters(draw: Draw) -> tuple[list[Object], list[Object]]:
    """The nodes of a cluster, in any order, and its bound pods."""
    found = [draw(nodes(f"node-{index}")) for index in range(draw(st.integers(0, 4)))]
    pods = [draw(running_pods(f"pod-{index}")) for index in range(draw(st.integers(0, 4)))]
    return draw(st.permutations(found)), pods
