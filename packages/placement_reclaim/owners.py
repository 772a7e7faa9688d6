"""The owner of a held pod, and the commands by which a person frees its cards."""

import shlex
from typing import NamedTuple

import orjson

from placement_reclaim.cluster import OUT_OF_SERVICE, HoldingPod, Raw, full_name
from placement_reclaim.held import Step
from webhook.cluster.batch import fields

_HASH = "pod-template-hash"
_SCALED = frozenset(("Deployment", "StatefulSet", "ReplicaSet"))


class Owner(NamedTuple):
    """The object that a person changes to free the cards of a pod: its controller, or the pod if it has none."""

    kind: str
    name: str
    namespace: str
    group: str = ""
    """The API group of `kind`, or empty for the core group."""

    @classmethod
    def of(cls, pod: Raw) -> "Owner":
        """Return the owner of `pod`. For a ReplicaSet of a Deployment, this is the Deployment."""
        namespace, name = full_name(pod)
        for each in fields.items(pod, "metadata", "ownerReferences"):
            if each.get("controller") is True:
                kind, name = fields.text(each, "kind"), fields.text(each, "name")
                group = fields.text(each, "apiVersion").rpartition("/")[0]
                suffix = "-" + fields.text(pod, "metadata", "labels", _HASH)
                if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
                    return cls("Deployment", name.removesuffix(suffix), namespace, group)
                return cls(kind, name, namespace, group)
        return cls("Pod", name, namespace)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def returns(self) -> bool:
        """Return whether the owner creates the pod again after a deletion."""
        return self.kind != "Pod"

    @property
    def remedy(self) -> str:
        """Return a short text about the change that frees the cards."""
        return f"scale {self} to 0" if self._is_scaled else f"delete {self}"

    @property
    def step(self) -> Step:
        """Return the command that frees the cards."""
        # kubectl prefers the kinds of Kubernetes; their groups have no dot, but for kinds without pods.
        resource = shlex.quote(f"{self.kind.lower()}.{self.group}" if "." in self.group else self.kind.lower())
        target = f"{resource} {shlex.quote(self.name)} -n {shlex.quote(self.namespace)}"
        if self._is_scaled:
            return Step(f"kubectl scale {target} --replicas=0", f"the owner of {self} agrees")
        return Step(f"kubectl delete {target}", f"the owner of {self} agrees")

    @property
    def _is_scaled(self) -> bool:
        return self.kind in _SCALED and self.group == "apps"


def steps_of_ending(pod: HoldingPod) -> tuple[Step, ...]:
    """Return the commands that end a pod which should have ended."""
    node, name = shlex.quote(pod.running.node_name), shlex.quote(pod.running.name)
    namespace = shlex.quote(pod.running.namespace)
    if pod.node.is_down:
        if pod.node.is_out_of_service:
            return ()
        taint = f"kubectl taint nodes {node} {OUT_OF_SERVICE}=nodeshutdown:NoExecute"
        return (Step(taint, f"{pod.running.node_name} is off: pods of a running node go on with its volumes"),)
    if finalizers := [*fields.items(pod.content, "metadata", "finalizers")]:
        patch = shlex.quote(orjson.dumps([{"op": "remove", "path": "/metadata/finalizers"}]).decode())
        condition = f"the controller that sets {', '.join(map(str, finalizers))} is gone, with what it cleans up"
        return (Step(f"kubectl patch pod {name} -n {namespace} --type=json -p {patch}", condition),)
    force = f"kubectl delete pod {name} -n {namespace} --grace-period=0 --force"
    ended = f"no process of the pod runs on {pod.running.node_name}, or two pods would use one card"
    return (Step(force, ended),)
