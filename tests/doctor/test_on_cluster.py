"""doctor finds each fault that is planted on the real control plane, and none on a healthy installation."""

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from certs.pki import issue_ca
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.webhooks import ADMISSION, webhook_configuration
from tests.docs.markdown import ROOT, blocks
from tests.doctor.installed import CONFIGURATION, NAMESPACE, PRODUCT, USAGE, Installed, installed, replaced
from tests.support.builders import make_pod
from tests.support.manifests import Object, read
from tests.support.service_account import RBAC, limited_to
from webhook.doctor.registry import CHECKS
from webhook.kube.documents import parse

Planted = AbstractContextManager[None]

WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
NOWHERE = "https://127.0.0.1:1/mutate"
TRAINING_TAINT, HYBRID_TAINT = f"{USAGE}=training:NoSchedule", f"{USAGE}=hybrid:NoSchedule"
PRODUCT_TAINT = f"{PRODUCT}=NVIDIA-H20:NoSchedule"


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    cluster = Cluster(control_plane)
    try:
        with installed(cluster, tmp_path_factory.mktemp("installation")) as made:
            yield made
    finally:
        cluster.remove_everything()


def in_each_webhook(made: Installed, field: str, value: object, *, settled: bool = False) -> Planted:
    return made.webhooks(*(replaced(field, value, index) for index in range(3)), settled=settled)


def service_without_endpoints(made: Installed) -> Planted:
    found = made.client.get("MutatingWebhookConfiguration", CONFIGURATION, api_version=ADMISSION)
    service = {"namespace": NAMESPACE, "name": "placement-webhook", "port": 443, "path": "/mutate"}
    client = {"service": service, "caBundle": found["webhooks"][0]["clientConfig"]["caBundle"]}
    return in_each_webhook(made, "clientConfig", client)


def other_ca(made: Installed) -> Planted:
    bundle = base64.b64encode(issue_ca(now=datetime.now(UTC)).certificate).decode()
    return in_each_webhook(made, "clientConfig/caBundle", bundle)


def early_peer(made: Installed) -> Planted:
    fields = {"namespaceSelector": {"matchLabels": {"is": "nowhere"}}, "reinvocationPolicy": "Never"}
    name = "0-volcano-admission-service-pods-mutate"
    return made.made(webhook_configuration(name, "https://127.0.0.1:1/", "", fields))


def skewed_lease(made: Installed) -> Planted:
    renewed = datetime.now(UTC) - timedelta(hours=1)
    spec = {"holderIdentity": "node-1", "renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%fZ}"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "node-1"}, "spec": spec}
    return made.made(lease, "kube-node-lease")


def full_quota(made: Installed) -> Planted:
    scope = {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}
    spec = {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [scope]}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": spec}
    return made.made(quota, made.cluster.namespace)


def without_the_right_to_nodes(made: Installed) -> Planted:
    operation = {"op": "replace", "path": "/rules/0/resources", "value": ["pods", "namespaces"]}
    return made.changed("ClusterRole", NAMESPACE, [operation], RBAC)


def stopped_controller(made: Installed) -> Planted:
    (controller,) = (each for each in read("overlays/self-managed/certs-controller.yaml"))
    controller["spec"]["replicas"] = 0
    return made.made(controller, NAMESPACE)


def whitelist(made: Installed) -> Planted:
    patch = {"metadata": {"annotations": {WHITELIST: '[{"key": "a"}]'}}}
    return made.changed("Namespace", made.cluster.namespace, patch)


@contextmanager
def nodes_in_maintenance(made: Installed) -> Iterator[None]:
    with ExitStack() as stack:
        for name, taint in (("training-1", TRAINING_TAINT), ("hybrid-1", HYBRID_TAINT)):
            stack.enter_context(made.node(name, taints(taint, PRODUCT_TAINT, "maintenance=now:NoSchedule")))
        yield


def training(**fields: Any) -> dict[str, Any]:
    return {"training": {"nodeUsage": {"allow": ["training", "hybrid"]}, **fields}}


def taints(*texts: str) -> Object:
    parts = (text.replace(":", "=").split("=") for text in texts)
    return {"spec": {"taints": [{"key": key, "value": value, "effect": effect} for key, value, effect in parts]}}


def labels(**given: str | None) -> Object:
    return {"metadata": {"labels": {key.replace("__", "/"): value for key, value in given.items()}}}


def replicas(count: int) -> Callable[[Installed], Planted]:
    return lambda made: made.changed("Deployment", NAMESPACE, {"spec": {"replicas": count}}, "apps/v1", NAMESPACE)


def webhook(field: str, value: object) -> Callable[[Installed], Planted]:
    return lambda made: made.webhooks(replaced(field, value))


def removed(path: str) -> Callable[[Installed], Planted]:
    return lambda made: made.webhooks({"op": "remove", "path": f"/webhooks/{path}"})


def policy(**spec: Any) -> Callable[[Installed], Planted]:
    return lambda made: made.policy(**spec)


def training_node(patch: Object) -> Callable[[Installed], Planted]:
    return lambda made: made.node("training-1", patch)


# The checks that find the fault, and the fault. The servers do not read a changed ConfigMap.
PLANTED: Mapping[str, tuple[set[str], Callable[[Installed], Planted]]] = {
    "service": ({"service"}, service_without_endpoints),
    "ca-bundle": (
        {"ca-bundle", "certificate"},
        lambda made: in_each_webhook(made, "clientConfig/caBundle", base64.b64encode(b"\n").decode()),
    ),
    "certificate": ({"certificate"}, other_ca),
    "certs-controller": ({"certs-controller"}, stopped_controller),
    "failure-policy": ({"failure-policy"}, replicas(1)),
    "selectors": ({"selectors"}, webhook("namespaceSelector", {})),
    "order": ({"order"}, early_peer),
    "reinvocation": ({"reinvocation"}, webhook("reinvocationPolicy", "Never")),
    "match-conditions": ({"match-conditions"}, removed("0/matchConditions/0")),
    "timeouts": ({"timeouts"}, webhook("timeoutSeconds", 30)),
    "installed": ({"installed"}, removed("1")),
    "policy": ({"policy"}, policy(productAffinity=False)),
    "rights": ({"rights"}, without_the_right_to_nodes),
    "clock": ({"clock"}, skewed_lease),
    "schedulers": ({"schedulers", "policy"}, policy(allowedSchedulers=["volcano", "gone"])),
    "backends": ({"backends", "policy"}, policy(queueing="kueue")),
    "priority-classes": ({"priority-classes", "policy"}, policy(workloadTypes=training(priorityClassName="gone"))),
    "queues": ({"queues", "policy"}, policy(namespaceLimits=[{"namespaces": ["team-a"], "queues": ["gone"]}])),
    "tolerations-whitelist": ({"tolerations-whitelist"}, whitelist),
    "cross-namespace-quotas": ({"cross-namespace-quotas"}, full_quota),
    "pools": ({"pools", "policy"}, policy(workloadTypes={**training(), "batch": {"nodeUsage": {"allow": ["batch"]}}})),
    "workload-types": ({"workload-types"}, nodes_in_maintenance),
    "node-usage": ({"node-usage"}, training_node(taints(PRODUCT_TAINT))),
    "node-products": ({"node-products"}, training_node(labels(**{PRODUCT: None}))),
    "node-spelling": ({"node-spelling"}, training_node(labels(**{"maip.mxsf.io/node-usage": "training"}))),
}
# A pod on trial shows whether the API server acts on the planted fault yet, and 75 reviews of rights take their time.
SLOW = {"answer", "rights"}
# Found elsewhere in this file, or not to be planted here: the control plane has the newest release.
OTHERS = {"readable", "answer", "endpoint", "missed-pods", "release"}


def test_nothing_is_found_in_a_healthy_installation(installation: Installed) -> None:
    printed = installation.doctor()
    assert printed["findings"] == []
    assert printed["healthy"] is True
    assert printed["checks"] == [each.id for each in CHECKS]


def test_every_check_is_planted() -> None:
    assert PLANTED.keys() | OTHERS == {each.id for each in CHECKS}


@pytest.mark.parametrize("check", PLANTED)
def test_planted_fault_is_found(installation: Installed, check: str) -> None:
    expected, plant = PLANTED[check]
    with plant(installation):
        assert installation.faults(*(f"--skip={each}" for each in sorted(SLOW - {check}))) == expected


def test_pods_that_are_created_while_the_webhook_is_away_are_found(installation: Installed) -> None:
    pod = make_pod("missed").annotate("maip.mxsf.io/workload-type", "training").obj()
    with in_each_webhook(installation, "clientConfig/url", NOWHERE, settled=True):
        installation.client.create(pod, namespace=installation.cluster.namespace)
        assert installation.faults("--skip=rights") == {"answer", "endpoint", "missed-pods"}
        with installation.webhooks(replaced("failurePolicy", "Fail"), settled=True):
            (answer,) = installation.doctor("--check", "answer")["findings"]
            assert "pods are refused (failurePolicy Fail): failed to call webhook" in answer["what"]
    assert installation.faults("--skip=rights") == {"missed-pods"}
    installation.client.delete("Pod", "missed", namespace=installation.cluster.namespace)


def test_a_certificate_for_other_names_is_found_at_a_given_endpoint(installation: Installed) -> None:
    """As with a port-forward: the server is called there, by the name of the Service."""
    with service_without_endpoints(installation):
        printed = installation.doctor("--check", "certificate", "--endpoint", installation.address)
    (finding, *others) = printed["findings"]
    assert others == []
    assert "mismatch" in finding["what"]
    assert finding["what"].endswith("(valid for localhost, 127.0.0.1)")


def test_a_policy_that_is_not_the_one_in_force_is_found(installation: Installed, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\nmetadata: {name: other}\n")
    (finding,) = installation.doctor("--policy", file, "--check", "policy")["findings"]
    assert "the given file is other@" in finding["what"]


def test_the_documented_rights_are_enough(installation: Installed, tmp_path: Path) -> None:
    (role,) = (each for each in blocks(ROOT / "docs" / "doctor.md", "yaml") if "ClusterRole" in each.text)
    (document,) = parse(role.text, role.place)
    (shipped,) = (each for each in read("base/rbac.yaml") if each["kind"] == "ClusterRole")
    with limited_to(installation.cluster, tmp_path, [*shipped["rules"], *document.content["rules"]]) as kubeconfig:
        assert installation.doctor(kubeconfig=kubeconfig)["findings"] == []


def test_what_may_not_be_read_is_a_finding_for_each_source(installation: Installed, tmp_path: Path) -> None:
    with limited_to(installation.cluster, tmp_path, []) as kubeconfig:
        findings = installation.doctor(kubeconfig=kubeconfig)["findings"]
    assert {each["check"] for each in findings} == {"readable"}
    assert {each["severity"] for each in findings} == {"warning"}
    nodes = next(each for each in findings if each["where"] == "Nodes")
    assert 'cannot list resource "nodes"' in nodes["what"]
    assert nodes["remedy"].startswith("grant the right: list nodes")
