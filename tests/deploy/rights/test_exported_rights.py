"""The rights of deploy/overlays/exported: each is needed and enough, and no tenant has one of them."""

import json
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from placement_doctor.cluster import Right
from placement_doctor.rights import access_review
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import policy_with
from tests.support.objects.manifests import read
from tests.support.on_cluster.exported import ADMISSION, NAME, Replica, exported, run, stored
from tests.support.on_cluster.service_account import RBAC, token_kubeconfig
from tests.support.servers.live import until
from webhook.kube.api.admission_policy import EXPORT_LEASE, PLURALS
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

NAMESPACE, OWNER = "placement-webhook", "placement-webhook-exported"
EVERYTHING = read("overlays/exported/rbac.yaml")
POLICIES = "mutatingadmissionpolicies"
NEEDED = [
    *((verb, POLICIES) for verb in ("list", "watch", "create", "patch", "delete")),
    ("get", "clusterroles"),
    *((verb, "leases") for verb in ("get", "create", "patch")),
]


@pytest.fixture(autouse=True)
def _nothing_left(cluster: Cluster) -> Iterator[None]:
    cluster.make_namespace(NAMESPACE)
    (account,) = read("base/serviceaccount.yaml")
    cluster.client.create(account, namespace=NAMESPACE)
    yield
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        cluster.client.delete(kind, OWNER, api_version=RBAC)


@contextmanager
def granted(cluster: Cluster, folder: Path, verb: str = "", resource: str = "") -> Iterator[Path]:
    """Yield the kubeconfig of the deployed service account, without the right to `verb` this resource."""
    for content in EVERYTHING:
        rules = [
            {**rule, "resources": [each], "verbs": [one for one in rule["verbs"] if (one, each) != (verb, resource)]}
            for rule in content.get("rules", ())
            for each in rule["resources"]
        ]
        changed = {"rules": [each for each in rules if each["verbs"]]} if rules else {}
        cluster.client.create(content | changed, namespace=NAMESPACE)
    of_lease = Right("coordination.k8s.io", "leases", "patch" if verb == "get" else "get", True, name=EXPORT_LEASE)
    of_kind = Right("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", "list", True)
    for each in (of_lease._replace(namespace=NAMESPACE), of_kind):
        wait_for(partial(is_allowed, cluster, each), "the roles to be in force")
    yield token_kubeconfig(cluster, folder, NAMESPACE, NAMESPACE)


def is_allowed(cluster: Cluster, right: Right) -> bool:
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    asked = access_review(right._replace(account=f"{NAMESPACE}/{NAMESPACE}"))
    allowed: bool = cluster.client.request("POST", path, body=asked).object["status"]["allowed"]
    return allowed


def refusals(logs: Sequence[MutableMapping[str, Any]]) -> list[str]:
    return [str(each["error"]) for each in logs if ": 403 " in str(each.get("error"))]


def lifetime(cluster: Cluster, kubeconfig: Path) -> list[str]:
    """Export a policy, change it and remove it; return what the API server refuses."""
    replica = Replica(kubeconfig, NAMESPACE, exported, owner=OWNER)
    policies = (replica.policies.current(), policy_with(productAffinity=False), policy_with(mode="shadow"))
    with capture_logs() as logs:

        def is_done(policy: Policy) -> bool:
            wanted = {policy.identity} if policy.spec.mode == "enforce" else set()
            return identities(cluster) == wanted or bool(refusals(logs))

        async def live() -> None:
            async with replica.running():
                for policy in policies:
                    replica.policies.replace(policy)
                    await until(partial(is_done, policy))

        run(live)
    return refusals(logs)


def identities(cluster: Cluster) -> set[str]:
    return {each["metadata"]["annotations"]["maip.mxsf.io/exported"] for each in stored(cluster.client).values()}


@pytest.mark.parametrize(("verb", "resource"), [("", ""), *NEEDED])
def test_each_right_is_needed_and_all_are_enough(cluster: Cluster, tmp_path: Path, verb: str, resource: str) -> None:
    with granted(cluster, tmp_path, verb, resource) as kubeconfig:
        found = lifetime(cluster, kubeconfig)

    assert bool(found) is bool(verb), found
    assert all(f'cannot {verb} resource "{resource}"' in each for each in found), found


def test_objects_of_other_names_may_not_be_written(cluster: Cluster, tmp_path: Path) -> None:
    with granted(cluster, tmp_path) as kubeconfig:
        for kind in PLURALS:
            content = {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": "other"}, "spec": {}}
            file = tmp_path / "other.json"
            file.write_text(json.dumps(content))
            for words in (("create", "-f", file), ("apply", "--server-side", "-f", file), ("delete", kind, "other")):
                done = cluster.kubectl(*map(str, words), f"--kubeconfig={kubeconfig}", check=False)
                assert "forbidden" in done.stderr.lower(), done.stderr


def test_a_tenant_may_neither_read_nor_write_the_exported_policy(cluster: Cluster, tmp_path: Path) -> None:
    """With the role `edit`, or `admin`, of its namespace."""
    # The rules of `edit` and `admin` are gathered from other roles.
    cluster.control_plane.start_controller_manager("clusterrole-aggregation-controller")
    wait_for(lambda: cluster.client.get("ClusterRole", "admin", api_version=RBAC).get("rules"), "the role admin")
    for content in exported(PolicySet(policy_with())).objects:
        cluster.client.create(content)
    cluster.kubectl("create", "serviceaccount", "tenant")
    account = f"--serviceaccount={cluster.namespace}:tenant"
    for role in ("edit", "admin"):
        cluster.kubectl("create", "rolebinding", role, f"--clusterrole={role}", account)
    kubeconfig = token_kubeconfig(cluster, tmp_path, cluster.namespace, "tenant")

    def asked(*words: str) -> str:
        done = cluster.kubectl(*words, f"--kubeconfig={kubeconfig}", check=False)
        return done.stdout + done.stderr

    wait_for(lambda: "yes" in asked("auth", "can-i", "create", "pods"), "the rights of the tenant")
    for plural in (f"{each}.admissionregistration.k8s.io" for each in PLURALS.values()):
        for words in (
            ("get", plural, NAME),
            ("patch", plural, NAME, "--type=merge", "-p", '{"spec":{"failurePolicy":"Fail"}}'),
            ("delete", plural, NAME),
        ):
            assert "forbidden" in asked(*words).lower(), words
        assert asked("auth", "can-i", "create", plural).split()[0] == "no"
    assert asked("auth", "can-i", "patch", f"leases/{EXPORT_LEASE}", f"--namespace={NAMESPACE}").split()[0] == "no"
    assert len(stored(cluster.client)) == 2
