"""The identity of a pod between its admission and its first event."""

from tests.cluster.pods.pending import pending, with_fields
from webhook.cluster.pods.pending_pods import PendingPod
from webhook.kube.pod.pod_identity import PodIdentity


def test_identity_of_a_pod_without_a_name() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    pod = {"metadata": {"generateName": "j-", "ownerReferences": [owner]}, "spec": {}}
    assert PodIdentity.of(pod, "x") == PodIdentity("x", "", "j-", "u", "")


def test_an_identity_is_small_whatever_the_pod_is() -> None:
    long = "a" * 1_000_000
    owners = [{"controller": True, "uid": long}]
    pod = with_fields(pending(), {"name": long, "generateName": long, "uid": long, "ownerReferences": owners})
    pod["spec"]["volumes"] = [{"name": f"kube-api-access-{long}"}]
    found = PendingPod.of(pod)
    assert sum(map(len, (*found.identity, found.uid, found.content))) < 2000
    assert found.identity != PodIdentity.of(with_fields(pod, {"name": long + "b"}))
