"""Events of the webhook on the real API server, written with the rights of deploy/base/rbac.yaml and no others."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Webhook
from tests.acceptance.placing.pools import inference_pod, pool_node, training_pod
from tests.controlplane.client import ApiError, Object, Objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import PodBuilder
from tests.support.objects.manifests import read
from tests.support.servers.server import World, running_in_thread
from webhook.events.recorder import Clocks, EventRecorder
from webhook.runtime.metrics import Metrics
from webhook.watch.api_server import ClientConfig

RBAC = "rbac.authorization.k8s.io/v1"
SELECTOR = "source=placement-webhook"
# The recorder waits a fifth of what it would.
QUICK = Clocks(monotonic_seconds=lambda: 5 * time.monotonic(), sleep=lambda seconds: asyncio.sleep(seconds / 5))

# The recorder writes less Events than a quarter of this for them.
_STORM = 120


def kubeconfig_of(cluster: Cluster, folder: Path, rules: Objects) -> Path:
    """A kubeconfig of a new service account that has these rights in the whole cluster."""
    client, name = cluster.client, f"webhook-{cluster.namespace}"
    client.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}, namespace=cluster.namespace
    )
    client.create({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
    client.create(
        {
            "apiVersion": RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": cluster.namespace}],
        }
    )
    token = cluster.kubectl("create", "token", name).stdout.strip()
    config = json.loads(cluster.control_plane.kubeconfig.read_text())
    config["users"] = [{"name": "admin", "user": {"token": token}}]
    file = folder / "service-account.json"
    file.write_text(json.dumps(config))
    return file


def shipped_rules() -> Objects:
    (role,) = [each for each in read("base/rbac.yaml") if each["kind"] == "ClusterRole"]
    rules: Objects = role["rules"]
    return rules


@contextmanager
def reporting(cluster: Cluster, folder: Path, rules: Objects, replica: str = "replica-a") -> Iterator[Webhook]:
    """A webhook that writes Events with these rights, registered for all pods."""
    metrics = Metrics()
    source = ClientConfig(kubeconfig_of(cluster, folder, rules))
    world = World(metrics=metrics, events=EventRecorder(source.connect, metrics, replica, QUICK))
    with running_in_thread(world, folder) as server:
        ca_pem = (folder / "ca.crt").read_text()
        cluster.register_webhook(server.url, ca_pem)
        yield Webhook(world, server, ca_pem)


@pytest.fixture
def rights(cluster: Cluster) -> Iterator[Objects]:
    yield shipped_rules()
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        cluster.client.delete(kind, f"webhook-{cluster.namespace}", api_version=RBAC)


@pytest.fixture
def reporter(cluster: Cluster, tmp_path: Path, rights: Objects) -> Iterator[Webhook]:
    with reporting(cluster, tmp_path, rights) as webhook:
        yield webhook


def settled(webhook: Webhook) -> None:
    """Wait until nothing is left to look up or write."""
    events = webhook.world.events
    assert events is not None
    wait_for(lambda: events.is_idle, "all Events written", deadline_seconds=60)


def events_of(cluster: Cluster) -> dict[tuple[str, str, str], list[int]]:
    """The counts of the Events that the webhook wrote, by kind and name of the object and reason."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for event in cluster.client.list("Event", cluster.namespace, field_selector=SELECTOR):
        target = event["involvedObject"]
        found.setdefault((target["kind"], target["name"], event["reason"]), []).append(event["count"])
    return found


def owner(cluster: Cluster, kind: str = "ReplicaSet", name: str = "web") -> Object:
    """An owner without a controller that acts on it: the tests create its pods."""
    template = inference_pod("").label("app", name).template()
    spec: dict[str, Any] = {"selector": {"matchLabels": {"app": name}}, "template": template}
    api_version = "apps/v1"
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        api_version, spec = "batch/v1", {"suspend": True, "template": template}
    return cluster.client.create(
        {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec},
        namespace=cluster.namespace,
    ).object


def pod_of(owner: Object, pod: PodBuilder) -> PodBuilder:
    metadata = owner["metadata"]
    return (
        pod.generate_name(f"{metadata['name']}-")
        .label("app", metadata["name"])
        .owner(owner["kind"], metadata["name"], api_version=owner["apiVersion"], uid=metadata["uid"])
    )


def full_node(cluster: Cluster) -> None:
    """One training node, its eight cards in use."""
    cluster.make_nodes(pool_node("node-1", "training"))
    cluster.create(training_pod("runs", gpus=8).node_name("node-1"))


MISTYPED = inference_pod("").annotate(TYPE, "trainning")


@pytest.mark.parametrize("kind", ["ReplicaSet", "Job"])
def test_a_refused_pod_gives_one_event_on_its_owner(cluster: Cluster, reporter: Webhook, kind: str) -> None:
    made = owner(cluster, kind)
    with pytest.raises(ApiError, match="Unsupported value"):
        cluster.create(pod_of(made, MISTYPED))
    settled(reporter)

    assert events_of(cluster) == {(kind, "web", "PlacementDenied"): [1]}
    described = cluster.kubectl("describe", kind, "web").stdout
    assert "Warning  PlacementDenied" in described
    assert f'annotations[{TYPE}]: Unsupported value: "trainning"' in described
    printed = cluster.kubectl("get", "events", "--sort-by=.lastTimestamp").stdout
    assert f"PlacementDenied   {kind.lower()}/web" in printed


def test_a_refused_pod_of_a_deployment_shows_on_the_deployment(cluster: Cluster, reporter: Webhook) -> None:
    """The controllers say it on the ReplicaSet only, and create the pod again and again."""
    cluster.control_plane.start_controller_manager()
    template = MISTYPED.label("app", "web").template()
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})

    wait_for(lambda: len(events_of(cluster)) >= 2, "Events on both")
    cluster.control_plane.stop_controller_manager()
    settled(reporter)

    counts = {(kind, reason): counts for (kind, _, reason), counts in events_of(cluster).items()}
    assert set(counts) == {("Deployment", "PlacementDenied"), ("ReplicaSet", "PlacementDenied")}
    refused = sum(record.outcome == "Denied" for record in reporter.world.records)
    assert list(counts.values()) == [[refused], [refused]]
    assert "Warning  PlacementDenied" in cluster.kubectl("describe", "deployment", "web").stdout


@pytest.mark.parametrize(("gpus", "reason"), [(1, "PlacementWaiting"), (16, "PlacementInfeasible")])
def test_an_admitted_pod_gives_one_event_on_the_pod(
    cluster: Cluster, reporter: Webhook, gpus: int, reason: str
) -> None:
    full_node(cluster)
    reporter.look_at(cluster)
    made = owner(cluster)
    pod = cluster.create(pod_of(made, training_pod("", gpus=gpus))).object
    settled(reporter)

    name = pod["metadata"]["name"]
    assert events_of(cluster) == {("Pod", name, reason): [1]}
    described = cluster.kubectl("describe", "pod", name).stdout
    assert f"Warning  {reason}" in described
    assert "0/1 nodes are available: 1 Insufficient nvidia.com/gpu." in described


def test_a_pod_without_an_owner_has_its_event_by_its_name(cluster: Cluster, reporter: Webhook) -> None:
    full_node(cluster)
    reporter.look_at(cluster)
    cluster.create(training_pod("bare"))
    cluster.create(training_pod("other", gpus=16))
    settled(reporter)

    assert events_of(cluster) == {
        ("Pod", "bare", "PlacementWaiting"): [1],
        ("Pod", "other", "PlacementInfeasible"): [1],
    }


def test_a_refused_pod_without_an_owner_gives_none(cluster: Cluster, reporter: Webhook) -> None:
    with pytest.raises(ApiError):
        cluster.create(MISTYPED.generate_name("bare-"))
    settled(reporter)

    assert events_of(cluster) == {}
    assert reporter.world.count("events_total", result="no_object") == 1


def test_a_dry_run_gives_none(cluster: Cluster, reporter: Webhook) -> None:
    full_node(cluster)
    reporter.look_at(cluster)
    cluster.create(training_pod("dry"), dry_run=True)
    with pytest.raises(ApiError):
        cluster.create(pod_of(owner(cluster), MISTYPED), dry_run=True)
    settled(reporter)

    assert events_of(cluster) == {}


def test_a_pod_that_another_webhook_changes_counts_once(cluster: Cluster, reporter: Webhook, tmp_path: Path) -> None:
    """The pod is Waiting in the first round; in the second, the other webhook has made it Infeasible."""
    full_node(cluster)
    reporter.look_at(cluster)
    folder = tmp_path / "other"
    folder.mkdir()
    other = World(policy=policy_with(keyDomain="other.example.com"))
    pod = training_pod("twice").annotate("other.example.com/workload-type", "inference")
    with running_in_thread(other, folder) as server:
        cluster.register_webhook(server.url, (folder / "ca.crt").read_text(), configuration="zz-other")
        cluster.create(pod)
        settled(reporter)

    assert [record.outcome for record in reporter.world.records][-2:] == ["Patched", "Unchanged"]
    assert events_of(cluster) == {("Pod", "twice", "PlacementInfeasible"): [1]}


def test_a_storm_of_equal_pods_gives_a_handful_of_events(cluster: Cluster, reporter: Webhook) -> None:
    full_node(cluster)
    reporter.look_at(cluster)
    made = owner(cluster)
    # It would try each pod, and has no part in this.
    cluster.control_plane.stop_scheduler()
    for _ in range(_STORM):
        cluster.client.create(pod_of(made, training_pod("")).obj(), namespace=cluster.namespace)
    settled(reporter)

    found = events_of(cluster)
    on_pods = [counts for (kind, _, _), counts in found.items() if kind == "Pod"]
    assert on_pods == [[1]] * len(on_pods)
    assert len(on_pods) <= 15
    assert found["ReplicaSet", "web", "PlacementWaiting"] == [_STORM - len(on_pods)]
    assert reporter.world.count("events_total", result="written") <= 30


def test_two_replicas_count_in_one_event(cluster: Cluster, tmp_path: Path, rights: Objects) -> None:
    made = owner(cluster)
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    with reporting(cluster, folders[0], rights) as first:
        with pytest.raises(ApiError):
            cluster.create(pod_of(made, MISTYPED))
        settled(first)
    assert first.world.events is not None
    source = ClientConfig(folders[0] / "service-account.json")
    world = World(events=EventRecorder(source.connect, Metrics(), "replica-b", QUICK))
    with running_in_thread(world, folders[1]) as server:
        cluster.register_webhook(
            server.url, (folders[1] / "ca.crt").read_text(), configuration="placement-webhook-of-b"
        )
        cluster.client.delete(
            "MutatingWebhookConfiguration", "placement-webhook", api_version="admissionregistration.k8s.io/v1"
        )
        cluster.settle_webhooks()
        for _ in range(2):
            with pytest.raises(ApiError):
                cluster.create(pod_of(made, MISTYPED))
        settled(Webhook(world, server, ""))

    assert events_of(cluster) == {("ReplicaSet", "web", "PlacementDenied"): [3]}


def test_without_the_right_admissions_work_and_a_metric_says_so(
    cluster: Cluster, tmp_path: Path, rights: Objects
) -> None:
    full_node(cluster)
    without = [rule for rule in rights if rule["resources"] != ["events"]]
    assert len(without) == len(rights) - 1
    with reporting(cluster, tmp_path, without) as webhook:
        webhook.look_at(cluster)
        pod = cluster.create(training_pod("bare")).object
        failed = wait_for(lambda: webhook.world.count("events_total", result="failed") or None, "a failure")

    assert failed == 1
    assert pod["spec"]["schedulerName"] == "volcano"
    assert events_of(cluster) == {}


def test_a_namespace_that_is_deleted_costs_no_other_its_events(cluster: Cluster, reporter: Webhook) -> None:
    """The API server answers 403 there, as without the right."""
    full_node(cluster)
    reporter.look_at(cluster)
    leaving = cluster.make_namespace()
    held = training_pod("held").spec().obj()
    held["metadata"] |= {"namespace": leaving, "finalizers": ["example.com/held"]}
    cluster.client.create(held)
    cluster.client.request("DELETE", f"/api/v1/namespaces/{leaving}")
    cluster.create(training_pod("stays"))
    settled(reporter)

    assert events_of(cluster) == {("Pod", "stays", "PlacementWaiting"): [1]}
    assert reporter.world.count("events_total", result="failed") == 1
    cluster.client.patch("Pod", "held", {"metadata": {"finalizers": None}}, namespace=leaving)
