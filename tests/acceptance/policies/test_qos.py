"""The QoS class that the webhook names is that of the real API server, and a type can ask for Guaranteed."""

from typing import Any

import pytest

from tests.acceptance.conftest import Webhook
from tests.acceptance.placing.pools import training_pod
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.qos_pods import PODS
from webhook.kube.pod.qos import qos_class
from webhook.policy.policy import Policy

_BOTH = {"cpu": "2", "memory": "1Gi"}
_END = 'workload type "training" asks for QoS class Guaranteed'


def guaranteed(**qos: Any) -> Policy:
    usage = {"allow": ["training"]}
    return policy_with(workloadTypes={"training": {"nodeUsage": usage, "qos": {"class": "Guaranteed", **qos}}})


def annotated() -> PodBuilder:
    annotations = training_pod("worker").obj()["metadata"]["annotations"]
    pod = make_pod("worker").gpu(1)
    for key, value in annotations.items():
        pod = pod.annotate(key, value)
    return pod


def test_class_of_each_pod_is_that_of_the_api_server(cluster: Cluster) -> None:
    pods = {name: pod for of_class in PODS.values() for name, pod in of_class.items()}

    stored = {name: cluster.create(pod, dry_run=True).object for name, pod in pods.items()}

    found = {name: pod["status"]["qosClass"] for name, pod in stored.items()}
    assert found == {name: wanted for wanted, of_class in PODS.items() for name in of_class}
    assert found == {name: qos_class(pod) for name, pod in stored.items()}


def test_requests_alone_become_guaranteed_if_the_policy_sets_limits(cluster: Cluster, webhook: Webhook) -> None:
    webhook.world.policy = guaranteed(limitsFromRequests=True, wholeCpus=True)
    pod = annotated().requests(**_BOTH)

    answer = cluster.create(pod, dry_run=True)

    assert answer.object["status"]["qosClass"] == webhook.world.records[-1].qos_class == "Guaranteed"
    assert [each for each in answer.warnings if "QoS" in each] == []
    assert {each.outcome for each in webhook.world.records} == {"Patched"}


def test_what_is_missing_is_warned_of_or_refused(cluster: Cluster, webhook: Webhook) -> None:
    webhook.world.policy = guaranteed()
    pod = annotated().requests(cpu="1").limits(cpu="2")
    gaps = [
        f'spec.containers[0].resources.requests.cpu: container "main" requests less cpu than its limit, but {_END}',
        f'spec.containers[0].resources.limits.memory: container "main" has no memory limit, but {_END}',
    ]

    answer = cluster.create(pod, dry_run=True)
    webhook.world.policy = guaranteed(onMissing="deny")
    with pytest.raises(ApiError) as refused:
        cluster.create(pod, dry_run=True)

    assert [each for each in answer.warnings if "QoS" in each] == gaps
    assert answer.object["status"]["qosClass"] == webhook.world.records[0].qos_class == "Burstable"
    assert refused.value.code == 403
    assert all(gap.partition(": ")[2] in refused.value.message for gap in gaps)
