"""Pods as users write them are completed, refused and placed as the real API server and kube-scheduler do it."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.client import ApiError, Client
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.differential.command import predicted_by_command
from tests.differential.comparison import disagreements
from tests.differential.kube_scheduler import KubeScheduler
from tests.differential.profiles import PROFILES
from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.written_pods import (
    MARK,
    RACKS,
    TAINTS,
    random_classes,
    random_limit_ranges,
    written_pod,
)
from tests.support.objects.builders import make_node_object, make_pod
from webhook.admission.api_server.limit_ranger import limit_violations
from webhook.admission.api_server.plugins import check_admitted, completed
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.kube.deadline import never
from webhook.kube.pod.pod_validation import check_storable
from webhook.kube.pod.taints import Toleration, covers
from webhook.kube.quantity import milli_value

PODS_PER_WORLD = 10
FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
WORLDS = max(2, int(os.environ.get("DIFFERENTIAL_WRITTEN_PODS", "20")) // PODS_PER_WORLD)
# DefaultTolerationSeconds adds them, and every reader of tolerations.
_BY_DEFAULT = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_written_pods_end_as_predicted(cluster: Cluster, seed: int, tmp_path: Path) -> None:
    dice = Dice(seed)
    scheduler = KubeScheduler(cluster)
    _establish(cluster, dice)
    objects = [*scheduler.objects(), *cluster.client.list("PriorityClass", api_version="scheduling.k8s.io/v1")]
    snapshot = snapshot_from_documents(Document("cluster", each) for each in objects)
    pods = [written_pod(dice, f"p{number}", cluster.namespace) for number in range(PODS_PER_WORLD)]

    stored = [pod for pod in pods if _is_stored_as_completed(cluster.client, pod, snapshot)]

    if not stored:
        return
    predictions = predicted_by_command(tmp_path, objects, stored)
    of_templates = predicted_by_command(tmp_path, objects, [_deployment(pod) for pod in stored])
    for pod, placement, of_template in zip(stored, predictions, of_templates, strict=True):
        answer, _ = scheduler.ask(pod)
        assert disagreements(placement, answer, PROFILES["default-scheduler"]) == [], json.dumps(pod)
        assert (of_template.verdict, of_template.message) == (placement.verdict, placement.message)


def _establish(cluster: Cluster, dice: Dice) -> None:
    """Create nodes, classes and LimitRanges, and wait until the API server applies the LimitRanges."""
    for number in range(4):
        taints = [f"{dice.choice(TAINTS)}=yes:NoSchedule"] if dice.chance(50) else []
        amounts = {"cpu": dice.choice(("2", "4", "8")), "memory": dice.choice(("2Gi", "8Gi")), "example.com/card": 2}
        node = make_node_object(f"n{number}", labels={"rack": dice.choice(RACKS)}, taints=taints, capacity=amounts)
        cluster.make_nodes(node)
    for each in (*random_classes(dice), *random_limit_ranges(dice, cluster.namespace)):
        cluster.client.create(each)
    amounts = {"cpu": "1", "memory": "1Gi"}
    probe = make_pod("probe").namespace(cluster.namespace).requests(**amounts).obj()

    def is_known() -> bool:
        try:
            found = cluster.create(probe, dry_run=True).object
        except ApiError as error:
            return "usage per" in error.message or "ratio per" in error.message
        return MARK in found["spec"]["containers"][0]["resources"]["requests"]

    wait_for(is_known, "the LimitRanges")


def _is_stored_as_completed(client: Client, pod: Object, snapshot: Snapshot) -> bool:
    """Return whether the API server stores `pod`, and check that it does what is predicted."""
    stored = _dry_run(client, pod)
    if isinstance(stored, str):
        assert _is_predicted(stored, pod, snapshot), (stored, json.dumps(pod))
        return False
    found = completed(pod, snapshot)
    check_storable(found.pod)
    check_admitted(found.pod, snapshot)
    assert not found.unknown
    assert _read(found.pod) == _read(stored), json.dumps(pod)
    return True


def _dry_run(client: Client, pod: Object) -> Object | str:
    """Return `pod` as it would be stored, or the words in which it is refused."""
    try:
        return client.create(pod, dry_run=True).object
    except ApiError as error:
        return error.message


def _is_predicted(message: str, pod: Object, snapshot: Snapshot) -> bool:
    """Return whether `pod` is refused with `message`; one of several errors is enough, which have no order."""
    try:
        found = completed(pod, snapshot)
        check_storable(found.pod)
    except InvalidInput as error:
        return all(str(each) in message for each in error.errors)
    try:
        check_admitted(found.pod, snapshot)
    except InvalidInput as error:
        words = message.removeprefix(f'pods "{pod["metadata"]["name"]}" is forbidden: ')
        parts = sorted(words.removeprefix("[").removesuffix("]").split(", "))
        ranges = snapshot.limit_ranges.get(pod["metadata"]["namespace"], ())
        candidates = [", ".join(limit_violations(found.pod, (each,), never)).split(", ") for each in ranges]
        return str(error.errors[0]) == message or parts in [sorted(each) for each in candidates]
    return False


def _read(pod: Object) -> Object:
    """Return the fields of `pod` that the API server completes, with amounts in thousandths."""
    spec = pod["spec"]
    return {
        "containers": [_amounts(each) for each in spec["containers"]],
        "initContainers": [_amounts(each) for each in spec.get("initContainers", ())],
        "overhead": _milli(spec.get("overhead")),
        "nodeSelector": spec.get("nodeSelector") or {},
        "note": (pod["metadata"].get("annotations") or {}).get("kubernetes.io/limit-ranger"),
        "tolerations": _without_covered(spec.get("tolerations", ())),
    }


def _without_covered(tolerations: Sequence[Object]) -> set[Toleration]:
    """Return the tolerations that no other covers, without those that every reader adds."""
    found = [each for each in tolerations if each.get("key") not in _BY_DEFAULT]
    wide = [each for each in found if not any(covers(other, each) and not covers(each, other) for other in found)]
    return {Toleration.of(each) for each in wide}


def _amounts(holder: Object) -> Object:
    resources = holder.get("resources") or {}
    return {part: _milli(resources.get(part)) for part in ("requests", "limits")}


def _milli(amounts: Mapping[str, Any] | None) -> dict[str, int]:
    return {name: milli_value(each) for name, each in (amounts or {}).items()}


def _deployment(pod: Object) -> Object:
    labels = {"app": pod["metadata"]["name"]}
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": pod["metadata"], "spec": spec}
