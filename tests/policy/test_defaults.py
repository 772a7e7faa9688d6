"""The defaults of the policy, and its keys."""

import json
from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, USAGE, admit_pod, policy_with
from tests.support.objects.builders import make_pod
from webhook.admission.cluster_view import ClusterView
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import parse
from webhook.mutation.rules import RULES
from webhook.policy.keys import ANNOTATIONS
from webhook.policy.loader import built_in_policy, parse_policy

HEAD = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"
DRIVERS = ["nvidia.com/cuda.driver-version.major", "nvidia.com/cuda.driver.major"]
AMD_SIZES = (4, 8, 12, 16, 20, 24, 32, 36, 48, 64, 72, 96, 128, 144, 192, 256, 288, 432)
VENDORS: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "nvidia": ("nvidia.com/gpu", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"], {"driver": DRIVERS}),
    "amd": (
        "amd.com/gpu",
        ["amd.com/gpu"],
        {
            "product": ["amd.com/gpu.product-name", "amd.com/gpu.product"],
            "memory": ["amd.com/gpu.vram"],
            "memoryUnit": "GiB",
            "memoryValues": [f"{size}G" for size in AMD_SIZES],
            "count": ["beta.amd.com/gpu.family.AI", "amd.com/gpu.count"],
            "driver": [],
        },
    ),
    "huawei": (
        "huawei.com/npu",
        ["huawei.com/npu", "huawei.com/Ascend*"],
        {"product": ["node.kubernetes.io/npu.chip.name", "accelerator-type", "huawei.com/npu.product"]},
    ),
    "cambricon": ("cambricon.com/mlu", ["cambricon.com/mlu*"], {}),
    "hygon": ("hygon.com/dcu", ["hygon.com/dcu*"], {}),
    "intel": (
        "gpu.intel.com/gpu",
        ["gpu.intel.com/i915", "gpu.intel.com/xe"],
        {"product": ["gpu.intel.com/product"], "memory": [], "count": ["gpu.intel.com/device.count"], "driver": []},
    ),
    "gaudi": (
        "habana.ai/gaudi",
        ["habana.ai/gaudi"],
        {"product": ["habana.ai/device.name"], "memory": [], "count": ["habana.ai/device.count"], "driver": []},
    ),
    "tpu": (
        "google.com/tpu",
        ["google.com/tpu"],
        {
            "product": ["cloud.google.com/gke-tpu-accelerator"],
            "memory": [],
            "count": ["cloud.google.com/gke-accelerator-count"],
            "driver": [],
        },
    ),
}
LABELS: dict[str, Any] = {
    "product": None,
    "memory": None,
    "memoryUnit": "MiB",
    "memoryValues": [],
    "count": None,
    "driver": None,
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
        "within": {"topology": None, "mode": "preferred"},
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
                {
                    "name": name,
                    "resources": resources,
                    "card": card,
                    "labels": LABELS | labels,
                    "driverLabel": None,
                    "extraTolerations": [],
                }
                for name, (card, resources, labels) in VENDORS.items()
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
                "nvlink": "nvidia.com/gpu.clique",
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
            "reclaim": {"namespaces": []},
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

    assert verdict.outcome == "Patched"
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


def test_rule_of_an_annotation_is_registered() -> None:
    assert {row.rule for row in ANNOTATIONS if row.rule} <= RULES.keys()
