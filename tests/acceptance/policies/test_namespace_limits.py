"""A pod, a Deployment and a Namespace beyond the limits of a namespace are refused by the real API server."""

from pathlib import Path

import pytest

from tests.acceptance.conftest import registered_as_shipped
from tests.acceptance.placing.pools import inference_pod
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.admission import DOMAIN, policy_with


def test_what_is_beyond_the_limits_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    namespace, queue = cluster.namespace, f"{DOMAIN}/queue"
    limits = {"namespaces": [namespace], "queues": ["lab-*"], "maxCardsPerPod": 2}
    beyond = inference_pod("beyond", 4)
    template = beyond.label("app", "a").template()
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}
    default = {"metadata": {"annotations": {queue: "other"}}}
    cards = f'Forbidden: namespace "{namespace}" may not request 4 cards in a pod; allowed: at most 2'

    with registered_as_shipped(cluster, tmp_path) as webhook:
        webhook.world.policy = policy_with(namespaceLimits=[limits])
        cluster.create(inference_pod("within", 2).annotate(queue, "lab-a"), dry_run=True)
        with pytest.raises(ApiError) as pod:
            cluster.create(beyond, dry_run=True)
        with pytest.raises(ApiError) as workload:
            cluster.create(deployment, dry_run=True)
        with pytest.raises(ApiError) as written:
            cluster.client.patch("Namespace", namespace, default, dry_run=True)

    assert [each.value.code for each in (pod, workload, written)] == [403, 403, 403]
    assert pod.value.message.endswith(f"denied the request: spec.containers: {cards}")
    assert workload.value.message.endswith(f"denied the request: spec.template.spec.containers: {cards}")
    assert 'may not use queue "other"; allowed queues: lab-*' in written.value.message
