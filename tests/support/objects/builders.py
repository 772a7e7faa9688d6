"""Pods and nodes as raw objects, for tests that say only what matters to them.

    make_pod("trainer").annotate("maip.mxsf.io/workload-type", "training").gpu(8).obj()
    make_node_object("node-1", taints=["maip.mxsf.io/node.usage=training:NoSchedule"], capacity={"nvidia.com/gpu": 8})

Every method gives a new builder, so a half-built pod can be shared by the rows of a table; `obj()` gives a copy
that the caller may change. Nothing that was not asked for is set, but one container with a name and an image.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any, Self

PAUSE_IMAGE = "pause:3.10"
NODE_CAPACITY: Mapping[str, str] = {"cpu": "64", "memory": "512Gi", "pods": "110", "ephemeral-storage": "1Ti"}

Quantity = str | int


class PodBuilder:
    """A pod in the making; see `make_pod`."""

    def __init__(self, pod: dict[str, Any]) -> None:
        self._pod = pod

    def obj(self) -> dict[str, Any]:
        """Return the pod, as a copy of its own."""
        pod: dict[str, Any] = _copied(self._pod)
        return pod

    def template(self) -> dict[str, Any]:
        """Return the pod as a pod template: labels, annotations and spec, without name and namespace."""
        pod = self.obj()
        kept = {key: pod["metadata"][key] for key in ("labels", "annotations") if key in pod["metadata"]}
        return {"metadata": kept, "spec": pod["spec"]}

    # metadata

    def namespace(self, namespace: str) -> Self:
        """Set the namespace."""
        return self._with(lambda pod: pod["metadata"].update(namespace=namespace))

    def generate_name(self, prefix: str) -> Self:
        """Leave the name to the API server, which begins it with `prefix`."""

        def edit(pod: dict[str, Any]) -> None:
            pod["metadata"].pop("name", None)
            pod["metadata"]["generateName"] = prefix

        return self._with(edit)

    def uid(self, uid: str) -> Self:
        """Set the uid."""
        return self._with(lambda pod: pod["metadata"].update(uid=uid))

    def creation(self, time: str) -> Self:
        """Set the time of creation, such as `2026-03-01T00:00:00Z`."""
        return self._with(lambda pod: pod["metadata"].update(creationTimestamp=time))

    def deletion(self, time: str) -> Self:
        """Mark the pod as being deleted since `time`."""
        return self._with(lambda pod: pod["metadata"].update(deletionTimestamp=time))

    def annotate(self, key: str, value: str) -> Self:
        """Add one annotation."""
        return self._with(lambda pod: pod["metadata"].setdefault("annotations", {}).update({key: value}))

    def label(self, key: str, value: str) -> Self:
        """Add one label."""
        return self.labels({key: value})

    def labels(self, labels: Mapping[str, str]) -> Self:
        """Add labels."""
        return self._with(lambda pod: pod["metadata"].setdefault("labels", {}).update(labels))

    def owner_to_be(self, kind: str, name: str) -> Self:
        """Add the owner that controls the pod, as pods of an object are predicted before the object exists."""
        reference = {"kind": kind, "name": name, "controller": True}
        return self._with(lambda pod: pod["metadata"].setdefault("ownerReferences", []).append(reference))

    def owner(self, kind: str, name: str, *, api_version: str = "apps/v1", uid: str = "") -> Self:
        """Add the owner that controls the pod."""
        reference = {
            "apiVersion": api_version,
            "kind": kind,
            "name": name,
            "uid": uid or f"uid-of-{name}",
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return self._with(lambda pod: pod["metadata"].setdefault("ownerReferences", []).append(reference))

    # containers

    def requests(self, **amounts: Quantity) -> Self:
        """Set requests of the main container: `requests(cpu="500m", memory="1Gi")`."""
        return self._with(lambda pod: _resources(pod["spec"]["containers"][0], "requests", amounts))

    def limits(self, **amounts: Quantity) -> Self:
        """Set limits of the main container."""
        return self._with(lambda pod: _resources(pod["spec"]["containers"][0], "limits", amounts))

    def gpu(self, count: int, resource: str = "nvidia.com/gpu") -> Self:
        """Ask for devices: requests and limits alike, as the API server wants them for an extended resource."""
        return self.requests(**{resource: count}).limits(**{resource: count})

    def container(self, name: str, /, **amounts: Quantity) -> Self:
        """Add a container that requests `amounts`, and limits extended resources to them."""
        return self._with(lambda pod: pod["spec"]["containers"].append(_container(name, amounts)))

    def init_container(self, name: str, /, **amounts: Quantity) -> Self:
        """Add an init container that requests `amounts` and ends before the next begins."""
        added = _container(name, amounts)
        return self._with(lambda pod: pod["spec"].setdefault("initContainers", []).append(added))

    def sidecar(self, name: str, /, **amounts: Quantity) -> Self:
        """Add a sidecar that requests `amounts` (an init container with restartPolicy Always)."""
        added = _container(name, amounts) | {"restartPolicy": "Always"}
        return self._with(lambda pod: pod["spec"].setdefault("initContainers", []).append(added))

    def host_port(self, port: int, *, protocol: str = "TCP", host_ip: str = "") -> Self:
        """Take a port of the node for the main container."""
        taken: dict[str, Any] = {"containerPort": port, "hostPort": port, "protocol": protocol}
        if host_ip:
            taken["hostIP"] = host_ip
        return self._with(lambda pod: pod["spec"]["containers"][0].setdefault("ports", []).append(taken))

    # spec

    def pod_resources(self, **amounts: Quantity) -> Self:
        """Set the requests of the pod as a whole (`spec.resources.requests`)."""
        return self._with(lambda pod: _resources(pod["spec"], "requests", amounts))

    def overhead(self, **amounts: Quantity) -> Self:
        """Set the overhead of the pod's sandbox."""
        return self.spec(overhead=_quantities(amounts))

    def toleration(
        self, key: str = "", *, operator: str = "", value: str = "", effect: str = "", seconds: int | None = None
    ) -> Self:
        """Add a toleration of just the fields given; `toleration(operator="Exists")` tolerates everything."""
        fields = {
            "key": key or None,
            "operator": operator or None,
            "value": value or None,
            "effect": effect or None,
            "tolerationSeconds": seconds,
        }
        added = {name: field for name, field in fields.items() if field is not None}
        return self._with(lambda pod: pod["spec"].setdefault("tolerations", []).append(added))

    def node_selector(self, key: str, value: str) -> Self:
        """Add one label that the node must have."""
        return self._with(lambda pod: pod["spec"].setdefault("nodeSelector", {}).update({key: value}))

    def affinity(self, affinity: Mapping[str, Any]) -> Self:
        """Set `spec.affinity` as a whole."""
        return self.spec(affinity=affinity)

    def require_node(self, *terms: Mapping[str, Any]) -> Self:
        """Add required nodeSelectorTerms, one of which must match; see `match_expressions`."""
        return self._with(lambda pod: _required_node_terms(pod).extend(deepcopy(dict(term)) for term in terms))

    def prefer_node(self, weight: int, term: Mapping[str, Any]) -> Self:
        """Add one preferred nodeSelectorTerm."""
        preferred = {"weight": weight, "preference": deepcopy(dict(term))}
        return self._with(
            lambda pod: (
                _affinity(pod, "nodeAffinity")
                .setdefault("preferredDuringSchedulingIgnoredDuringExecution", [])
                .append(preferred)
            )
        )

    def scheduler(self, name: str) -> Self:
        """Name the scheduler."""
        return self.spec(schedulerName=name)

    def node_name(self, name: str) -> Self:
        """Bind the pod to a node, past any scheduler."""
        return self.spec(nodeName=name)

    def spec(self, **fields: Any) -> Self:
        """Set fields of `spec` by their own names."""
        return self._with(lambda pod: pod["spec"].update(deepcopy(fields)))

    def status(self, **fields: Any) -> Self:
        """Set fields of `status` by their own names (an API server ignores them on creation)."""
        return self._with(lambda pod: pod.setdefault("status", {}).update(deepcopy(fields)))

    def _with(self, edit: Callable[[dict[str, Any]], object]) -> Self:
        pod = self.obj()
        edit(pod)
        return type(self)(pod)


def _copied(value: Any) -> Any:
    """Return a copy of JSON in a quarter of the time of deepcopy(), which also keeps cycles and shared parts."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def make_pod(name: str = "pod") -> PodBuilder:
    """Return a builder of a pod with one container, `main`."""
    return PodBuilder(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [_container("main", {})]},
        }
    )


def match_expressions(*expressions: tuple[str, str, list[str]]) -> dict[str, Any]:
    """Return a nodeSelectorTerm of `(key, operator, values)`, which must all hold."""
    return {
        "matchExpressions": [
            {"key": key, "operator": operator} | ({"values": values} if values else {})
            for key, operator, values in expressions
        ]
    }


def make_node_object(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    capacity: Mapping[str, Quantity] | None = None,
    allocatable: Mapping[str, Quantity] | None = None,
    unschedulable: bool = False,
) -> dict[str, Any]:
    """Return a Ready node with NODE_CAPACITY and what `capacity` adds or changes.

    `taints` are written as kubectl writes them: `key=value:Effect` or `key:Effect`. `allocatable` is the capacity
    where it is not given. The node has its name as `kubernetes.io/hostname`, as a kubelet labels it.
    """
    total = {**NODE_CAPACITY, **_quantities(capacity or {})}
    spec: dict[str, Any] = {"taints": [_taint(text) for text in taints]}
    if unschedulable:
        spec["unschedulable"] = True
    metadata: dict[str, Any] = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": {
            "capacity": total,
            "allocatable": {**total, **_quantities(allocatable or {})},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def _container(name: str, amounts: Mapping[str, Quantity]) -> dict[str, Any]:
    container: dict[str, Any] = {"name": name, "image": PAUSE_IMAGE}
    if amounts:
        _resources(container, "requests", amounts)
    extended = {resource: amount for resource, amount in amounts.items() if "/" in resource}
    if extended:
        _resources(container, "limits", extended)
    return container


def _resources(holder: dict[str, Any], what: str, amounts: Mapping[str, Quantity]) -> None:
    holder.setdefault("resources", {}).setdefault(what, {}).update(_quantities(amounts))


def _quantities(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {resource: str(amount) for resource, amount in amounts.items()}


def _taint(text: str) -> dict[str, str]:
    pair, _, effect = text.rpartition(":")
    key, separator, value = pair.partition("=")
    return {"key": key, "effect": effect} | ({"value": value} if separator else {})


def _affinity(pod: dict[str, Any], kind: str) -> dict[str, Any]:
    part: dict[str, Any] = pod["spec"].setdefault("affinity", {}).setdefault(kind, {})
    return part


def _required_node_terms(pod: dict[str, Any]) -> list[dict[str, Any]]:
    required = _affinity(pod, "nodeAffinity").setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms: list[dict[str, Any]] = required.setdefault("nodeSelectorTerms", [])
    return terms
