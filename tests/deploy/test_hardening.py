"""The optional ValidatingAdmissionPolicy: what a user may no longer do, and who still may."""

from collections.abc import Iterator

import pytest

from tests.controlplane.client import ApiError, Client
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.builders import PodBuilder, make_pod
from tests.support.manifests import read, read_one

POLICY, BINDING = read("hardening/validatingadmissionpolicy.yaml")
BOUND = make_pod("bound").node_name("node-1")
OF_A_DAEMON_SET = make_pod("owned").owner("DaemonSet", "network")


def refusal(client: Client, namespace: str, pod: PodBuilder) -> str:
    """Why `pod` may not be created; empty where it may."""
    try:
        client.create(pod.obj(), namespace=namespace, dry_run=True)
    except ApiError as error:
        return f"{error.code} {error.message}"
    return ""


@pytest.fixture
def hardened(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster in which the policy is in force."""
    for content in (POLICY, BINDING):
        cluster.client.create(content)
    try:
        jane = user(cluster)
        wait_for(lambda: "must not be set" in refusal(jane, cluster.namespace, BOUND), "the policy being in force")
        yield cluster
    finally:
        for content in (BINDING, POLICY):
            kind, api_version = content["kind"], content["apiVersion"]
            cluster.client.delete(kind, content["metadata"]["name"], api_version=api_version)


def user(cluster: Cluster) -> Client:
    """Somebody who may create pods in the test's namespace."""
    rbac, named = "rbac.authorization.k8s.io", {"metadata": {"name": "jane"}}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]
    cluster.create({"apiVersion": f"{rbac}/v1", "kind": "Role", **named, "rules": rules})
    role = {"apiGroup": rbac, "kind": "Role", "name": "jane"}
    subject = {"apiGroup": rbac, "kind": "User", "name": "jane"}
    cluster.create({"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", **named, "roleRef": role, "subjects": [subject]})
    jane = cluster.client.impersonating("jane", ["system:authenticated"])
    wait_for(lambda: not refusal(jane, cluster.namespace, make_pod("plain")), "the right to create pods")
    return jane


def test_what_a_user_may_no_longer_do(hardened: Cluster) -> None:
    jane = hardened.client.impersonating("jane", ["system:authenticated"])
    reported = {name: refusal(jane, hardened.namespace, pod) for name, pod in PODS.items()}

    assert reported["bound"].startswith("403 ")
    assert "spec.nodeName must not be set, because such a pod passes by the scheduler" in reported["bound"]
    assert reported["owned"].startswith("403 ")
    assert "only the controller of DaemonSets may create a pod that a DaemonSet owns" in reported["owned"]
    assert (reported["plain"], reported["of a Job"]) == ("", "")


PODS = {
    "bound": BOUND,
    "owned": OF_A_DAEMON_SET,
    "plain": make_pod("plain"),
    "of a Job": make_pod("j").owner("Job", "train"),
}


@pytest.mark.parametrize("pod", [BOUND, OF_A_DAEMON_SET], ids=["bound", "of a DaemonSet"])
def test_controllers_and_administrators_go_on(hardened: Cluster, pod: PodBuilder) -> None:
    controller = hardened.client.impersonating("system:serviceaccount:kube-system:daemon-set-controller")

    assert refusal(controller, hardened.namespace, pod) == ""
    assert refusal(hardened.client, hardened.namespace, pod) == ""


def test_it_is_for_the_namespaces_of_the_webhook() -> None:
    webhook, *_ = read_one("base/mutatingwebhookconfiguration.yaml")["webhooks"]
    assert BINDING["spec"]["matchResources"]["namespaceSelector"] == webhook["namespaceSelector"]
    assert BINDING["spec"]["policyName"] == POLICY["metadata"]["name"]
