"""The rights of the webhook's service account: with its own token it does all its work, and each rule is needed."""

import asyncio
import re
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from certs.registration import Target
from placement_doctor.cluster import Right
from placement_doctor.rights import needed_rights
from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.support.objects.builders import make_pod
from tests.support.objects.manifests import read
from tests.support.objects.policy_objects import policy, served_policies
from tests.support.on_cluster.service_account import RBAC, token_kubeconfig
from tests.support.servers.live import TIMING, until
from tests.support.servers.server import Clock, connections_gone, policies_of, review_bytes
from webhook.admission.policy_cases import parse_tested_policy
from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.cache.resources import REQUIRED_RESOURCES, RESOURCES
from webhook.events.recorder import Clocks, EventRecorder
from webhook.events.report import Report
from webhook.kube.api.admission import parse_review
from webhook.policy.loader import built_in_policy
from webhook.policy.spec.document import API_VERSION, KIND
from webhook.runtime.metrics import Metrics
from webhook.serving.clock import rfc3339_now
from webhook.serving.policies.cluster_policies import ClusterPolicies
from webhook.watch.api_server import ClientConfig
from webhook.watch.live import LiveCluster

NAMESPACE = NAME = "placement-webhook"
ROLE, BINDING = read("base/rbac.yaml")
RULES: list[Object] = ROLE["rules"]
CONFIGURATION = Target().configuration
READING = [rule for rule in RULES if "list" in rule["verbs"] or rule.get("resourceNames") == [CONFIGURATION]]
WRITING = [rule for rule in RULES if rule not in READING]
POLICY_ROLE, POLICY_BINDING = read("overlays/crd/rbac.yaml")
GROUPS = [group for rule in RULES for group in rule["apiGroups"]]
REQUIRED = {each.plural for each in REQUIRED_RESOURCES}


def rights(rules: Sequence[Object]) -> set[Right]:
    return {
        Right(group, resource, verb, is_required=True, name=name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def without(verb: str, resource: str, rules: Sequence[Object]) -> list[Object]:
    """Return the rules without this right."""
    single = [{**rule, "verbs": [each]} for rule in rules for each in rule["verbs"]]
    left = [rule for rule in single if (rule["verbs"], rule["resources"]) != ([verb], [resource])]
    assert len(left) == len(single) - bool(verb)
    return left


@contextmanager
def granted(
    cluster: Cluster, folder: Path, rules: Sequence[Object], role: Object = ROLE, binding: Object = BINDING
) -> Iterator[Path]:
    """Yield a kubeconfig with a token of the deployed service account, whose role has these rules."""
    cluster.make_namespace(NAMESPACE)
    for content in (*read("base/serviceaccount.yaml"), {**role, "rules": list(rules)}, binding):
        cluster.client.create(content, namespace=NAMESPACE if content["kind"] == "ServiceAccount" else None)
    asked, wanted = rights(role["rules"]), rights(rules)
    wait_for(lambda: asked & rights(rules_in_force(cluster)) == wanted, "the role to be in force")
    try:
        yield token_kubeconfig(cluster, folder, NAMESPACE, NAME)
    finally:
        for kind in ("ClusterRoleBinding", "ClusterRole"):
            cluster.client.delete(kind, role["metadata"]["name"], api_version=RBAC)


def rules_in_force(cluster: Cluster) -> list[Object]:
    """Return the rules of the service account, by which the API server authorizes it."""
    account = cluster.client.impersonating(f"system:serviceaccount:{NAMESPACE}:{NAME}")
    asked = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "metadata": {},
        "spec": {"namespace": NAMESPACE},
    }
    found: list[Object] = account.create(asked).object["status"]["resourceRules"]
    return found


_REFUSED = re.compile(rf"GET \S*?/apis?/(?:([^/ ]+)/)?v\d\w*/([a-z]+)(?:/{CONFIGURATION})?: 403")


def refused(logs: Sequence[MutableMapping[str, Any]]) -> set[str]:
    """Return the resources that the API server forbade to read, by the log, as `pods` and `replicasets.apps`."""
    errors = (str(entry.get("error")) for entry in logs)
    return {full_name(*found.groups()) for error in errors if (found := _REFUSED.search(error))}


def full_name(group: str | None, resource: str) -> str:
    return f"{resource}.{group}" if group else resource


async def read_all(kubeconfig: Path, logs: Sequence[MutableMapping[str, Any]]) -> None:
    """Follow the cluster until each resource is in the view, or is refused or not served."""
    configurations: list[Any] = []

    class Follower(ClusterFollower):
        def configuration_changed(self, configuration: Any) -> None:
            configurations.append(configuration)

    source = ClientConfig(kubeconfig)
    live = LiveCluster(source.connect, Follower(), timing=TIMING, webhook_configuration=CONFIGURATION)
    following = asyncio.create_task(live.run())

    def is_settled() -> bool:
        if not live.is_synced:
            return refused(logs) >= REQUIRED
        optional = (each for each in live._reflectors if not each.resource.is_required)
        has_evidence = live.snapshot().scheduler_evidence is not None or "leases.coordination.k8s.io" in refused(logs)
        has_polled = has_evidence and bool(configurations)
        return has_polled and all(each.is_refused or each.current_as_of_seconds is not None for each in optional)

    try:
        await until(is_settled)
        assert live.has_namespaces is ("namespaces" not in refused(logs))
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await connections_gone()


def test_the_deployed_rights_are_those_that_are_needed_and_no_more() -> None:
    deployed = [
        (group, resource, verb)
        for rule in RULES
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]
    needed = {(each.group, each.resource, each.verb) for each in needed_rights(GROUPS)}
    # A rule for two groups names the resources of both.
    groups_of = {(each.api_version.rpartition("/")[0], each.plural) for each in RESOURCES}
    named = {each for each in deployed if each[2] not in ("list", "watch") or each[:2] in groups_of}
    assert named | {("coordination.k8s.io", "leases", "list")} == needed
    assert {resource for _, resource, _ in deployed} == {resource for _, resource, _ in needed}


def test_the_deployed_rights_are_enough(cluster: Cluster, tmp_path: Path) -> None:
    with granted(cluster, tmp_path, RULES) as kubeconfig, capture_logs() as logs:
        asyncio.run(read_all(kubeconfig, logs))

    assert refused(logs) == set()


@pytest.mark.parametrize("is_required", [True, False])
def test_each_rule_is_needed(cluster: Cluster, tmp_path: Path, is_required: bool) -> None:
    """Rights only add up, so several rules are missing at once: what each of them grants is refused."""
    missing = [rule for rule in READING if (not REQUIRED.isdisjoint(rule["resources"])) is is_required]
    others = [rule for rule in RULES if rule not in missing]
    with granted(cluster, tmp_path, others) as kubeconfig, capture_logs() as logs:
        asyncio.run(read_all(kubeconfig, logs))

    assert refused(logs) == {*granted_by(missing)}


def test_each_resource_is_in_one_rule() -> None:
    assert len(granted_by(READING)) == len({*granted_by(READING)})


def granted_by(rules: Sequence[Object]) -> list[str]:
    return [full_name(group, each) for rule in rules for group in rule["apiGroups"] for each in rule["resources"]]


@pytest.fixture(scope="module")
def policy_kind(control_plane: ControlPlane) -> Iterator[None]:
    with served_policies(control_plane):
        yield


async def followed_policies(
    cluster: Cluster, kubeconfig: Path, logs: Sequence[MutableMapping[str, Any]]
) -> tuple[str, str]:
    """Follow the PlacementPolicies of a cluster: one exists at the start, another is created later.

    Return what cannot be done, and why the replica is not ready.
    """
    policies = policies_of(built_in_policy())
    connect = ClientConfig(kubeconfig).connect
    source = ClusterPolicies(connect, policies, parse_tested_policy, rfc3339_now)

    def fault() -> str:
        unwritten = (str(log["error"]) for log in logs if log["event"].startswith("the status of a PlacementPolicy"))
        return policies.note() or next(unwritten, "")

    def is_settled(name: str) -> bool:
        return bool(fault() or cluster.client.get(KIND, name, api_version=API_VERSION).get("status"))

    async with source.polled(poll_seconds=60):
        for name in ("one", "two"):
            cluster.client.create(policy(name, name, queueing="kueue"))
            await until(partial(is_settled, name))
        in_force = [each.name for each in policies.in_force().others]
    await connections_gone()
    for name in ("one", "two"):
        cluster.client.delete(KIND, name, api_version=API_VERSION)
    assert fault() or in_force == ["one", "two"]
    return fault(), source.unready_reason()


@pytest.mark.usefixtures("policy_kind")
@pytest.mark.parametrize(
    ("verb", "resource", "fault"),
    [
        ("", "", ""),
        ("list", "placementpolicies", "the PlacementPolicies of the cluster cannot be read"),
        ("watch", "placementpolicies", "the PlacementPolicies of the cluster cannot be read"),
        ("patch", "placementpolicies/status", 'cannot patch resource "placementpolicies/status"'),
    ],
)
def test_each_right_on_policies_is_needed(
    cluster: Cluster, tmp_path: Path, verb: str, resource: str, fault: str
) -> None:
    rules = without(verb, resource, POLICY_ROLE["rules"])
    with granted(cluster, tmp_path, rules, POLICY_ROLE, POLICY_BINDING) as kubeconfig, capture_logs() as logs:
        found, unready = asyncio.run(followed_policies(cluster, kubeconfig, logs))

    assert fault in found
    assert bool(found) is bool(fault)
    # Without the right to watch, the objects have been listed once.
    assert unready == (found.partition(": ")[2] if verb == "list" else "")


async def counted_denials(cluster: Cluster, kubeconfig: Path) -> dict[str, int]:
    """Report two denied pods of a ReplicaSet of a Deployment, one after the other; return the counts of the Events."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
    template = make_pod("").label("app", "web").gpu(1).template()
    replica_set = cluster.create(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web-1", "ownerReferences": [owner]},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
        }
    ).object
    pod = make_pod("").generate_name("web-1-").owner("ReplicaSet", "web-1", uid=replica_set["metadata"]["uid"]).obj()
    clock = Clock()

    async def sleep(seconds: float) -> None:
        clock.seconds += seconds

    clocks = Clocks(clock, clock, sleep)
    recorder = EventRecorder(ClientConfig(kubeconfig).connect, Metrics(), "replica-a", clocks)
    for _ in range(2):
        request = parse_review(review_bytes(pod, namespace=cluster.namespace))
        recorder.report(request, Report("PlacementDenied", "a pod is refused: no such type"), built_in_policy())
        while not recorder.is_idle:
            await sleep(1.0)
            await recorder.write_due()
    await connections_gone()
    events = cluster.client.list("Event", cluster.namespace, field_selector="source=placement-webhook")
    return {each["involvedObject"]["kind"]: each["count"] for each in events}


@pytest.mark.parametrize(
    ("verb", "resource", "counts"),
    [
        ("", "", {"ReplicaSet": 2, "Deployment": 2}),
        ("create", "events", {}),
        ("patch", "events", {"ReplicaSet": 1, "Deployment": 1}),
        ("get", "replicasets", {"ReplicaSet": 2}),
    ],
)
def test_each_right_for_events_is_needed(
    cluster: Cluster, tmp_path: Path, verb: str, resource: str, counts: dict[str, int]
) -> None:
    with (
        granted(cluster, tmp_path, without(verb, resource, WRITING), {**ROLE, "rules": WRITING}) as kubeconfig,
        capture_logs() as logs,
    ):
        assert asyncio.run(counted_denials(cluster, kubeconfig)) == counts

    refusals = [str(log["error"]) for log in logs if log["event"] == "events cannot be written"]
    assert bool(refusals) is (resource == "events")
    assert all("403" in each and f'cannot {verb} resource "events"' in each for each in refusals)


def test_each_rule_is_tried() -> None:
    assert rights(READING) | rights(WRITING) == rights(RULES)
    assert {(each.verb, each.resource) for each in rights(WRITING)} == {
        ("create", "events"),
        ("patch", "events"),
        ("get", "replicasets"),
        ("get", "configmaps"),
    }
    assert {(each.verb, each.resource) for each in rights(POLICY_ROLE["rules"])} == {
        ("list", "placementpolicies"),
        ("watch", "placementpolicies"),
        ("patch", "placementpolicies/status"),
    }
