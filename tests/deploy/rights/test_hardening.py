"""The optional ValidatingAdmissionPolicies: what a user may no longer do, and who still may."""

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from certs.registration import Target, manifest
from tests.controlplane.client import ApiError, Client
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import DOMAIN, PRODUCT, TYPE, USAGE
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.manifests import Object, read, read_one
from webhook.kube.workloads.workload_kinds import QUEUE_KEYS
from webhook.policy.loader import built_in_policy

KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
POD_POLICIES = ("validatingadmissionpolicy", "queue-keys", "tolerations")
BOUND = make_pod("bound").node_name("node-1")
OF_A_DAEMON_SET = make_pod("owned").owner("DaemonSet", "network")


def refusal(client: Client, namespace: str, pod: PodBuilder) -> str:
    """Why `pod` may not be created; empty where it may."""
    try:
        client.create(pod.obj(), namespace=namespace, dry_run=True)
    except ApiError as error:
        return f"{error.code} {error.message}"
    return ""


@contextmanager
def in_force(cluster: Cluster, name: str, is_in_force: Callable[[], object]) -> Iterator[None]:
    """Apply the policy and the binding of a file, and wait until they are in force."""
    contents = read(f"hardening/{name}.yaml")
    for content in contents:
        cluster.client.create(content)
    try:
        wait_for(lambda: bool(is_in_force()), f"{name} being in force")
        yield
    finally:
        for content in reversed(contents):
            kind, api_version = content["kind"], content["apiVersion"]
            cluster.client.delete(kind, content["metadata"]["name"], api_version=api_version)


@pytest.fixture
def hardened(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster in which the policy against ways around the webhook is in force."""
    jane = user(cluster)
    with in_force(
        cluster,
        "validatingadmissionpolicy",
        lambda: "must not be set" in refusal(jane, cluster.namespace, BOUND),
    ):
        yield cluster


def user(cluster: Cluster) -> Client:
    """Somebody who may create and change pods in the test's namespace; Kueue may, too."""
    rbac, named = "rbac.authorization.k8s.io", {"metadata": {"name": "jane"}}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "get", "patch"]}]
    cluster.create({"apiVersion": f"{rbac}/v1", "kind": "Role", **named, "rules": rules})
    role = {"apiGroup": rbac, "kind": "Role", "name": "jane"}
    subjects = [{"apiGroup": rbac, "kind": "User", "name": name} for name in ("jane", KUEUE)]
    cluster.create({"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", **named, "roleRef": role, "subjects": subjects})
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


@pytest.mark.parametrize("name", POD_POLICIES)
def test_it_is_for_the_namespaces_of_the_webhook(name: str) -> None:
    policy, binding = read(f"hardening/{name}.yaml")
    webhook, *_ = read_one("base/mutatingwebhookconfiguration.yaml")["webhooks"]
    assert binding["spec"]["matchResources"]["namespaceSelector"] == webhook["namespaceSelector"]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]


KEPT_KEYS = ["gpu-fraction", "gpu-memory", "gpu-fraction-num-devices", *QUEUE_KEYS]


def test_a_user_changes_no_queue_and_no_share_of_a_pod(cluster: Cluster) -> None:
    jane, client = user(cluster), cluster.client
    gated = make_pod("gated").spec(schedulingGates=[{"name": "example.com/wait"}], schedulerName="kai-scheduler")
    client.create(gated.label(QUEUE_KEYS[0], "lab-a").obj(), namespace=cluster.namespace)

    def changed(holder: str, key: str, value: str | None = "other", by: Client = jane) -> str:
        try:
            by.patch("Pod", "gated", {"metadata": {holder: {key: value}}}, namespace=cluster.namespace, dry_run=True)
        except ApiError as error:
            return f"{error.code} {error.message}"
        return ""

    with in_force(cluster, "queue-keys", lambda: changed("labels", QUEUE_KEYS[0])):
        kept = {(holder, key): changed(holder, key) for holder in ("labels", "annotations") for key in KEPT_KEYS}
        removed = changed("labels", QUEUE_KEYS[0], None)
        project, other = changed("labels", "project"), changed("labels", "team")
        by_kueue = changed("labels", QUEUE_KEYS[0], by=client.impersonating(KUEUE))

    assert {text[:4] for text in (*kept.values(), removed, project)} == {"403 "}
    assert "the queue of a pod and its share of cards must not change" in removed
    assert (other, by_kueue) == ("", "")


def tolerating(pod: PodBuilder, *tolerations: Object) -> PodBuilder:
    return pod.spec(tolerations=[{"effect": "NoSchedule", **each} for each in tolerations])


TRAINING = make_pod("p").annotate(TYPE, "training")
POOL = {"key": USAGE, "value": "training"}
OTHER_POOL = {"key": USAGE, "value": "inference"}
H20, L4 = ({"key": "nvidia.com/gpu.product", "value": each} for each in ("NVIDIA-H20", "NVIDIA-L4"))
ANY_CARD = {"key": "nvidia.com/gpu.product", "operator": "Exists"}
NAMED = TRAINING.annotate(PRODUCT, "NVIDIA-H20, NVIDIA-H100")
BY_HAND = {
    "a pool": tolerating(make_pod("p"), POOL),
    "any pool": tolerating(make_pod("p"), {"key": USAGE, "operator": "Exists"}),
    "everything": tolerating(make_pod("p"), {"operator": "Exists", "effect": ""}),
    "everything, with a type": tolerating(TRAINING, {"operator": "Exists"}),
    "any pool, with a type": tolerating(TRAINING, {"key": USAGE, "operator": "Exists"}),
    "the pool of another type": tolerating(TRAINING, OTHER_POOL),
    "an unknown type": tolerating(make_pod("p").annotate(TYPE, "mine"), POOL),
    "opted out": tolerating(TRAINING.annotate(f"{DOMAIN}/inject", "disabled"), POOL),
    "opted out, with a space": tolerating(TRAINING.annotate(f"{DOMAIN}/inject", " disabled"), POOL),
    "opted out, with a separator": tolerating(TRAINING.annotate(f"{DOMAIN}/inject", "\x1cdisabled"), POOL),
    "of a DaemonSet": tolerating(TRAINING.owner("DaemonSet", "agents"), POOL),
    "a card": tolerating(make_pod("p"), H20),
    "any card": tolerating(make_pod("p"), ANY_CARD),
    "another card than it names": tolerating(NAMED, L4),
    "any card, beside those that it names": tolerating(NAMED, ANY_CARD),
    "the control plane": tolerating(TRAINING, {"key": f"{DOMAIN}/control-plane", "operator": "Exists"}),
}
INJECTED = {
    "pools of the type": tolerating(TRAINING, POOL, {"key": USAGE, "value": "hybrid"}),
    "pools of the type, with a space": tolerating(make_pod("p").annotate(TYPE, " training"), POOL),
    "of a DaemonSet that the policy does not know": tolerating(
        TRAINING.owner("DaemonSet", "agents", api_version="apps.example.com/v1"), POOL
    ),
    "any card": tolerating(TRAINING, POOL, ANY_CARD),
    "named cards": tolerating(NAMED, POOL, H20),
    "other taints": tolerating(make_pod("p"), {"key": "example.com/spot", "operator": "Exists"}),
    "nothing": make_pod("p"),
}


def test_only_what_the_webhook_injects_tolerates_its_taints(cluster: Cluster) -> None:
    jane, namespace = user(cluster), cluster.namespace
    with in_force(cluster, "tolerations", lambda: refusal(jane, namespace, BY_HAND["a pool"])):
        denied = {name: refusal(jane, namespace, pod)[:4] for name, pod in BY_HAND.items()}
        allowed = {name: refusal(jane, namespace, pod) for name, pod in INJECTED.items()}
        cluster.client.patch("Namespace", namespace, {"metadata": {"annotations": {TYPE: "inference"}}})
        of_default = tolerating(make_pod("p"), OTHER_POOL)
        wait_for(lambda: not refusal(jane, namespace, of_default), "the default of the namespace")
        beside_default = refusal(jane, namespace, BY_HAND["a pool"])
        opted_out = {"metadata": {"annotations": {f"{DOMAIN}/inject": "disabled"}}}
        cluster.client.patch("Namespace", namespace, opted_out)
        wait_for(lambda: refusal(jane, namespace, INJECTED["any card"]), "the default to opt out")
        opted_in = refusal(jane, namespace, INJECTED["any card"].annotate(f"{DOMAIN}/inject", "enabled"))

    assert denied == dict.fromkeys(BY_HAND, "403 ")
    assert allowed == dict.fromkeys(INJECTED, "")
    assert beside_default.startswith("403 ")
    assert opted_in == ""


def test_no_toleration_of_its_taints_is_added_later(cluster: Cluster) -> None:
    """Nothing is injected into a pod that exists, whatever its annotations become."""
    jane, namespace = user(cluster), cluster.namespace
    cluster.create(tolerating(make_pod("typed").annotate(TYPE, "training"), POOL))
    cluster.create(make_pod("gated").spec(schedulingGates=[{"name": "example.com/wait"}]))

    def added(name: str, toleration: Object, by: Client = jane) -> str:
        tolerations = cluster.client.get("Pod", name, namespace=namespace)["spec"]["tolerations"]
        spec = {"tolerations": [*tolerations, {"effect": "NoSchedule", **toleration}]}
        body = {"metadata": {"annotations": {TYPE: "training"}}, "spec": spec}
        try:
            by.patch("Pod", name, body, namespace=namespace, dry_run=True)
        except ApiError as error:
            return f"{error.code} {error.message}"
        return ""

    with in_force(cluster, "tolerations", lambda: refusal(jane, namespace, BY_HAND["a pool"])):
        late = {str(each): added(name, each)[:4] for name in ("gated", "typed") for each in LATE}
        other = added("typed", {"key": "example.com/spot", "operator": "Exists"})
        by_kueue = added("gated", POOL, cluster.client.impersonating(KUEUE))

    assert late == dict.fromkeys(map(str, LATE), "403 ")
    assert (other, by_kueue) == ("", "")


LATE = [
    {"key": USAGE, "value": "hybrid"},
    ANY_CARD,
    {"operator": "Exists"},
    {"key": f"{DOMAIN}/control-plane", "operator": "Exists"},
]


def test_a_required_type_is_that_of_pods_without_one(cluster: Cluster) -> None:
    jane, namespace = user(cluster), cluster.namespace
    with in_force(cluster, "tolerations", lambda: refusal(jane, namespace, BY_HAND["a pool"])):
        kind, name = "ValidatingAdmissionPolicy", "placement-webhook-tolerations"
        variables = cluster.client.get(kind, name, api_version=ADMISSION)["spec"]["variables"]
        next(each for each in variables if each["name"] == "requiredType")["expression"] = "'training'"
        cluster.client.patch(kind, name, {"spec": {"variables": variables}}, api_version=ADMISSION)
        wait_for(lambda: not refusal(jane, namespace, BY_HAND["a pool"]), "the required type")
        other = refusal(jane, namespace, tolerating(make_pod("p"), OTHER_POOL))
        opted_out = refusal(jane, namespace, BY_HAND["opted out"])

    assert (other[:4], opted_out[:4]) == ("403 ", "403 ")


def test_the_lists_of_the_policy_against_tolerations_are_those_of_the_built_in_policy() -> None:
    policy, _ = read("hardening/tolerations.yaml")
    variables = {each["name"]: each["expression"] for each in policy["spec"]["variables"]}
    spec = built_in_policy().spec

    pools = {name: list(each.node_usage.allow) for name, each in spec.workload_types.items()}
    assert ast.literal_eval(variables["poolsByType"]) == pools
    assert ast.literal_eval(variables["cards"]) == [f"{each.card}.product" for each in spec.accelerators]


CONFIGURATION = "00-placement-webhook"
ADMISSION = "admissionregistration.k8s.io/v1"
CHANGES: dict[str, Any] = {
    "clientConfig": {"url": "https://attacker.example/mutate", "caBundle": "QUJD"},
    "clientConfig/service/name": "other",
    "clientConfig/service/path": "/other",
    "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"], "scope": "*"}],
    "matchConditions": [],
    "matchPolicy": "Exact",
    "namespaceSelector": {},
    "objectSelector": {"matchLabels": {"a": "b"}},
    "failurePolicy": "Fail",
    "reinvocationPolicy": "IfNeeded",
    "timeoutSeconds": 30,
}


def test_the_certs_controller_changes_nothing_but_the_ca_bundle(cluster: Cluster) -> None:
    """Policies are called for webhook configurations; webhooks are not."""
    client, names = cluster.client, Target()
    client.create(manifest(names))
    for content in read("overlays/self-managed/certs-rbac.yaml"):
        if content["kind"].startswith("Cluster"):
            client.create(content)
    account = f"system:serviceaccount:{names.controller_namespace}:placement-webhook-certs"
    controller = client.impersonating(account)

    def changed(path: str, value: object, op: str = "add", by: Client = controller) -> str:
        operations = [{"op": op, "path": f"/webhooks/{path}", "value": value}]
        try:
            by.patch("MutatingWebhookConfiguration", CONFIGURATION, operations, api_version=ADMISSION, dry_run=True)
        except ApiError as error:
            return f"{error.code} {error.message}"
        return ""

    try:
        wait_for(lambda: not changed("2/timeoutSeconds", 6), "the rights of the account")
        with in_force(cluster, "ca-bundle", lambda: changed("2/timeoutSeconds", 6)):
            denied = {path: changed(f"2/{path}", value)[:4] for path, value in CHANGES.items()}
            bundles = [changed(f"{index}/clientConfig/caBundle", "Cg==") for index in range(3)]
            added = changed("-", manifest(names)["webhooks"][0] | {"name": "more.example.com"})
            removed = changed("0", None, "remove")
            by_administrator = changed("2/timeoutSeconds", 6, by=client)
            client.delete("MutatingWebhookConfiguration", CONFIGURATION, api_version=ADMISSION)
            with pytest.raises(ApiError) as created:
                controller.apply(manifest(names), dry_run=True)
    finally:
        for kind in ("ClusterRoleBinding", "ClusterRole"):
            client.delete(kind, "placement-webhook-certs", api_version="rbac.authorization.k8s.io/v1")

    assert denied == dict.fromkeys(CHANGES, "403 ")
    assert bundles == ["", "", ""]
    assert (added[:4], removed[:4], by_administrator) == ("403 ", "403 ", "")
    assert "may not create the configuration" in created.value.message
