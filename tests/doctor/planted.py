"""Faults that are planted on the real control plane, and what the remedy of each names and mends."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from certs.pki import issue_ca
from certs.registration import Target, manifest
from certs.secret import OWNER
from certs.webhook_rules import PODS
from tests.controlplane.client import ApiError
from tests.controlplane.polling import wait_for
from tests.controlplane.webhooks import ADMISSION, webhook_configuration
from tests.doctor.healthy import PRODUCT, USAGE, WHITELIST
from tests.doctor.installed import CERTS_NAMESPACE, CONFIGURATION, EXPORTED, NAMESPACE, Installed, replaced
from tests.support.objects.batch_objects import definition
from tests.support.objects.manifests import DEPLOY, Object, read_one
from tests.support.on_cluster.kinds import serving_kinds
from tests.support.on_cluster.service_account import RBAC
from webhook.admission.exported_policy import exported_policy
from webhook.mutation.exported.export import IDENTITY
from webhook.policy.loader import parse_policies
from webhook.policy.policy_documents import policy_set

Planted = AbstractContextManager[None]

NOWHERE = "https://127.0.0.1:1/mutate"
TRAINING_TAINT, HYBRID_TAINT = f"{USAGE}=training:NoSchedule", f"{USAGE}=hybrid:NoSchedule"
SPARE, MISTYPED = "spare", "maip.mxsf.io/nodeusage"
NO_RULES = [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}]
PRODUCT_TAINT = f"{PRODUCT}=NVIDIA-H20:NoSchedule"


def in_each_webhook(made: Installed, field: str, value: object, *, settled: bool = False) -> Planted:
    return made.webhooks(*(replaced(field, value, index) for index in range(4)), settled=settled)


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


def stopped_scheduler(made: Installed) -> Planted:
    renewed = datetime.now(UTC) - timedelta(minutes=9)
    spec = {"holderIdentity": "a_1", "leaseDurationSeconds": 15, "renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%fZ}"}
    metadata = {"name": "kube-scheduler"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    return made.made(lease, "kube-system")


@contextmanager
def node_of_a_pool(made: Installed) -> Iterator[None]:
    """Serve Karpenter's kinds, and label a node as one of its NodePool."""
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {}}
    with ExitStack() as planted:
        planted.enter_context(serving_kinds(made.client, "karpenter.sh", ("NodePool", "NodeClaim")))
        planted.enter_context(made.made(pool, "default"))
        planted.enter_context(training_node(labels(**{"karpenter.sh/nodepool": "gpu"}))(made))
        yield


@contextmanager
def volcano_without_plugin(made: Installed) -> Iterator[None]:
    """Serve PodGroups of Volcano, one of them with a network topology, beside a configuration without the plugin."""
    namespace = "volcano-system"
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}}
    data = {"volcano-scheduler.conf": "tiers: [{plugins: [{name: gang}]}]"}
    name = {"name": "volcano-scheduler-configmap"}
    configuration = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": data}
    made.cluster.make_namespace(namespace)
    with ExitStack() as planted:
        planted.enter_context(made.made(configuration, namespace))
        planted.enter_context(made.made(definition("PodGroup.scheduling.volcano.sh")))
        path = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
        wait_for(lambda: _is_served(made, path), "the PodGroups of Volcano")
        planted.enter_context(made.made({**group, "spec": {"networkTopology": {"mode": "hard"}}}, "default"))
        yield


def _is_served(made: Installed, path: str) -> bool:
    with suppress(ApiError):
        return bool(made.client.request("GET", path).object)
    return False


@contextmanager
def part_of_a_rack(made: Installed) -> Iterator[None]:
    """Put two nodes into a rack, one of them with an NVLink label."""
    rack = {"topology.kubernetes.io/rack": "r1"}
    with (
        made.node("training-1", labels(**rack, **{"nvidia.com/gpu.clique": "x.0"})),
        made.node("hybrid-1", labels(**rack)),
    ):
        yield


def full_quota(made: Installed) -> Planted:
    scope = {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}
    spec = {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [scope]}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": spec}
    return made.made(quota, made.cluster.namespace)


def gpu_by_default(made: Installed) -> Planted:
    limits = [{"type": "Container", "default": {"nvidia.com/gpu": "1"}, "defaultRequest": {"nvidia.com/gpu": "1"}}]
    content = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "gpus"}, "spec": {"limits": limits}}
    return made.made(content, made.cluster.namespace)


def without_the_right_to_nodes(made: Installed) -> Planted:
    operation = {"op": "replace", "path": "/rules/0/resources", "value": ["pods", "namespaces"]}
    return made.changed("ClusterRole", NAMESPACE, [operation], RBAC)


@contextmanager
def service_with_another_port(made: Installed) -> Iterator[None]:
    operation = {"op": "replace", "path": "/spec/ports/0/port", "value": 8443}
    ready = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "ready", "labels": {"kubernetes.io/service-name": NAMESPACE}},
        "addressType": "IPv4",
        "ports": [{"port": 8443}],
        # No connection to a broadcast address is tried, so that it costs no time.
        "endpoints": [{"addresses": ["255.255.255.255"]}],
    }
    with (
        made.changed("Service", NAMESPACE, [operation], namespace=NAMESPACE),
        made.made(ready, NAMESPACE),
        service_without_endpoints(made),
    ):
        yield


@contextmanager
def with_controller(made: Installed, **spec: int) -> Iterator[None]:
    controller = read_one("overlays/self-managed/certs-controller.yaml")
    controller["spec"] |= spec
    with made.made(controller, CERTS_NAMESPACE):
        status = {"status": {"replicas": 1, "readyReplicas": 1}}
        made.client.patch(
            "Deployment",
            "placement-webhook-certs",
            status,
            namespace=CERTS_NAMESPACE,
            api_version="apps/v1",
            subresource="status",
        )
        yield


def stopped_controller(made: Installed) -> Planted:
    return with_controller(made, replicas=0)


def running_controller(made: Installed) -> Planted:
    return with_controller(made)


@contextmanager
def lost_controller(made: Installed) -> Iterator[None]:
    """The controller wrote the caBundle, and has no Deployment any more."""
    with made.webhooks():
        found = made.client.get("MutatingWebhookConfiguration", CONFIGURATION, api_version=ADMISSION)
        bundle = base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"])
        longer = base64.b64encode(bundle + issue_ca(now=datetime.now(UTC)).certificate).decode()
        operations = [replaced("clientConfig/caBundle", longer, index) for index in range(4)]
        patch = ("patch", "mutatingwebhookconfiguration", CONFIGURATION, "--type=json", "-p", json.dumps(operations))
        made.cluster.control_plane.kubectl(*patch, f"--field-manager={OWNER}")
        yield


def following_objects(made: Installed) -> Planted:
    operation = {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--policy-source=crd"}
    return made.changed("Deployment", NAMESPACE, [operation], "apps/v1", NAMESPACE)


@contextmanager
def exported(made: Installed, *, missing: str = "", edit: Object | None = None, more: str = "") -> Iterator[None]:
    """The exported policy, applied by hand: without a kind, with an edit of the policy, or with another binding."""
    policies = policy_set(parse_policies((DEPLOY / "base" / "policy.yaml").read_bytes(), "policy.yaml"))
    objects = exported_policy(policies, 36, NAMESPACE, manifest(Target())).objects
    (made.folder / EXPORTED).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    with ExitStack() as stack:
        for each in objects:
            if each["kind"] != missing:
                stack.enter_context(made.made(each))
            else:
                stack.callback(made.client.delete, missing, each["metadata"]["name"], api_version=ADMISSION)
        if edit is not None:
            name = objects[0]["metadata"]["name"]
            made.client.patch(objects[0]["kind"], name, edit, api_version=ADMISSION)
        if more:
            (binding,) = (each for each in objects if each["kind"] == "MutatingAdmissionPolicyBinding")
            stack.enter_context(made.made(binding | {"metadata": binding["metadata"] | {"name": more}}))
        yield


def exporting(made: Installed) -> Planted:
    """The servers are to export, and none does."""
    operations = [
        {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": value}
        for value in ("--export-policy=on",)
    ]
    return made.changed("Deployment", NAMESPACE, operations, "apps/v1", NAMESPACE)


def malformed_whitelist(made: Installed) -> Planted:
    return made.changed("Namespace", made.cluster.namespace, {"metadata": {"annotations": {WHITELIST: "{"}}})


@contextmanager
def no_batch_node(made: Installed) -> Iterator[None]:
    types = {**training(), "batch": {"nodeUsage": {"allow": ["batch"]}}}
    with made.policy(workloadTypes=types), made.made(spare_node()):
        yield


def lost_node(made: Installed) -> Planted:
    return made.made(spare_node(**{PRODUCT: "NVIDIA-L4"}))


def unhealthy_node(made: Installed) -> Planted:
    status = {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "7"}}
    return made.made({**spare_node(), "status": status})


def spare_node(**labels: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": SPARE, "labels": {"kubernetes.io/hostname": SPARE, **labels}},
    }


def mistyped_key() -> Object:
    return labels(**{USAGE: None, MISTYPED: "training"}) | taints(f"{MISTYPED}=training:NoSchedule", PRODUCT_TAINT)


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


class Fault(NamedTuple):
    """A fault: the checks that find it, how it is planted, and texts that remedies of the first check have.

    `mends`: after the commands of the remedies, the check finds nothing. `choices` are the words for those in capitals;
    DIR is the folder of the server's certificate. `leaves` are objects that the commands create, as kubectl names them.
    """

    checks: set[str]
    plant: Callable[[Installed], Planted]
    remedies: tuple[str, ...] = ()
    mends: bool = True
    choices: Mapping[str, str] = {}
    leaves: tuple[str, ...] = ()


POLICIES = ("crd/placementpolicies.placement.maip.mxsf.io",)
PATCH = "`kubectl patch mutatingwebhookconfiguration 00-placement-webhook --type=json -p '[{"
REGISTER = "`placement-webhook certs register "
CERTS_ROLE = tuple(
    f"{kind}/placement-webhook-certs" for kind in ("clusterrole", "clusterrolebinding", "role", "rolebinding", "sa")
)

EXPORTED_ROLE = tuple(
    f"{kind}/placement-webhook-exported" for kind in ("clusterrole", "clusterrolebinding", "role", "rolebinding")
)

# By the check, with a word for a second fault of the same. The servers do not read a changed ConfigMap.
PLANTED: Mapping[str, Fault] = {
    "service": Fault(
        {"service"},
        service_without_endpoints,
        ("`kubectl -n placement-webhook describe deployment/placement-webhook` has the events",),
        mends=False,
    ),
    "service: port": Fault(
        {"service"}, service_with_another_port, ("patch service placement-webhook", "/spec/ports/0/port")
    ),
    "ca-bundle": Fault(
        {"ca-bundle", "certificate"},
        lambda made: in_each_webhook(made, "clientConfig/caBundle", base64.b64encode(b"\n").decode()),
        (f"{REGISTER}--dir=DIR --url=https://",),
    ),
    "certificate": Fault({"certificate"}, other_ca, (f"{REGISTER}--dir=DIR --url=https://",)),
    "certs-controller": Fault(
        {"certs-controller"},
        stopped_controller,
        ("`kubectl -n placement-webhook-certs scale deployment placement-webhook-certs --replicas=1`",),
        mends=False,
    ),
    "certs-controller: missing": Fault(
        {"certs-controller"}, lost_controller, ("`kubectl apply -k deploy/overlays/self-managed`",), mends=False
    ),
    "failure-policy": Fault(
        {"failure-policy"},
        replicas(1),
        ("`kubectl -n placement-webhook scale --replicas=2 deployment/placement-webhook`",),
    ),
    "failure-policy: budget": Fault(
        {"failure-policy"},
        lambda made: made.changed(
            "PodDisruptionBudget", NAMESPACE, {"spec": {"maxUnavailable": 0}}, "policy/v1", NAMESPACE
        ),
        ("`kubectl -n placement-webhook patch pdb placement-webhook --type=merge",),
    ),
    "own-namespace": Fault(
        {"own-namespace"},
        lambda made: made.changed(
            "NetworkPolicy", NAMESPACE, {"spec": {"ingress": []}}, "networking.k8s.io/v1", NAMESPACE
        ),
        ("`kubectl -n placement-webhook apply -f deploy/base/networkpolicy.yaml`",),
    ),
    "gpu-defaults": Fault({"gpu-defaults"}, gpu_by_default, ("edit limitrange gpus`: remove it there",), mends=False),
    "selectors": Fault(
        {"selectors"}, webhook("namespaceSelector", {}), (PATCH, '"values":["kube-system","placement-webhook"]')
    ),
    "order": Fault(
        {"order"},
        early_peer,
        (
            "a NAME that sorts before 0-volcano-admission-service-pods-mutate",
            f"{REGISTER}--configuration=NAME",
            "`kubectl delete mutatingwebhookconfiguration 00-placement-webhook`",
        ),
        mends=False,
    ),
    "reinvocation": Fault(
        {"reinvocation"}, webhook("reinvocationPolicy", "Never"), (PATCH, "/webhooks/0/reinvocationPolicy")
    ),
    "match-conditions": Fault(
        {"match-conditions"}, removed("0/matchConditions/0"), (PATCH, "/webhooks/0/matchConditions")
    ),
    "match-conditions: of workloads": Fault(
        {"match-conditions"},
        removed("1/matchConditions/0"),
        (f"{REGISTER}--policy=FILE", "FILE is in ConfigMap placement-webhook/placement-policy"),
        choices={"FILE": str(DEPLOY / "base" / "policy.yaml")},
    ),
    "timeouts": Fault({"timeouts"}, webhook("timeoutSeconds", 30), (PATCH, "/webhooks/0/timeoutSeconds")),
    "installed": Fault({"installed"}, removed("1"), (f"{REGISTER}--dir=DIR --url=https://",)),
    "installed: twice": Fault(
        {"installed"},
        lambda made: made.made(
            webhook_configuration("zz-trial", NOWHERE, "", {"name": PODS, "rules": NO_RULES, "failurePolicy": "Ignore"})
        ),
        ("`kubectl delete mutatingwebhookconfiguration zz-trial`",),
        mends=False,
    ),
    "installed: rules": Fault(
        {"installed", "match-conditions", "answer"}, webhook("rules", NO_RULES), (PATCH, "/webhooks/0/rules")
    ),
    "policy": Fault(
        {"policy"},
        policy(productAffinity=False),
        ("`kubectl -n placement-webhook rollout restart deployment/placement-webhook`",),
        mends=False,
    ),
    "rights": Fault({"rights"}, without_the_right_to_nodes, ("`kubectl apply -f deploy/base/rbac.yaml`",)),
    "policy-objects": Fault(
        {"policy-objects", "rights"}, following_objects, ("`kubectl apply -k deploy/crd` installs it",), leaves=POLICIES
    ),
    "rights: policies": Fault(
        {"policy-objects", "rights"},
        following_objects,
        ("`kubectl apply -f deploy/overlays/crd/rbac.yaml`",),
        leaves=("clusterrole/placement-webhook-policies", "clusterrolebinding/placement-webhook-policies"),
    ),
    "rights: certs": Fault(
        {"rights"},
        running_controller,
        ("`kubectl apply -f deploy/overlays/self-managed/certs-rbac.yaml`",),
        leaves=CERTS_ROLE,
    ),
    "exported-policy": Fault(
        {"exported-policy"},
        lambda made: exported(made, missing="MutatingAdmissionPolicyBinding"),
        ("`kubectl replace --force -f FILE`",),
    ),
    "exported-policy: edited": Fault(
        {"exported-policy"},
        lambda made: exported(made, edit={"spec": {"failurePolicy": "Fail"}}),
        ("`kubectl replace --force -f FILE`",),
    ),
    "exported-policy: old": Fault(
        {"exported-policy"},
        lambda made: exported(made, edit={"metadata": {"annotations": {IDENTITY: "default@old"}}}),
        ("`kubectl replace --force -f FILE`",),
    ),
    "exported-policy: left over": Fault(
        {"exported-policy"},
        lambda made: exported(made, more="placement-webhook.gone"),
        ("`kubectl delete mutatingadmissionpolicybindings placement-webhook.gone`",),
    ),
    "exported-policy: not exported": Fault(
        {"exported-policy", "rights"},
        exporting,
        ("`kubectl -n placement-webhook logs deployment/placement-webhook`",),
        mends=False,
    ),
    "rights: exported": Fault(
        {"exported-policy", "rights"},
        exporting,
        ("`kubectl apply -f deploy/overlays/exported/rbac.yaml`",),
        leaves=tuple(
            f"{kind}/placement-webhook-exported"
            for kind in ("clusterrole", "clusterrolebinding", "role", "rolebinding")
        ),
    ),
    "clock": Fault({"clock"}, skewed_lease, ("synchronise the clock",), mends=False),
    "schedulers: stopped": Fault({"schedulers", "clock"}, stopped_scheduler, ("start it",), mends=False),
    "schedulers": Fault(
        {"schedulers", "policy"}, policy(allowedSchedulers=["volcano", "gone"]), ("install it",), mends=False
    ),
    "backends": Fault({"backends", "policy"}, policy(queueing="kueue"), ("install Kueue",), mends=False),
    "priority-classes": Fault(
        {"priority-classes", "policy"},
        policy(workloadTypes=training(priorityClassName="gone")),
        ("`kubectl create priorityclass gone --value=N`",),
        choices={"--value=N": "--value=1000"},
        leaves=("priorityclass/gone",),
    ),
    "preemption": Fault(
        {"preemption", "policy"},
        policy(
            workloadTypes=training(priorityClassName="system-cluster-critical")
            | {"inference": {"nodeUsage": {"allow": ["inference", "hybrid"]}}}
        ),
        ("`kubectl create priorityclass NAME --value=N`", "with N above 2000000000"),
        mends=False,
    ),
    "queues": Fault(
        {"queues", "policy"},
        policy(namespaceLimits=[{"namespaces": ["team-a"], "queues": ["gone"]}]),
        ("create it, or correct the policy",),
        mends=False,
    ),
    "tolerations-whitelist": Fault(
        {"tolerations-whitelist"}, whitelist, ("`kubectl annotate --overwrite namespace ", '[{"key":"a"},{"key":')
    ),
    "tolerations-whitelist: malformed": Fault(
        {"tolerations-whitelist"}, malformed_whitelist, ("`kubectl annotate namespace ", f"{WHITELIST}-`")
    ),
    "cross-namespace-quotas": Fault(
        {"cross-namespace-quotas"}, full_quota, ("binPacking.namespaces: same", "raise the quota"), mends=False
    ),
    "pools": Fault(
        {"pools", "policy"},
        no_batch_node,
        (f"`kubectl label node NODE {USAGE}=batch`", f"`kubectl taint node NODE {USAGE}=batch:NoSchedule`"),
        choices={"NODE": SPARE},
    ),
    "workload-types": Fault(
        {"workload-types"}, nodes_in_maintenance, ("`placement-webhook check -f POD`",), mends=False
    ),
    "node-usage": Fault(
        {"node-usage"},
        training_node(taints(PRODUCT_TAINT)),
        (f"`kubectl taint node training-1 {TRAINING_TAINT}`",),
    ),
    "node-usage: effect": Fault(
        {"node-usage"},
        training_node(taints(f"{USAGE}=training:NoExecute", PRODUCT_TAINT)),
        (f"`kubectl taint node training-1 {USAGE}:NoExecute- {TRAINING_TAINT} --overwrite`",),
    ),
    "node-products": Fault(
        {"node-products"},
        training_node(labels(**{PRODUCT: None})),
        (f"`kubectl label node training-1 {PRODUCT}=NVIDIA-H20`",),
    ),
    "node-products: taint": Fault(
        {"node-products"},
        training_node(taints(TRAINING_TAINT, f"{PRODUCT}=NVIDIA-A100:NoExecute")),
        (f"`kubectl taint node training-1 {PRODUCT}:NoExecute- {PRODUCT}=NVIDIA-H20:NoSchedule --overwrite`",),
    ),
    "node-products: out of reach": Fault(
        {"node-products"},
        lost_node,
        (f"`kubectl label node {SPARE} {USAGE}=POOL --overwrite` and `kubectl taint node {SPARE} ",),
        choices={
            f"{USAGE}=POOL": f"{USAGE}=hybrid",
            f"{USAGE}=POOL:NoSchedule": HYBRID_TAINT,
        },
    ),
    "node-devices": Fault(
        {"node-devices"},
        unhealthy_node,
        (f"`kubectl describe node {SPARE}`, and the log of the device plugin on the node",),
        mends=False,
    ),
    "node-templates": Fault({"node-templates"}, node_of_a_pool, ("add - {name: gpu, labels: {",), mends=False),
    "topology-labels": Fault({"topology-labels"}, part_of_a_rack, ("the fabric is not completed",), mends=False),
    "topology-requests": Fault(
        {"topology-requests"}, volcano_without_plugin, ("add `- name: network-topology-aware`",), mends=False
    ),
    "node-spelling": Fault(
        {"node-spelling"},
        training_node(labels(**{"maip.mxsf.io/node-usage": "training"})),
        ("`kubectl label node training-1 maip.mxsf.io/node-usage-`",),
    ),
    "node-spelling: keys": Fault(
        {"node-spelling"},
        training_node(mistyped_key()),
        (
            f"`kubectl label node training-1 {MISTYPED}- {USAGE}=training`",
            f"`kubectl taint node training-1 {MISTYPED}:NoSchedule- {USAGE}=training:NoSchedule --overwrite`",
        ),
    ),
    "node-spelling: values": Fault(
        {"node-spelling"},
        training_node(labels(**{USAGE: "trainning"}) | taints(f"{USAGE}=trainning:NoSchedule", PRODUCT_TAINT)),
        (
            f"`kubectl label node training-1 {USAGE}=training --overwrite`",
            f"`kubectl taint node training-1 {USAGE}=training:NoSchedule --overwrite`",
        ),
    ),
}
