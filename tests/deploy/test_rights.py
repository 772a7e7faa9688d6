"""The rights of the webhook's service account: with its own token it reads everything, and each rule is needed.

The rules for Events are needed by `tests/acceptance/test_events.py`, which runs with the shipped rules.
"""

import asyncio
import re
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.live import TIMING, until
from tests.support.manifests import read
from tests.support.server import connections_gone
from tests.support.service_account import RBAC, token_kubeconfig
from webhook.cluster.cache.resources import REQUIRED_RESOURCES, RESOURCES
from webhook.doctor.installation import Right
from webhook.doctor.rights import access_review, needed_rights
from webhook.watch.api_server import ClientConfig
from webhook.watch.live import LiveCluster

NAMESPACE = NAME = "placement-webhook"
ROLE, BINDING = read("base/rbac.yaml")
RULES: list[Object] = ROLE["rules"]
READING = [rule for rule in RULES if "list" in rule["verbs"]]
GROUPS = [group for rule in RULES for group in rule["apiGroups"]]
REQUIRED = {each.plural for each in REQUIRED_RESOURCES}


@contextmanager
def granted(cluster: Cluster, folder: Path, rules: Sequence[Object]) -> Iterator[Path]:
    """Yield a kubeconfig with a token of the deployed service account, whose role has these rules."""
    cluster.make_namespace(NAMESPACE)
    for content in (*read("base/serviceaccount.yaml"), {**ROLE, "rules": list(rules)}, BINDING):
        cluster.client.create(content, namespace=NAMESPACE if content["kind"] == "ServiceAccount" else None)
    wait_for(lambda: all(is_allowed(cluster, each) is (each in rules) for each in READING), "the role to be in force")
    try:
        yield token_kubeconfig(cluster, folder, NAMESPACE, NAME)
    finally:
        for kind in ("ClusterRoleBinding", "ClusterRole"):
            cluster.client.delete(kind, NAME, api_version=RBAC)


def is_allowed(cluster: Cluster, rule: Object) -> bool:
    """Return whether the service account has the first right of the rule."""
    right = Right(rule["apiGroups"][0], rule["resources"][0], rule["verbs"][0], is_required=True)
    path, asked = "/apis/authorization.k8s.io/v1/subjectaccessreviews", access_review(right, NAMESPACE, NAME)
    allowed: bool = cluster.client.request("POST", path, body=asked).object["status"]["allowed"]
    return allowed


def refused(logs: Sequence[MutableMapping[str, Any]]) -> set[str]:
    """Return the resources that the API server forbade to read, by the log."""
    errors = (str(entry.get("error")) for entry in logs)
    return {found.group(1) for error in errors if (found := re.search(r"GET \S+/([a-z]+): 403", error))}


async def read_all(kubeconfig: Path, logs: Sequence[MutableMapping[str, Any]]) -> None:
    """Follow the cluster until each resource is in the view, or is refused or not served."""
    live = LiveCluster(ClientConfig(kubeconfig).connect, timing=TIMING)
    following = asyncio.create_task(live.run())

    def is_settled() -> bool:
        if not live.is_synced:
            return refused(logs) >= REQUIRED
        optional = (each for each in live._reflectors if not each.resource.is_required)
        has_evidence = live.snapshot().scheduler_evidence is not None or "leases" in refused(logs)
        return has_evidence and all(each.is_refused or each.current_as_of_seconds is not None for each in optional)

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


@pytest.mark.parametrize("rule", READING, ids=lambda rule: ", ".join(rule["resources"][:3]))
def test_each_rule_is_needed(cluster: Cluster, tmp_path: Path, rule: Object) -> None:
    others = [each for each in RULES if each is not rule]
    with granted(cluster, tmp_path, others) as kubeconfig, capture_logs() as logs:
        asyncio.run(read_all(kubeconfig, logs))

    assert refused(logs) == set(rule["resources"])
