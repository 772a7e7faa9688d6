"""Random clusters in which a pod has no room until others are moved."""

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.moves import budget

Object = dict[str, Any]

_HOST, _ZONE = "kubernetes.io/hostname", "zone"
_KEPT = ("namespace", "labels", "ownerReferences")
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass
class Crowded:
    """Raw nodes, bound pods and budgets, and a pod that waits. `minds`: pods depend on pods of other nodes."""

    nodes: list[Object]
    pods: list[Object]
    budgets: list[Object]
    pending: Object
    minds: bool

    def cordon(self, name: str) -> None:
        """Cordon a node as kubectl and the node lifecycle controller do."""
        spec = self._spec(name)
        spec["unschedulable"] = True
        spec["taints"] = [*spec["taints"], _CORDON]

    def uncordon(self, name: str) -> None:
        """Undo `cordon`."""
        spec = self._spec(name)
        del spec["unschedulable"]
        spec["taints"] = [taint for taint in spec["taints"] if taint != _CORDON]

    def remove(self, full_name: str) -> Object:
        """Delete a pod, and return the one that a controller creates in its place."""
        (gone,) = [pod for pod in self.pods if full_name_of(pod) == full_name]
        self.pods = [pod for pod in self.pods if pod is not gone]
        spec = {key: value for key, value in gone["spec"].items() if key != "nodeName"}
        kept = {key: value for key, value in gone["metadata"].items() if key in _KEPT}
        name = f"{gone['metadata']['name']}-again"
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **kept}, "spec": spec, "status": {}}

    def bind(self, pod: Object, node: str) -> None:
        """Bind a pod to a node."""
        spec, status = {**pod["spec"], "nodeName": node}, {"phase": "Running"}
        self.pods = [*self.pods, {**pod, "spec": spec, "status": status}]

    def _spec(self, name: str) -> Object:
        (node,) = [node for node in self.nodes if node["metadata"]["name"] == name]
        spec: Object = node["spec"]
        return spec


def full_name_of(pod: Object) -> str:
    """Return `namespace/name`."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def crowded(dice: Random, *, minds: bool, namespace: str = "team-a") -> Crowded:
    """Return a random cluster."""
    nodes: list[Object] = []
    pods: list[Object] = []
    free: list[int] = []
    for index in range(dice.randint(3, 5)):
        name, cards = f"n{index}", dice.choice((4, 8, 8))
        taints = ["pool=x:NoSchedule"] if dice.random() < 0.15 else []
        capacity = {"nvidia.com/gpu": cards, "cpu": 16}
        nodes.append(make_node_object(name, labels={_ZONE: f"z{index % 2}"}, taints=taints, capacity=capacity))
        left = cards
        while left == cards or (left > 0 and dice.random() < 0.8):
            pod = _running(dice, f"{name}-p{len(pods)}", min(left, dice.choice((1, 2, 2, 4))), minds)
            left -= int(pod.obj()["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"])
            pods.append(pod.namespace(namespace).node_name(name).obj())
        free.append(left)
    asked = min(8, max(free) + dice.randint(1, 2))
    pending = make_pod("pending").namespace(namespace).gpu(asked).label("app", "a0")
    pending = pending.spec(affinity=_apart("a1", _HOST)) if minds and dice.random() < 0.3 else pending
    budgets = [budget("web", dice.randint(0, 2), app="a0", namespace=namespace)]
    return Crowded(nodes, pods, budgets, pending.obj() | {"status": {}}, minds)


def _running(dice: Random, name: str, cards: int, minds: bool) -> PodBuilder:
    app = f"a{dice.randrange(3)}"
    ready = [{"type": "Ready", "status": "True"}]
    pod = make_pod(name).gpu(cards).label("app", app).status(phase="Running", conditions=ready)
    pod = pod.requests(cpu=dice.choice((1, 2, 5))).spec(terminationGracePeriodSeconds=0)
    kind = dice.choice(("ReplicaSet",) * 7 + ("Job", "DaemonSet", ""))
    pod = pod.owner(kind, app, api_version="batch/v1" if kind == "Job" else "apps/v1") if kind else pod
    if dice.random() < 0.3:
        pod = pod.toleration("pool", operator="Exists")
    if minds and app == "a1":
        pod = pod.spec(affinity=_apart(app, _HOST))
    if minds and app == "a2":
        constraint = {"maxSkew": 2, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        pod = pod.spec(topologySpreadConstraints=[constraint | {"labelSelector": {"matchLabels": {"app": app}}}])
    return pod


def _apart(app: str, topology: str) -> Object:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
