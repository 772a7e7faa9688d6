"""The API server calls the webhook, and the stored pods have exactly the fields that docs/annotations.md states."""

import subprocess
from typing import Any

import pytest

from tests.acceptance.conftest import Webhook
from tests.acceptance.placing.pools import by_hand, inference_pod, training_pod
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.admission import DOMAIN, TYPE
from tests.support.objects.builders import PodBuilder, make_pod

PACKING_HINT = {
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {
            "weight": 100,
            "podAffinityTerm": {
                "labelSelector": {"matchExpressions": [{"key": "jobtype", "operator": "In", "values": ["binpacked"]}]},
                "namespaceSelector": {},
                "topologyKey": "kubernetes.io/hostname",
            },
        }
    ]
}


def assert_is_training_pod(pod: dict[str, Any], webhook: Webhook) -> None:
    wanted = by_hand("training")
    assert pod["spec"]["affinity"] == wanted["affinity"] | {"podAffinity": PACKING_HINT}
    assert own_tolerations(pod) == wanted["tolerations"]
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["labels"]["jobtype"] == "binpacked"
    assert provenance(pod) == (
        webhook.world.policy.identity,
        "NodeUsageAffinity,GpuProduct,BinPacking,SchedulerName",
    )


def assert_is_inference_pod(pod: dict[str, Any], webhook: Webhook) -> None:
    wanted, group = by_hand("inference"), pod["metadata"].get("labels", {}).get("pod-template-hash")
    spread = {"podAntiAffinity": spread_over_hosts(group)} if group else {}
    assert pod["spec"]["affinity"] == wanted["affinity"] | spread
    assert own_tolerations(pod) == wanted["tolerations"]
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert "jobtype" not in pod["metadata"].get("labels", {})
    rules = "NodeUsageAffinity,GpuProduct,Spread" if group else "NodeUsageAffinity,GpuProduct"
    assert provenance(pod) == (webhook.world.policy.identity, rules)


def spread_over_hosts(group: str) -> dict[str, Any]:
    """The preference for nodes without another replica of a revision of a Deployment."""
    term = {"labelSelector": {"matchLabels": {"pod-template-hash": group}}, "topologyKey": "kubernetes.io/hostname"}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def own_tolerations(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Without those that the API server gives to every pod."""
    return [each for each in pod["spec"]["tolerations"] if not each["key"].startswith("node.kubernetes.io/")]


def provenance(pod: dict[str, Any]) -> tuple[str, str]:
    annotations = pod["metadata"]["annotations"]
    return annotations[f"{DOMAIN}/placement-policy"], annotations[f"{DOMAIN}/placement-rules"]


def test_training_pod(cluster: Cluster, webhook: Webhook) -> None:
    answer = cluster.create(training_pod("training-job-worker-0"))

    assert_is_training_pod(answer.object, webhook)
    assert answer.warnings == []


def test_inference_pod(cluster: Cluster, webhook: Webhook) -> None:
    assert_is_inference_pod(cluster.create(inference_pod("inference-service-0")).object, webhook)


def test_what_the_webhook_leaves_alone_is_stored_as_it_came(cluster: Cluster, webhook: Webhook) -> None:
    pod = cluster.create(make_pod("web")).object

    assert "affinity" not in pod["spec"]
    assert "annotations" not in pod["metadata"]
    assert [record.outcome for record in webhook.world.records] == ["Bypassed"]


def test_the_pods_of_a_job(cluster: Cluster, webhook: Webhook) -> None:
    cluster.control_plane.start_controller_manager()
    template = training_pod("").spec(restartPolicy="Never").template()
    metadata = {"name": "training-job"}
    cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}})

    (pod,) = cluster.wait_pods(1, "job-name=training-job")

    assert_is_training_pod(pod, webhook)
    (record,) = webhook.world.records
    assert record.owner is not None
    assert (record.owner.kind, record.owner.name) == ("Job", "training-job")


def test_the_pods_of_a_deployment(cluster: Cluster, webhook: Webhook) -> None:
    cluster.control_plane.start_controller_manager()
    template = inference_pod("").label("app", "inference-service").template()
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "inference-service"}}, "template": template}
    metadata = {"name": "inference-service"}
    cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})

    for pod in cluster.wait_pods(2, "app=inference-service"):
        assert_is_inference_pod(pod, webhook)
    assert {record.owner.kind for record in webhook.world.records if record.owner} == {"ReplicaSet"}


def test_a_server_side_dry_run_is_patched_and_stores_nothing(cluster: Cluster, webhook: Webhook) -> None:
    answer = cluster.create(training_pod("dry"), dry_run=True)

    assert_is_training_pod(answer.object, webhook)
    assert cluster.pods() == []
    assert [record.dry_run for record in webhook.world.records] == [True]


def test_kubectl_run_with_dry_run_server_works(cluster: Cluster, webhook: Webhook) -> None:
    shown = cluster.kubectl(
        "run", "dry", "--image=nginx", f"--annotations={TYPE}=training", "--dry-run=server", "--output=name"
    )

    assert shown.stdout == "pod/dry\n"
    assert [record.outcome for record in webhook.world.records] == ["Patched"]


@pytest.mark.parametrize("pod", [training_pod("first"), inference_pod("first")], ids=["training", "inference"])
def test_a_second_admission_of_the_stored_pod_changes_nothing(
    cluster: Cluster, webhook: Webhook, pod: PodBuilder
) -> None:
    stored = cluster.create(pod).object
    again = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "second", **{key: stored["metadata"].get(key, {}) for key in ("labels", "annotations")}},
        "spec": stored["spec"],
    }

    twice = cluster.create(again).object

    assert twice["spec"] == stored["spec"]
    assert [record.outcome for record in webhook.world.records] == ["Patched", "Unchanged"]


def test_the_api_servers_audit_log_leads_to_the_decision(cluster: Cluster, webhook: Webhook) -> None:
    answer = cluster.create(training_pod("audited"))

    annotations = cluster.audit_event(answer)["annotations"]

    (record,) = webhook.world.records
    assert annotations["placement-webhook.maip.mxsf.io/decision"] == record.decision


def test_a_mistyped_annotation_is_refused_with_what_would_be_valid(cluster: Cluster, webhook: Webhook) -> None:
    with pytest.raises(ApiError) as refused:
        cluster.create(make_pod("mistyped").annotate(TYPE, "trainning"))

    assert refused.value.code == 422
    assert f'annotations[{TYPE}]: Unsupported value: "trainning"; supported values: "inference", "training"' in (
        refused.value.message
    )
    assert [record.outcome for record in webhook.world.records] == ["Denied"]


def test_kubectl_shows_warnings(cluster: Cluster, webhook: Webhook) -> None:
    manifest = make_pod("warned").annotate(TYPE, "inference").annotate(f"{DOMAIN}/queue", "research")

    printed = cluster.kubectl("create", "--filename=-", stdin=json_text(manifest))

    assert f"Warning: {DOMAIN}/queue has no effect: scheduler default-scheduler has no queues" in printed.stderr


HOSTILE = "x\x1b]0;title\x07\x1b[31m\u202e"
SHOWN = r"x\x1b]0;title\x07\x1b[31m\u202e"


def test_warning_about_a_value_with_control_characters_reaches_the_user(cluster: Cluster, webhook: Webhook) -> None:
    """The API server drops a warning that holds one: the user could switch off ours."""
    pod = make_pod("warned").annotate(TYPE, "training").annotate(f"{DOMAIN}/scheduler", "volcano").scheduler(HOSTILE)

    (warning,) = cluster.create(pod).warnings

    assert f"spec.schedulerName {SHOWN} of the pod wins over the annotation's volcano" in warning


def test_kubectl_prints_no_control_characters_of_a_refused_pod(cluster: Cluster, webhook: Webhook) -> None:
    manifest = make_pod("refused").annotate(TYPE, HOSTILE)

    with pytest.raises(subprocess.CalledProcessError) as refused:
        cluster.kubectl("create", "--filename=-", stdin=json_text(manifest))

    assert "Unsupported value" in refused.value.stderr
    assert "\x1b" not in refused.value.stderr
    assert "\u202e" not in refused.value.stderr


def json_text(pod: PodBuilder) -> str:
    import json

    return json.dumps(pod.obj())
