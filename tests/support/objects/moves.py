"""Clusters whose pods are moved: raw objects, and what `capacity` reads of them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from placement_planner.capacity.drain import Drain, drain
from placement_planner.capacity.make_room import Room, make_room
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.cli.inputs.profiles import Schedulers
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.placement.profiles.profile import PROFILES

Object = dict[str, Any]


class Read(NamedTuple):
    """A cluster as `capacity` reads it."""

    snapshot: Snapshot
    disruptions: Disruptions


def read(objects: Iterable[Any]) -> Read:
    """Return the cluster of raw `objects`."""
    documents = [
        Document(f"object {number}", each.obj() if isinstance(each, PodBuilder) else each)
        for number, each in enumerate(objects)
    ]
    snapshot = snapshot_from_documents(documents)
    return Read(snapshot, Disruptions.of(snapshot, documents))


def schedulers() -> Schedulers:
    """Return the built-in profiles; the default one places every pod."""
    return Schedulers(PROFILES, "default", suggestions=0)


def drained(objects: Iterable[Any], *nodes: str) -> Drain:
    """Return the moves of the pods of `nodes`."""
    snapshot, disruptions = read(objects)
    return drain(snapshot, disruptions.bound, disruptions.budgets, nodes, schedulers())


def room_for(pod: PodBuilder, objects: Iterable[Any]) -> Room:
    """Return how to make room for `pod`."""
    snapshot, disruptions = read(objects)
    return make_room(snapshot, disruptions.bound, disruptions.budgets, pod.obj(), schedulers())


def cards(name: str, count: int, **more: Any) -> Object:
    """Return a node with `count` GPUs."""
    return make_node_object(name, capacity={"nvidia.com/gpu": count}, **more)


def running(name: str, node: str, gpus: int = 0, kind: str = "ReplicaSet") -> PodBuilder:
    """Return a ready pod on `node` that a controller of `kind`, `app`, has created."""
    api_version = "batch/v1" if kind == "Job" else "apps/v1"
    pod = make_pod(name).namespace("team-a").node_name(node).label("app", "app")
    pod = pod.gpu(gpus) if gpus else pod
    ready = [{"type": "Ready", "status": "True"}]
    return pod.owner(kind, "app", api_version=api_version).status(phase="Running", conditions=ready)


def budget(name: str, allowed: int, *, app: str = "app", namespace: str = "team-a", **spec: Any) -> Object:
    """Return a PodDisruptionBudget of the pods with the label `app` that allows `allowed` disruptions."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace, "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": allowed,
            "currentHealthy": 2,
            "desiredHealthy": 2 - allowed if allowed < 2 else 0,
        },
    }
