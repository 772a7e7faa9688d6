"""About which pods the API server asks the webhook, as it is registered."""

from collections.abc import Iterator

import pytest

from certs.registration import Target, manifest, with_ca_bundle
from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.servers.loopback import closed_port
from tests.support.servers.recording import Recording, recording_webhook
from tests.support.tls.certificates import ca_of, make_artifacts, server_of

LOOPBACK = make_artifacts(dns_names=(), ip_addresses=("127.0.0.1",))


def register(cluster: Cluster, url: str) -> None:
    cluster.client.create(with_ca_bundle(manifest(Target(url=url)), ca_of(LOOPBACK).certificate))
    cluster.settle_webhooks()


@pytest.fixture
def webhook(cluster: Cluster) -> Iterator[Recording]:
    with recording_webhook(server_of(LOOPBACK)) as recording:
        register(cluster, recording.url)
        yield recording


PODS = {
    "plain": make_pod("p"),
    "of a workload type": make_pod("p").annotate("maip.mxsf.io/workload-type", "training"),
    "of a ReplicaSet": make_pod("p").owner("ReplicaSet", "web"),
    "of a Job": make_pod("p").owner("Job", "train"),
    "without a name": make_pod().generate_name("p"),
    "with an empty nodeName": make_pod("p").spec(nodeName=""),
    "with injection enabled": make_pod("p").annotate("maip.mxsf.io/inject", "enabled"),
    "with injection disabled": make_pod("p").annotate("maip.mxsf.io/inject", "disabled"),
}
LEFT_ALONE = {
    "bound to a node": make_pod("p").node_name("node-1"),
    "of a DaemonSet": make_pod("p").owner("DaemonSet", "network"),
    "mirror pod": make_pod("p").annotate("kubernetes.io/config.mirror", "hash").node_name("node-1"),
}


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_webhook_is_asked_about_a_pod(cluster: Cluster, webhook: Recording, pod: PodBuilder) -> None:
    cluster.create(pod)
    assert webhook.pods() == ["p"]


@pytest.mark.parametrize("pod", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_webhook_is_not_asked_about_a_pod(cluster: Cluster, webhook: Recording, pod: PodBuilder) -> None:
    cluster.create(pod)
    cluster.create(make_pod("q"))
    assert webhook.pods() == ["q"]


@pytest.mark.parametrize("namespace", ["kube-system", "placement-webhook"])
def test_webhook_is_not_asked_in_a_namespace_that_starts_without_it(
    cluster: Cluster, webhook: Recording, namespace: str
) -> None:
    if namespace != "kube-system":
        cluster.make_namespace(namespace)
    cluster.create(make_pod("p").namespace(namespace), dry_run=True)
    cluster.create(make_pod("q"))
    assert webhook.pods() == ["q"]


def test_webhook_is_called_on_a_dry_run_with_dry_run_set(cluster: Cluster, webhook: Recording) -> None:
    cluster.create(make_pod("p"), dry_run=True)
    assert [request["dryRun"] for request in webhook.requests] == [True]


def test_webhook_is_not_asked_about_changes_of_a_pod(cluster: Cluster, webhook: Recording) -> None:
    pod = cluster.create(make_pod("p")).object
    body = {"metadata": {"labels": {"changed": "yes"}}}
    cluster.client.patch("Pod", pod["metadata"]["name"], body, namespace=cluster.namespace)
    cluster.delete_pod(pod)
    assert [request["operation"] for request in webhook.requests] == ["CREATE"]


def test_pods_are_created_unchanged_while_the_webhook_is_down(cluster: Cluster) -> None:
    pod = make_pod("p").annotate("maip.mxsf.io/workload-type", "training")
    before = cluster.create(pod, dry_run=True).object
    register(cluster, f"https://127.0.0.1:{closed_port()}/mutate")
    assert cluster.create(pod).object["spec"] == before["spec"]
