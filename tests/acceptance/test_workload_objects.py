"""What users of workload objects and Namespaces see: `kubectl apply` against the real API server.

The webhook is registered as in deploy/, but fails closed, so that a test notices a failed call. The kinds of operators
are minimal CustomResourceDefinitions with the right groups and names, whose objects hold anything.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.conftest import Webhook, registered_as_shipped
from tests.controlplane.cluster import Cluster
from tests.support.admission import DOMAIN, TYPE, USAGE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.objects.workloads import APP, SAMPLES, Object, Sample

KINDS = pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: f"{each.kind}.{each.group}")
DEPLOYMENT = next(each for each in SAMPLES if each.kind == "Deployment")
UNSUPPORTED = 'Unsupported value: "trainning"; supported values: "inference", "training"'


@pytest.fixture(scope="module")
def of_the_file(
    shared_cluster: Cluster, custom_kinds: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Webhook]:
    """The webhook as deploy/ registers it, with two nodes of 8 GPUs."""
    for name in ("train-1", "train-2"):
        shared_cluster.make_node(
            name, labels={USAGE: "training"}, taints=[f"{USAGE}=training:NoSchedule"], capacity={"nvidia.com/gpu": 8}
        )
    with registered_as_shipped(shared_cluster, tmp_path_factory.mktemp("webhook")) as webhook:
        yield webhook


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """The cluster of the file, in a namespace of the test."""
    shared_cluster.take_another_namespace()
    return shared_cluster


@pytest.fixture
def registered(of_the_file: Webhook, cluster: Cluster) -> Webhook:
    """The webhook with its first policy, a view of this moment and no record."""
    of_the_file.world.policy = policy_with()
    of_the_file.look_at(cluster)
    of_the_file.world.records.clear()
    return of_the_file


def template(value: str = "training", gpus: int = 4) -> Object:
    pod = make_pod("").label("app", APP["app"]).annotate(TYPE, value)
    return (pod.gpu(gpus) if gpus else pod).template()


def applied(cluster: Cluster, content: Object, *flags: str) -> tuple[int, list[str]]:
    """Return the exit code of `kubectl apply`, and what it says beside its result."""
    done = cluster.kubectl("apply", "-f", "-", *flags, stdin=json.dumps(content), check=False)
    return done.returncode, done.stderr.splitlines()


def without_split(said: list[str]) -> list[str]:
    """Return the warnings but those on the templates of a sample that have no workload type."""
    return [each for each in said if "so its pods go to default-scheduler" not in each]


def kinds_of_records(webhook: Webhook) -> list[str]:
    return [record.kind for record in webhook.world.records]


@KINDS
def test_kubectl_apply_refuses_a_mistyped_annotation_and_prints_the_verdict_unless_the_pods_fit(
    cluster: Cluster, registered: Webhook, sample: Sample
) -> None:
    code, said = applied(cluster, sample.object(template("trainning")))
    assert code == 1
    assert 'admission webhook "workloads.placement.maip.mxsf.io" denied the request: ' in said[-1]
    assert f"{sample.annotations}[{TYPE}]: {UNSUPPORTED}" in said[-1]
    assert cluster.client.list(sample.kind, cluster.namespace, api_version=sample.api_version) == []

    registered.world.records.clear()
    code, said = applied(cluster, sample.object(template(gpus=16), replicas=2))
    assert code == 0
    said = without_split(said)
    counts = "" if sample.kind in ("Notebook", "Workflow") else "0 of 2 replicas fit now; the first: "
    assert said[0] == (
        f"Warning: placement check: Infeasible: {counts}0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu."
    )
    assert said[1].startswith("Warning: placement check: suggestion: ")
    assert kinds_of_records(registered) == [sample.kind]

    registered.world.records.clear()
    code, said = applied(cluster, sample.object(template(), replicas=2, name="fits"))
    assert (code, without_split(said)) == (0, [])
    (record,) = registered.world.records
    assert (record.kind, record.outcome, record.workload_type) == (sample.kind, "Unchanged", "training")
    assert record.placement is not None
    assert record.placement.verdict == "Feasible"


@pytest.mark.parametrize("field", ["name", "generateName"])
def test_dry_runs_and_generated_names(cluster: Cluster, registered: Webhook, field: str) -> None:
    content = DEPLOYMENT.object(template(gpus=6), replicas=3)
    content["metadata"] = {field: "web"}

    done = cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(content))

    assert done.stderr.startswith(
        "Warning: placement check: Waiting: 2 of 3 replicas fit now; "
        "the next: 0/2 nodes are unavailable: 2 Insufficient nvidia.com/gpu.\n"
    )
    assert [record.dry_run for record in registered.world.records] == [True]


def test_a_rolling_update_without_room_for_a_new_pod_waits_as_the_warning_says(
    cluster: Cluster, registered: Webhook
) -> None:
    cluster.control_plane.start_controller_manager()
    applied(cluster, DEPLOYMENT.object(template(gpus=8), replicas=2))
    running = cluster.wait_pods(2, "app=web")
    for pod in running:
        cluster.wait_bound(pod)
    registered.look_at(cluster)

    said = cluster.kubectl("set", "image", "deployment/web", "main=other").stderr.splitlines()

    names = {pod["metadata"]["name"] for pod in running}
    (new,) = [pod for pod in cluster.wait_pods(3, "app=web") if pod["metadata"]["name"] not in names]
    refusal = cluster.wait_unschedulable(new)
    reason = "2 Insufficient nvidia.com/gpu."
    assert refusal.startswith(f"0/2 nodes are available: {reason}")
    assert said[0] == (
        "Warning: placement check: Waiting: the rolling update cannot start beside the running pods: "
        f"0/2 nodes are unavailable: {reason}"
    )


def test_scaling_a_deployment_costs_no_call_but_that_of_each_pod(cluster: Cluster, registered: Webhook) -> None:
    cluster.control_plane.start_controller_manager()
    applied(cluster, DEPLOYMENT.object(template(gpus=0), replicas=1))
    cluster.wait_pods(1, "app=web")

    cluster.kubectl("scale", "deployment/web", "--replicas=2")
    cluster.wait_pods(2, "app=web")
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web/scale"
    scale: Any = cluster.client.request("GET", path).object
    scale["spec"]["replicas"] = 3
    # The controllers change the object at the same time.
    del scale["metadata"]["resourceVersion"]
    cluster.client.request("PUT", path, body=scale)
    cluster.wait_pods(3, "app=web")

    assert kinds_of_records(registered) == ["Deployment", "Pod", "Pod", "Pod"]


def test_the_change_of_a_stored_object_with_an_error_is_a_warning(cluster: Cluster, registered: Webhook) -> None:
    registered.world.policy = policy_with(invalidAnnotations="warn")
    path = f"spec.template.metadata.annotations[{TYPE}]: {UNSUPPORTED}"
    assert applied(cluster, DEPLOYMENT.object(template("trainning"))) == (0, [f"Warning: {path}"])
    registered.world.policy = policy_with()

    set_image = cluster.kubectl("set", "image", "deployment/web", "main=other")

    assert set_image.stderr.splitlines() == [f"Warning: {path}"]


def test_annotations_on_the_object_instead_of_the_template(cluster: Cluster, registered: Webhook) -> None:
    content = DEPLOYMENT.object(make_pod("").label("app", "web").template())
    content["metadata"]["annotations"] = {TYPE: "training"}

    assert applied(cluster, content) == (
        0,
        [f"Warning: {TYPE} has no effect on the Deployment itself: its pods read spec.template.metadata.annotations"],
    )


def test_the_policy_switches_workload_objects_off(cluster: Cluster, registered: Webhook) -> None:
    registered.world.policy = policy_with(workloadObjects={"enabled": False})

    assert applied(cluster, DEPLOYMENT.object(template("trainning"))) == (0, [])
    assert [record.outcome for record in registered.world.records] == ["Bypassed"]


def test_a_namespace_with_a_bad_default_is_refused(cluster: Cluster, registered: Webhook) -> None:
    bad = cluster.kubectl(
        "annotate", "namespace", cluster.namespace, f"{TYPE}=trainning", f"{DOMAIN}/gpu-memory=80 GB", check=False
    )
    good = cluster.kubectl("annotate", "namespace", cluster.namespace, f"{TYPE}=training")
    cluster.kubectl("label", "namespace", cluster.namespace, "team=vision")

    assert bad.returncode == 1
    assert 'admission webhook "namespaces.placement.maip.mxsf.io" denied the request: ' in bad.stderr
    assert f"metadata.annotations[{TYPE}]: {UNSUPPORTED}" in bad.stderr
    assert f'metadata.annotations[{DOMAIN}/gpu-memory]: Invalid value: "80 GB"' in bad.stderr
    assert good.stderr == ""
    # The API server asks again after a conflict of its own cache.
    assert list(dict.fromkeys(record.outcome for record in registered.world.records)) == ["Denied", "Unchanged"]
    assert registered.world.count("object_admission_requests_total", kind="Namespace", outcome="Denied") >= 1
