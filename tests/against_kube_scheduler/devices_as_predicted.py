"""Predictions for pods with devices, beside what the real kube-scheduler does with them."""

from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.objects.builders import PodBuilder
from tests.support.objects.devices import DRIVER
from tests.support.programs.messages import first_sentence
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.profiles.profile import DEFAULT, Profile
from webhook.placement.scheduler import Placement, Scheduler

Object = dict[str, Any]

_KINDS = (
    *(("v1", kind) for kind in ("Node", "Namespace", "Pod")),
    *(("resource.k8s.io/v1", kind) for kind in ("DeviceClass", "ResourceClaim", "ResourceSlice", "DeviceTaintRule")),
)
# The event of kube-scheduler's log for each kind, and the field that names the object; older releases log less.
_RECEIVED = {
    "DeviceClass": ("DeviceClass added", "deviceClass"),
    "DeviceTaintRule": ("DeviceTaintRule added", "deviceTaintRule"),
    "ResourceClaim": ("Observed device allocation", "claim"),
    "ResourceSlice": ("ResourceSlice added", "slice"),
}
_OLDEST_THAT_LOGS = 37
API = "resource.k8s.io/v1"
MODEL = f'device.attributes["{DRIVER}"].model'


def make(cluster: Cluster, *objects: Object) -> None:
    """Create the objects, claims in the namespace of the test, with their statuses; kube-scheduler has them then."""
    log = cluster.control_plane.scheduler_log
    since = log.end()
    received: dict[str, list[str]] = {}
    for each in objects:
        given = each
        if each["kind"] == "ResourceClaim":
            given = each | {"metadata": each["metadata"] | {"namespace": cluster.namespace}}
        made = cluster.client.create({key: value for key, value in given.items() if key != "status"}).object
        name = made["metadata"]["name"]
        if "status" in given:
            cluster.client.patch(
                each["kind"],
                name,
                {"status": given["status"]},
                namespace=cluster.namespace,
                api_version=each["apiVersion"],
                subresource="status",
            )
        if each["kind"] != "ResourceClaim":
            received.setdefault(each["kind"], []).append(name)
        elif _has_devices(each):
            received.setdefault(each["kind"], []).append(f"{cluster.namespace}/{name}")
    if _minor(cluster) >= _OLDEST_THAT_LOGS:
        for kind, names in received.items():
            event, field = _RECEIVED[kind]
            log.wait_for_events(event, field, names, since=since)


def _has_devices(claim: Object) -> bool:
    """The scheduler counts a device of the claim as taken; it counts none that an administrator looks at or shares."""
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return any(not (each.get("adminAccess") or each.get("shareID")) for each in results)


def _minor(cluster: Cluster) -> int:
    return int(cluster.client.request("GET", "/version").object["minor"].rstrip("+"))


def predict(cluster: Cluster, builder: PodBuilder, profile: Profile = DEFAULT) -> Placement:
    """Return the placement of the pod on what the cluster has."""
    documents = [
        Document("cluster", each)
        for api_version, kind in _KINDS
        for each in cluster.client.list(kind, api_version=api_version)
    ]
    version = Document("cluster", {"serverVersion": cluster.client.request("GET", "/version").object})
    snapshot = snapshot_from_documents([*documents, version])
    return Scheduler(profile).place(builder.namespace(cluster.namespace).obj(), snapshot)


def assert_pod_as_predicted(
    cluster: Cluster,
    builder: PodBuilder,
    *,
    verdict: str,
    nodes: set[str] | None = None,
    profile: Profile = DEFAULT,
    binds: bool = True,
) -> None:
    """kube-scheduler's message for a pod is the predicted one, or its nodes are `nodes`, with the same scores.

    It `binds` the pod, or waits for devices to be made ready.
    """
    predicted = predict(cluster, builder, profile)
    assert (predicted.verdict, predicted.unmodelled) == (verdict, ())
    if verdict == "Feasible":
        assert set(predicted.scores) == nodes
    assert_right(cluster, predicted, builder, binds=binds)


def assert_right(cluster: Cluster, predicted: Placement, builder: PodBuilder, *, binds: bool = True) -> None:
    """kube-scheduler does with the pod what is predicted.

    It counts the devices of a pod as taken until it has bound the pod, also after the pod is deleted: those of a later
    test can have the same names.
    """
    pod = cluster.create(builder).object
    if predicted.verdict == "Feasible":
        bound = cluster.wait_bound(pod) if binds else _wait_chosen(cluster, pod)
        scores = {
            node: {plugin: score for plugin, score in each.items() if plugin != "total"}
            for node, each in predicted.scores.items()
        }
        assert bound in scores
        assert cluster.scores(pod) == (scores if len(scores) > 1 else {})
        return

    def message() -> str:
        conditions = cluster.client.get("Pod", pod["metadata"]["name"], cluster.namespace)["status"].get("conditions")
        return first_sentence(conditions[0]["message"]) if conditions else ""

    wait_for(lambda: message() == predicted.message or None, lambda: f"{predicted.message}: {message()}")


def _wait_chosen(cluster: Cluster, pod: Object) -> str:
    """The node that the scheduler has chosen for a pod that it does not bind before its devices are made ready."""

    def chosen() -> str | None:
        current = cluster.client.get("Pod", pod["metadata"]["name"], cluster.namespace)
        node: str | None = current["status"].get("nominatedNodeName")
        return node

    return wait_for(chosen, f"a node for {pod['metadata']['name']}")
