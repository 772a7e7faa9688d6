"""With `deny`, no pod is refused that the real kube-scheduler binds, now or once states of nodes that pass are gone."""

import os

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.configuration import scheduler_configuration
from tests.differential.kube_scheduler import KubeScheduler
from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.passing_states import (
    ELSEWHERE,
    NAMESPACE,
    SHARES,
    SHARING,
    asking_pods,
    passing_node,
)
from tests.differential.random_objects.worlds import World
from tests.support.admission import admit_pod, policy_with
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.injection import Denied
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.api.json_patch import patched

FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
WORLDS = int(os.environ.get("DIFFERENTIAL_REFUSALS", "2"))
_PODS = 10
_NODES = 3

# HAMi's configuration with an extender that does not answer, and a scheduler with rules of its own.
_PROFILES = [
    {"schedulerName": "default-scheduler"},
    {"schedulerName": SHARING},
    {"schedulerName": ELSEWHERE, "plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}},
]
_EXTENDER = {
    "urlPrefix": "http://127.0.0.1:1",
    "filterVerb": "filter",
    "ignorable": True,
    "nodeCacheCapable": True,
    "managedResources": [{"name": name, "ignoredByScheduler": True} for name in SHARES],
}
_CONFIGURATION = {**scheduler_configuration(), "profiles": _PROFILES, "extenders": [_EXTENDER]}
_NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
# No DeviceClass: nothing but nodes can offer a resource.
_NO_CLASSES = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClassList", "items": []}


def _admitted(pod: Object, objects: list[Object]) -> tuple[bool, Object]:
    """Return whether `pod` is refused with `deny`, and the pod as it is patched otherwise."""
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*objects, _NO_CLASSES))
    deny, warn = (policy_with(placementCheck={"mode": mode}) for mode in ("deny", "warn"))
    view = ClusterView(snapshot, scheduler_for(deny))
    injected = admit_pod(pod, warn, view, namespace=NAMESPACE)
    assert injected.outcome == "Patched"
    return isinstance(admit_pod(pod, deny, view, namespace=NAMESPACE), Denied), patched(pod, injected.operations)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_no_pod_is_refused_that_kube_scheduler_binds_now_or_later(cluster: Cluster, seed: int) -> None:
    dice = Dice(seed)
    nodes = [passing_node(dice, f"node-{number}") for number in range(_NODES)]
    pods = asking_pods(dice, _PODS)
    cluster.control_plane.start_scheduler(_CONFIGURATION)
    scheduler = KubeScheduler(cluster)
    scheduler.establish(World((_NAMESPACE,), (), tuple(each.now for each in nodes), ()))
    found = [_admitted(pod, scheduler.objects()) for pod in pods]
    refused = {pod["metadata"]["name"] for is_refused, pod in found if is_refused}
    bound = {pod["metadata"]["name"]: node for _, pod in found if (node := scheduler.ask(pod)[0].node)}
    scheduler.establish(World((_NAMESPACE,), (), tuple(each.later for each in nodes), ()))
    later = {pod["metadata"]["name"]: node for _, pod in found if (node := scheduler.ask(pod)[0].node)}

    assert refused.isdisjoint(bound), "bound now"
    assert refused.isdisjoint(later), "bound once the states are gone"
    assert refused | bound.keys() | later.keys(), "nothing was compared"
