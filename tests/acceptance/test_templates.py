"""With `mutateTemplates`, stored templates have what is injected, and their pods are admitted unchanged."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import Webhook, registered_as_shipped
from tests.controlplane.cluster import Cluster
from tests.support.admission import DOMAIN, PRODUCT, TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.objects.workloads import APP, SAMPLES, Object, Sample
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.workload_kinds import kinds_by_name

DEPLOYMENT, JOB, VOLCANO_JOB = (
    next(each for each in SAMPLES if (each.group, each.kind) == key)
    for key in (("apps", "Deployment"), ("batch", "Job"), ("batch.volcano.sh", "Job"))
)


@pytest.fixture
def registered(cluster: Cluster, custom_kinds: None, tmp_path: Path) -> Iterator[Webhook]:
    """The webhook as deploy/ registers it, which patches templates."""
    with registered_as_shipped(cluster, tmp_path) as webhook:
        webhook.world.policy = policy_with(workloadObjects={"mutateTemplates": True})
        yield webhook


def template(image: str = "pause") -> Object:
    pod = make_pod("").label("app", APP["app"]).annotate(TYPE, "training").annotate(PRODUCT, "NVIDIA-H20").gpu(1)
    found = pod.template()
    found["spec"]["containers"][0]["image"] = image
    return found


def applied(cluster: Cluster, content: Object) -> str:
    """Return what `kubectl apply` says of its result."""
    return cluster.kubectl("apply", "-f", "-", stdin=json.dumps(content)).stdout


@pytest.mark.parametrize("sample", [DEPLOYMENT, JOB], ids=lambda each: each.kind)
def test_pods_of_a_controller_are_created_as_they_are_admitted(
    cluster: Cluster, registered: Webhook, sample: Sample
) -> None:
    cluster.control_plane.start_controller_manager()
    spread = template()
    spread["metadata"]["annotations"][f"{DOMAIN}/spread"] = "host"
    applied(cluster, sample.object(spread, 2))
    pods = cluster.wait_pods(2)

    records = [(each.kind, each.outcome) for each in registered.world.records]
    assert records == [(sample.kind, "Patched"), ("Pod", "Unchanged"), ("Pod", "Unchanged")]
    assert {each["spec"]["schedulerName"] for each in pods} == {"volcano"}


def test_manifest_that_is_applied_again_changes_nothing_and_a_new_image_is_one_rollout(
    cluster: Cluster, registered: Webhook
) -> None:
    first = DEPLOYMENT.object(template())
    applied(cluster, first)
    stored = stored_object(cluster)

    assert "unchanged" in applied(cluster, first)
    applied(cluster, DEPLOYMENT.object(template("pause:2")))
    after = stored_object(cluster)

    assert [each["metadata"]["generation"] for each in (stored, after)] == [1, 2]
    before_image = {**stored["spec"]["template"]["spec"], "containers": None}
    assert {**after["spec"]["template"]["spec"], "containers": None} == before_image
    assert {each.outcome for each in registered.world.records} <= {"Patched", "Unchanged"}


def stored_object(cluster: Cluster) -> Object:
    return cluster.client.get("Deployment", "web", cluster.namespace, api_version="apps/v1")


def test_pod_of_an_operators_template_is_admitted_unchanged(cluster: Cluster, registered: Webhook) -> None:
    applied(cluster, VOLCANO_JOB.object(template(), 2))
    stored = cluster.client.get("Job", "web", cluster.namespace, api_version=VOLCANO_JOB.api_version)

    # Volcano's controller sets the scheduler of the job.
    pod = pod_sets(stored, kinds_by_name())[0].pod
    pod["metadata"] = {**pod["metadata"], "ownerReferences": []}
    cluster.client.create(pod, namespace=cluster.namespace)

    assert [each.outcome for each in registered.world.records] == ["Patched", "Unchanged"]


def test_template_of_a_stored_job_is_left_to_the_api_server(cluster: Cluster, registered: Webhook) -> None:
    """It refuses a changed template, with or without the webhook."""
    applied(cluster, JOB.object(template()))

    refused = cluster.kubectl("apply", "-f", "-", stdin=json.dumps(JOB.object(template("pause:2"))), check=False)

    assert "field is immutable" in refused.stderr
    assert [each.outcome for each in registered.world.records] == ["Patched", "Unchanged"]
