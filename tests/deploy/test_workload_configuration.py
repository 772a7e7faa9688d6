"""About which workload objects and Namespaces the API server asks the webhook, as it is registered."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from certs.registration import Target, manifest, with_ca_bundle
from certs.webhook_rules import WebhookRules
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_pod
from tests.support.objects.workloads import APP, SAMPLES, Object, Sample, minimal_crd
from tests.support.servers.recording import Recording, recording_webhook
from tests.support.tls.certificates import ca_of, make_artifacts, server_of
from webhook.kube.workloads.pod_template_path import PodTemplatePath, WorkloadKind
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS, QUEUE_KEYS, QUEUED_KINDS

LOOPBACK = make_artifacts(dns_names=(), ip_addresses=("127.0.0.1",))
EACH_KIND = pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: f"{each.kind}.{each.group}")
DEPLOYMENT, VOLCANO, PYTORCH, CRON_JOB = (
    next(each for each in SAMPLES if (each.group, each.kind) == name)
    for name in (
        ("apps", "Deployment"),
        ("batch.volcano.sh", "Job"),
        ("kubeflow.org", "PyTorchJob"),
        ("batch", "CronJob"),
    )
)


@pytest.fixture(scope="module")
def recording(custom_kinds: None) -> Iterator[Recording]:
    with recording_webhook(server_of(LOOPBACK)) as running:
        yield running


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """The cluster of the file, in a namespace of the test."""
    shared_cluster.take_another_namespace()
    return shared_cluster


@pytest.fixture
def webhook(cluster: Cluster, recording: Recording) -> Recording:
    """The webhook that the tests share, as it is registered. It is asked nothing yet."""
    configuration = with_ca_bundle(manifest(Target(url=recording.url)), ca_of(LOOPBACK).certificate)
    if not cluster.client.list(configuration["kind"], api_version=configuration["apiVersion"]):
        cluster.client.create(configuration)
        cluster.settle_webhooks()
    recording.requests.clear()
    return recording


@pytest.fixture
def unregistered(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster without a webhook, before and after the test."""
    cluster.remove_registrations()
    yield cluster
    cluster.remove_registrations()


def template(image: str = "nginx", environment: int = 0) -> dict[str, Any]:
    made = make_pod("").label("app", APP["app"]).annotate("example.com/big", "x" * environment).template()
    made["spec"]["containers"][0]["image"] = image
    return made


def operations(recording: Recording) -> list[str]:
    found = ((each["operation"], each["object"].get("spec")) for each in recording.requests)
    return [operation for operation, _ in once(found)]


def once(found: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return each request once: the API server asks again if its cache was behind when it wrote the object."""
    distinct: list[tuple[Any, ...]] = []
    for each in found:
        if each not in distinct:
            distinct.append(each)
    return distinct


@EACH_KIND
def test_webhook_is_asked_about_an_object_and_again_when_its_template_or_its_annotation_changes(
    cluster: Cluster, webhook: Recording, sample: Sample
) -> None:
    """An annotation on the object has no effect, or is that of the pods. Scaling and other changes cost no call."""

    def patch(**metadata: Any) -> None:
        changed = {"metadata": metadata}
        cluster.client.patch(sample.kind, "web", changed, namespace=cluster.namespace, api_version=sample.api_version)

    cluster.client.apply(sample.object(template()), namespace=cluster.namespace)
    if sample.counts_replicas:
        cluster.client.apply(sample.object(template(), replicas=5), namespace=cluster.namespace)
    patch(labels={"changed": "yes"})
    for value in ("training", "inference", None):
        patch(annotations={TYPE: value})
    patch(annotations={"deployment.kubernetes.io/revision": "7"})
    # The template of a Job is immutable.
    if changes := (sample.group, sample.kind) != ("batch", "Job"):
        replicas = 5 if sample.counts_replicas else 1
        cluster.client.apply(sample.object(template("redis"), replicas), namespace=cluster.namespace)

    requests = [(each["operation"], each["object"]) for each in webhook.requests]
    types = [
        (operation, each["metadata"].get("annotations", {}).get(TYPE), "redis" in str(each))
        for operation, each in requests
    ]
    assert once(types) == [
        ("CREATE", None, False),
        ("UPDATE", "training", False),
        ("UPDATE", "inference", False),
        *([("UPDATE", None, True)] if changes else []),
    ]


def test_kubectl_scale_and_the_scale_subresource_cost_no_call(cluster: Cluster, webhook: Recording) -> None:
    cluster.create(DEPLOYMENT.object(template()))
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web/scale"
    autoscaled = cluster.client.request("GET", path).object
    autoscaled["spec"]["replicas"] = 7

    cluster.client.request("PUT", path, body=autoscaled)
    cluster.kubectl("scale", "deployment/web", "--replicas=9")

    assert operations(webhook) == ["CREATE"]


def test_what_controllers_make_and_write_costs_no_call_but_that_of_each_pod(
    cluster: Cluster, webhook: Recording
) -> None:
    cluster.control_plane.start_controller_manager()
    cluster.create(DEPLOYMENT.object(template(), replicas=2))
    cluster.wait_pods(2, "app=web")

    cluster.kubectl("scale", "deployment/web", "--replicas=3")
    cluster.wait_pods(3, "app=web")

    assert [request["kind"]["kind"] for request in webhook.requests] == ["Deployment", "Pod", "Pod", "Pod"]


def test_webhook_is_asked_about_the_restart_of_a_deployment(cluster: Cluster, webhook: Recording) -> None:
    cluster.create(DEPLOYMENT.object(template()))

    cluster.kubectl("rollout", "restart", "deployment/web")

    assert operations(webhook) == ["CREATE", "UPDATE"]


def test_webhook_is_asked_about_a_job_that_a_user_creates_from_a_cron_job(cluster: Cluster, webhook: Recording) -> None:
    cluster.create(CRON_JOB.object(template()))

    cluster.kubectl("create", "job", "by-hand", "--from=cronjob/web")

    assert [kind for kind, _ in once((each["kind"]["kind"], each["name"]) for each in webhook.requests)] == [
        "CronJob",
        "Job",
    ]


def test_a_controller_that_a_user_names_hides_no_daemon_set(cluster: Cluster, webhook: Recording) -> None:
    """The webhook is not asked about the pods of a DaemonSet."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1", "controller": True}
    metadata, spec = {"name": "web", "ownerReferences": [owner]}, {"selector": {"matchLabels": APP}}
    for kind in ("DaemonSet", "Deployment"):
        owned = {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec | {"template": template()}}
        cluster.create(owned, dry_run=True)

    assert [request["kind"]["kind"] for request in webhook.requests] == ["DaemonSet"]


@pytest.mark.parametrize("key", QUEUE_KEYS)
def test_webhook_is_asked_about_another_queue_of_the_pods(cluster: Cluster, webhook: Recording, key: str) -> None:
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments/web"

    def queues(content: Object) -> tuple[Any, ...]:
        """Return what the test changes: the API server asks again after a conflict with a controller."""
        return tuple(content["metadata"].get(holder, {}).get(key) for holder in ("labels", "annotations"))

    def is_cached(written: Object) -> bool:
        """Return whether the API server would change this object; else it asks about an older one first."""
        return queues(cluster.client.request("GET", path, query={"resourceVersion": "0"}).object) == queues(written)

    cluster.create(DEPLOYMENT.object(template()))
    for holder in ("labels", "annotations"):
        change = {"metadata": {holder: {key: "other"}}}
        written = cluster.client.patch(
            "Deployment", "web", change, namespace=cluster.namespace, api_version="apps/v1"
        ).object
        wait_for(partial(is_cached, written), "the API server to read what it wrote")

    asked = once((each["operation"], queues(each["object"])) for each in webhook.requests)
    assert [operation for operation, _ in asked] == [
        "CREATE",
        "UPDATE",
        "UPDATE",
    ]


def test_webhook_is_asked_about_another_queue_of_a_volcano_job(cluster: Cluster, webhook: Recording) -> None:
    for spec in ({"queue": "a"}, {"queue": "a", "minAvailable": 2}, {"queue": "b", "minAvailable": 2}):
        job = VOLCANO.object(template())
        cluster.client.apply({**job, "spec": {**job["spec"], **spec}}, namespace=cluster.namespace)

    assert operations(webhook) == ["CREATE", "UPDATE"]


@pytest.mark.parametrize("kind", QUEUED_KINDS.values(), ids=lambda each: f"{each.kind}.{each.group}")
def test_webhook_is_asked_about_the_queue_of_an_object_that_waits_for_pods(
    cluster: Cluster, webhook: Recording, kind: WorkloadKind
) -> None:
    """A controller writes it, too."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1", "controller": True}
    metadata = {"name": "web", "ownerReferences": [owner]}
    name = cluster.client.create(minimal_crd(kind)).object["metadata"]["name"]
    try:
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=60s")
        for queue, size in (("a", 1), ("a", 2), ("b", 2)):
            spec = {kind.queue.removeprefix("spec."): queue, "minMember": size}
            content = {"apiVersion": f"{kind.group}/v1", "kind": kind.kind, "metadata": metadata, "spec": spec}
            cluster.client.apply(content, namespace=cluster.namespace)
    finally:
        cluster.client.delete("CustomResourceDefinition", name, api_version="apiextensions.k8s.io/v1")

    assert operations(webhook) == ["CREATE", "UPDATE"]


def test_webhook_is_not_asked_in_a_namespace_that_starts_without_it(cluster: Cluster, webhook: Recording) -> None:
    cluster.client.create(DEPLOYMENT.object(template()), namespace="kube-system", dry_run=True)
    cluster.create(DEPLOYMENT.object(template()), dry_run=True)

    assert [(request["namespace"], request["dryRun"]) for request in webhook.requests] == [(cluster.namespace, True)]


@pytest.mark.parametrize(
    "sample", [VOLCANO, PYTORCH, DEPLOYMENT], ids=["list of templates", "map of templates", "one template"]
)
def test_conditions_of_the_largest_objects_keep_within_the_cost_limit(
    cluster: Cluster, webhook: Recording, sample: Sample
) -> None:
    """Past the limit the API server would skip the webhook without a word."""
    big = with_many_templates(sample, template("nginx", 1000), 1000)
    cluster.client.apply(big, namespace=cluster.namespace)
    labelled = big | {"metadata": {"name": "web", "labels": {"changed": "yes"}}}
    cluster.client.apply(labelled, namespace=cluster.namespace)
    changed = with_many_templates(sample, template("redis", 1000), 1000)
    cluster.client.apply(changed, namespace=cluster.namespace)

    assert operations(webhook) == ["CREATE", "UPDATE"]


def with_many_templates(sample: Sample, pod: Object, number: int) -> Object:
    """Return an object of about a MiB with `number` templates, or with one as large."""
    if sample is VOLCANO:
        tasks = [{"name": f"task-{each}", "replicas": 1, "template": pod} for each in range(number)]
        return VOLCANO.object(pod) | {"spec": {"tasks": tasks}}
    if sample is PYTORCH:
        specs = {f"Role{each}": {"replicas": 1, "template": pod} for each in range(number)}
        return PYTORCH.object(pod) | {"spec": {"pytorchReplicaSpecs": specs}}
    environment = [{"name": f"V{each}", "value": "x" * 1000} for each in range(number)]
    (container,) = pod["spec"]["containers"]
    return sample.object(pod | {"spec": {"containers": [container | {"env": environment}]}})


def test_webhook_is_asked_about_a_namespace_whose_defaults_change(cluster: Cluster, webhook: Recording) -> None:
    annotations = {"team": "vision", TYPE: "training"}
    name = cluster.make_namespace(annotations=annotations)
    cluster.kubectl("label", "namespace", name, "team=vision")
    cluster.kubectl("annotate", "namespace", name, "contact=jane")
    cluster.kubectl("annotate", "namespace", name, f"{TYPE}-")
    cluster.kubectl("annotate", "namespace", name, "contact-")
    cluster.make_namespace(annotations={"team": "vision"})

    requests = ((each["operation"], each["object"]["metadata"]["annotations"]) for each in webhook.requests)
    assert once(requests) == [("CREATE", annotations), ("UPDATE", annotations | {"contact": "jane"})]


def test_a_namespace_with_very_many_annotations_keeps_within_the_cost_limit(
    cluster: Cluster, webhook: Recording
) -> None:
    annotations = {f"k{number}": "" for number in range(30_000)}

    cluster.make_namespace(annotations=annotations | {TYPE: "training"})

    assert operations(webhook) == ["CREATE"]


CONFIGURED = [
    pytest.param("spec.groups.*.template", lambda pod, n: {"groups": [{"n": n, "template": pod}]}, id="list"),
    pytest.param("spec.groups.*.template", lambda pod, n: {"groups": {"a": {"n": n, "template": pod}}}, id="map"),
    pytest.param("spec.my-pod.in", lambda pod, n: {"n": n, "my-pod": {"in": pod}}, id="keys that are no identifiers"),
]


@pytest.mark.parametrize(("path", "spec"), CONFIGURED)
def test_webhook_is_asked_about_a_kind_of_the_policy(
    unregistered: Cluster, path: str, spec: Callable[[Object, int], Object]
) -> None:
    cluster = unregistered
    kind = WorkloadKind("example.com", "FooJob", "foojobs", (PodTemplatePath(path),))
    with suppress(ApiError):
        cluster.client.create(minimal_crd(kind))
    cluster.kubectl("wait", "--for=condition=Established", "crd/foojobs.example.com", "--timeout=60s")
    coverage = WebhookRules((*BUILT_IN_KINDS, kind), ("example.com",))
    content = {"apiVersion": "example.com/v1", "kind": "FooJob", "metadata": {"name": "web"}}

    with recording_webhook(server_of(LOOPBACK)) as recording:
        configuration = manifest(Target(url=recording.url), coverage)
        cluster.client.create(with_ca_bundle(configuration, ca_of(LOOPBACK).certificate))
        cluster.settle_webhooks()
        for pod, replicas in ((template(), 1), (template(), 2), (template("redis"), 2)):
            cluster.client.apply(content | {"spec": spec(pod, replicas)}, namespace=cluster.namespace)
        cluster.kubectl("annotate", "namespace", cluster.namespace, "example.com/workload-type=training")

    # With a stale watch cache, an API server calls again for the same update.
    assert list(dict.fromkeys((request["operation"], request["kind"]["kind"]) for request in recording.requests)) == [
        ("CREATE", "FooJob"),
        ("UPDATE", "FooJob"),
        ("UPDATE", "Namespace"),
    ]


def test_webhook_is_asked_about_what_any_of_several_policies_has(unregistered: Cluster) -> None:
    """The policies find the templates of one kind at different paths, and have different key domains."""
    cluster = unregistered
    kind = WorkloadKind("example.com", "BarJob", "barjobs", (PodTemplatePath("spec.a"),))
    named = {"group": kind.group, "kind": kind.kind, "resource": kind.resource}
    policies = (
        policy_with(keyDomain=domain, workloadKinds=[{**named, "templates": [{"path": path}]}])
        for domain, path in (("example.com", "spec.a"), ("example.org", "spec.b"))
    )
    with suppress(ApiError):
        cluster.client.create(minimal_crd(kind))
    cluster.kubectl("wait", "--for=condition=Established", "crd/barjobs.example.com", "--timeout=60s")
    content = {"apiVersion": "example.com/v1", "kind": "BarJob", "metadata": {"name": "web"}}

    with recording_webhook(server_of(LOOPBACK)) as recording:
        configuration = manifest(Target(url=recording.url), WebhookRules.of(policies))
        cluster.client.create(with_ca_bundle(configuration, ca_of(LOOPBACK).certificate))
        cluster.settle_webhooks()
        for step, (a, b) in enumerate((("1", "1"), ("1", "1"), ("1", "2"), ("2", "2"))):
            spec = {"n": step, "a": template(a), "b": template(b)}
            cluster.client.apply(content | {"spec": spec}, namespace=cluster.namespace)
        for domain in ("example.net", "example.com", "example.org"):
            cluster.kubectl("annotate", "namespace", cluster.namespace, f"{domain}/workload-type=training")

    asked = [(each["operation"], each["object"]) for each in recording.requests]
    steps = [(operation, each["spec"]["n"]) for operation, each in asked if each["kind"] == "BarJob"]
    assert list(dict.fromkeys(steps)) == [("CREATE", 0), ("UPDATE", 2), ("UPDATE", 3)]
    annotated = [each["metadata"]["annotations"] for _, each in asked if each["kind"] == "Namespace"]
    domains = [{key.partition("/")[0] for key in each if key.endswith("/workload-type")} for each in annotated]
    assert [each for _, each in once(("UPDATE", each) for each in domains)] == [
        {"example.net", "example.com"},
        {"example.net", "example.com", "example.org"},
    ]
