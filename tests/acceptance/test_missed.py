"""Pods that a real API server stored while the webhook was away are found by `missed`."""

import orjson
import pytest

from certs.registration import Target, manifest
from certs.webhook_rules import PODS
from tests.controlplane.cluster import Cluster
from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.programs.command import Run, run

__all__ = ["run"]


@pytest.fixture
def webhook_away(cluster: Cluster, unreachable_webhook: str) -> None:
    """Register the webhook as deploy/ does, with `failurePolicy: Ignore`, at an address where nothing listens."""
    configuration = manifest(Target(url=unreachable_webhook))
    configuration["webhooks"] = [each for each in configuration["webhooks"] if each["name"] == PODS]
    assert configuration["webhooks"][0]["failurePolicy"] == "Ignore"
    cluster.client.create(configuration)
    cluster.settle_webhooks()


@pytest.mark.usefixtures("webhook_away")
def test_pods_that_were_stored_meanwhile_are_missed(run: Run, cluster: Cluster) -> None:
    cluster.make_node("node")
    inference = make_pod("bound-by-scheduler").annotate(TYPE, "inference")
    pods = [
        inference.obj(),
        make_pod("created-on-node").annotate(TYPE, "inference").node_name("node").obj(),
        make_pod("of-daemonset").annotate(TYPE, "inference").owner("DaemonSet", "agent", uid="1").obj(),
        make_pod("without-type").obj(),
    ]
    bound, *_ = [cluster.create(each).object for each in pods]
    cluster.wait_bound(bound)

    outcome = run("missed", "--kubeconfig", cluster.control_plane.kubeconfig, "-o", "json")

    (missed,) = [orjson.loads(line) for line in outcome.output.splitlines()]
    assert outcome.code == 3
    # The servers of this webhook are outside the cluster.
    assert outcome.errors.startswith("not known: the policy in force: ")
    assert missed["pod"] == f"{cluster.namespace}/bound-by-scheduler"
    assert missed["created"] == bound["metadata"]["creationTimestamp"]
    assert "NodeUsageAffinity" in missed["rules"]


@pytest.mark.usefixtures("webhook_away")
def test_a_pod_of_kube_system_is_not_missed(run: Run, cluster: Cluster) -> None:
    cluster.client.create(make_pod("system").annotate(TYPE, "inference").obj(), namespace="kube-system")
    try:
        outcome = run("missed", "--kubeconfig", cluster.control_plane.kubeconfig)
    finally:
        cluster.client.delete("Pod", "system", namespace="kube-system")

    assert (outcome.code, outcome.output) == (0, "no pod was missed, of 1\n")
