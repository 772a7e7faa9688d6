"""The defaults of the policy, and its keys."""

import json
from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, USAGE, admit_pod, policy_with
from tests.support.objects.builders import make_pod
from webhook.admission.cluster_view import ClusterView
from webhook.admission.verdict import Patched
from webhook.cluster.file import snapshot_from_documents
from webhook.documents.documents import parse
from webhook.mutation.rules import RULES
from webhook.policy.keys import ANNOTATIONS, Keys
from webhook.policy.loader import built_in_policy, parse_policy
from webhook.policy.policy import allows_namespace
from webhook.policy.products import namespaces_of_product

HEAD = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"

NVIDIA = {
    "name": "nvidia",
    "resources": ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"],
    "card": "nvidia.com/gpu",
    "driverLabel": "nvidia.com/cuda.driver-version.major",
    "extraTolerations": [],
}
OTHER_VENDORS = {
    "amd": ("amd.com/gpu", ["amd.com/gpu"]),
    "huawei": ("huawei.com/npu", ["huawei.com/npu", "huawei.com/Ascend*"]),
    "cambricon": ("cambricon.com/mlu", ["cambricon.com/mlu*"]),
    "hygon": ("hygon.com/dcu", ["hygon.com/dcu*"]),
}


def workload_type(pool: str, scheduler: str | None, bin_packing: bool, topology: str | None) -> dict[str, Any]:
    return {
        "nodeUsage": {"allow": [pool, "hybrid"], "prefer": {pool: 100}},
        "schedulerName": scheduler,
        "priorityClassName": None,
        "binPacking": bin_packing,
        "spread": {
            "topology": topology,
            "mode": "preferred",
            "form": "antiAffinity",
            "maxSkew": 1,
            "weight": 100,
        },
        "qos": {"class": None, "limitsFromRequests": False, "wholeCpus": False, "onMissing": "warn"},
        "allowedNamespaces": ["*"],
        "extraTolerations": [],
    }


def test_built_in_policy_matches_the_contract() -> None:
    assert built_in_policy().document.model_dump(mode="json", by_alias=True) == {
        "apiVersion": "placement.maip.mxsf.io/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": "default", "labels": {}, "annotations": {}},
        "spec": {
            "keyDomain": "maip.mxsf.io",
            "formerKeyDomains": [],
            "requireType": None,
            "workloadTypes": {
                "training": workload_type("training", "volcano", bin_packing=True, topology=None),
                "inference": workload_type("inference", None, bin_packing=False, topology="kubernetes.io/hostname"),
            },
            "accelerators": [
                NVIDIA,
                *(
                    {"name": name, "resources": resources, "card": card, "driverLabel": None, "extraTolerations": []}
                    for name, (card, resources) in OTHER_VENDORS.items()
                ),
            ],
            "productAffinity": True,
            "tolerateAnyProduct": True,
            "productVariants": [],
            "gpuMemoryTolerancePercent": 5,
            "withoutAccelerator": {"podAnnotations": "warn", "namespaceDefaults": "leave"},
            "allowedProducts": {},
            "namespaceLimits": [],
            "binPacking": {
                "labelKey": "jobtype",
                "labelValue": "binpacked",
                "weight": 100,
                "topologyKey": "kubernetes.io/hostname",
                "namespaces": "all",
            },
            "topologyAliases": {
                "host": "kubernetes.io/hostname",
                "rack": "topology.kubernetes.io/rack",
                "zone": "topology.kubernetes.io/zone",
            },
            "allowedSchedulers": ["default-scheduler", "volcano", "kai-scheduler", "binpack-scheduler"],
            "schedulers": {},
            "queueing": "scheduler",
            "defaultPriorityClass": None,
            "optOutNamespaces": None,
            "placementCheck": {
                "mode": "warn",
                "floor": "off",
                "profile": "default",
                "workBudgetMilliseconds": 150,
                "maxViewAgeSeconds": 60,
                "reservationSeconds": 60,
            },
            "packGpus": {"mix": []},
            "nodeTemplates": [],
            "temporaryTaints": [
                "ToBeDeletedByClusterAutoscaler",
                "DeletionCandidateOfClusterAutoscaler",
                "startup-taint.cluster-autoscaler.kubernetes.io/",
                "status-taint.cluster-autoscaler.kubernetes.io/",
                "ignore-taint.cluster-autoscaler.kubernetes.io/",
                "karpenter.sh/disrupted",
                "karpenter.sh/disruption",
                "karpenter.sh/unregistered",
                "node.cilium.io/agent-not-ready",
                "ebs.csi.aws.com/agent-not-ready",
                "efs.csi.aws.com/agent-not-ready",
                "fsx.csi.aws.com/agent-not-ready",
                "nvidia.com/gpu-driver-upgrade",
            ],
            "workloadKinds": [],
            "invalidAnnotations": "deny",
            "workloadObjects": {
                "enabled": True,
                "report": "problems",
                "invalidAnnotations": None,
                "mutateTemplates": False,
            },
            "namespaceSelector": None,
            "priority": 0,
            "unknownNamespace": "default",
            "missingPolicy": "default",
            "exemptions": [],
            "mode": "enforce",
            "canaryPercent": 100,
            "tests": [],
        },
    }


@pytest.mark.parametrize("text", [HEAD, HEAD + "spec: {}\n", HEAD + "metadata: {name: default}\n"])
def test_empty_policy_is_the_built_in_one(text: str) -> None:
    policy = parse_policy(text, "policy.yaml")

    assert policy.document == built_in_policy().document
    assert policy.identity == built_in_policy().identity


# The built-in policy as `policy show` printed it before these fields existed.
NEWER_FIELDS = (
    "tolerateAnyProduct",
    "productVariants",
    "gpuMemoryTolerancePercent",
    "withoutAccelerator",
    "extraTolerations",
    "namespaces",
)


def test_policy_written_before_a_field_existed_is_read_with_its_default() -> None:
    shown = built_in_policy().document.model_dump(mode="json", by_alias=True)

    policy = parse_policy(json.dumps(without(shown, NEWER_FIELDS)), "policy.yaml")

    assert policy.identity == built_in_policy().identity


def test_a_policy_can_keep_what_was_injected_before() -> None:
    spec = {"tolerateAnyProduct": False, "gpuMemoryTolerancePercent": 0, "withoutAccelerator": "inject"}
    pod = make_pod().annotate(f"{DOMAIN}/gpu-memory", "80Gi")
    by_namespace = ClusterView(snapshot_from_documents(parse(json.dumps(NAMESPACE), "cluster")), None)

    verdict = admit_pod(pod.obj(), policy_with(**spec), by_namespace)

    assert isinstance(verdict, Patched)
    assert verdict.warnings == ()
    assert [each["key"] for each in verdict.pod["spec"]["tolerations"]] == [USAGE, USAGE]
    (term,) = verdict.pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert {"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["81919"]} in term["matchExpressions"]


NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default", "annotations": {TYPE: "inference"}},
}


def without(value: Any, keys: tuple[str, ...]) -> Any:
    """The JSON `value` without the fields `keys` of its objects."""
    if isinstance(value, dict):
        return {key: without(inner, keys) for key, inner in value.items() if key not in keys}
    return [without(each, keys) for each in value] if isinstance(value, list) else value


def test_the_keys_are_those_that_users_write() -> None:
    policy = built_in_policy()

    assert list(policy.keys) == [
        f"maip.mxsf.io/{name}"
        for name in (
            "workload-type",
            "gpu-product",
            "gpu-memory",
            "gpu-count",
            "gpu-driver",
            "bin-packing",
            "spread",
            "scheduler",
            "queue",
            "gang",
            "gang-size",
            "gpu-fraction",
            "preemptible",
            "placement-check",
            "inject",
        )
    ]
    assert policy.node_usage_key == "maip.mxsf.io/node.usage"
    assert policy.policy_annotation == "maip.mxsf.io/placement-policy"
    assert policy.rules_annotation == "maip.mxsf.io/placement-rules"


def test_another_key_domain_moves_every_key() -> None:
    policy = parse_policy(HEAD + "spec: {keyDomain: example.com}\n", "policy.yaml")

    keys = [*policy.keys, policy.node_usage_key, policy.policy_annotation, policy.rules_annotation]
    assert [key for key in keys if not key.startswith("example.com/")] == []


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ([], []),
        (["cpu", "memory"], []),
        (["nvidia.com/gpu"], ["nvidia"]),
        (["nvidia.com/gpu.shared"], ["nvidia"]),
        (["nvidia.com/mig-1g.5gb"], ["nvidia"]),
        (["nvidia.com/gpumem"], ["nvidia"]),
        (["volcano.sh/vgpu-number"], ["nvidia"]),
        (["huawei.com/Ascend910"], ["huawei"]),
        (["huawei.com/ascend910"], []),
        (["cambricon.com/mlu370", "cpu"], ["cambricon"]),
        (["hygon.com/dcu"], ["hygon"]),
        (["amd.com/gpu", "nvidia.com/gpu"], ["nvidia", "amd"]),
        (["example.com/gpu"], []),
    ],
    ids=lambda value: ",".join(value) or "none",
)
def test_resource_determines_the_accelerator(resources: list[str], wanted: list[str]) -> None:
    """Several come in the policy's order."""
    assert [accelerator.name for accelerator in built_in_policy().accelerators_of(resources)] == wanted


@pytest.mark.parametrize(
    ("patterns", "namespace", "wanted"),
    [
        (["*"], "default", True),
        ([], "default", False),
        (["team-a"], "team-a", True),
        (["team-a"], "team-ab", False),
        (["team-*"], "team-", True),
        (["team-*"], "team-b", True),
        (["team-*"], "ateam-b", False),
        (["*-gpu", "ml"], "ml", True),
        (["*-gpu", "ml"], "a-gpu", True),
        (["a.b"], "axb", False),
    ],
)
def test_a_type_is_for_the_namespaces_of_its_patterns(patterns: list[str], namespace: str, wanted: bool) -> None:
    usage = "{nodeUsage: {allow: [a]}, allowedNamespaces: [" + ", ".join(f'"{each}"' for each in patterns) + "]}"
    policy = parse_policy(HEAD + f"spec: {{workloadTypes: {{t: {usage}}}}}\n", "policy.yaml")

    assert allows_namespace(policy.spec.workload_types["t"], namespace) is wanted


@pytest.mark.parametrize(
    ("product", "allowed"),
    [
        ("NVIDIA-L4", None),
        ("NVIDIA-H20", ("team-a", "lab-*")),
        ("NVIDIA-H200", ("lab-*", "team-b")),
        ("NVIDIA-A100-SXM4-80GB", ()),
        ("nvidia-h20", None),
    ],
)
def test_a_product_is_for_the_namespaces_of_every_pattern_that_it_matches(
    product: str, allowed: tuple[str, ...] | None
) -> None:
    allowed_products = "{NVIDIA-H20: [team-a, lab-*], NVIDIA-H200: [lab-*], 'NVIDIA-H200*': [team-b], NVIDIA-A*: []}"
    policy = parse_policy(HEAD + f"spec: {{allowedProducts: {allowed_products}}}\n", "policy.yaml")

    assert namespaces_of_product(policy.spec, product) == allowed


def test_rule_of_an_annotation_is_registered() -> None:
    assert {row.rule for row in ANNOTATIONS if row.rule} <= RULES.keys()


def test_every_annotation_is_a_key_under_the_domain() -> None:
    assert list(Keys("example.com")) == [f"example.com/{row.attribute.replace('_', '-')}" for row in ANNOTATIONS]
