"""Pods that are correct, on nodes whose states pass."""

from collections.abc import Mapping
from typing import Any

from tests.support.admission import USAGE, admit_pod, policy_with
from tests.support.objects.builders import PodBuilder, make_node_object
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.verdict import Verdict
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.events.report import report_of

Object = dict[str, Any]
GPU, MIG, NPU = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "huawei.com/Ascend910"
PRODUCT = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
# Without it, an unknown DeviceClass could back any resource.
NO_CLASSES = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClassList", "items": []}


def node_with_cards(
    name: str = "gpu-1",
    *taints: str,
    devices: Mapping[str, int] | None = None,
    offered: Mapping[str, int] | None = None,
    labels: Mapping[str, str] = PRODUCT,
    **fields: Any,
) -> Object:
    return make_node_object(
        name,
        labels={USAGE: "training", **labels},
        taints=[f"{USAGE}=training:NoSchedule", *taints],
        capacity={GPU: 8} if devices is None else devices,
        allocatable=offered,
        **fields,
    )


def verdict(pod: PodBuilder, *nodes: Object, **spec: Any) -> Verdict:
    policy = policy_with(placementCheck={"mode": "deny"}, **spec)
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*nodes, NO_CLASSES))
    return admit_pod(pod.obj(), policy, ClusterView(snapshot, scheduler_for(policy)))


def doubt(pod: PodBuilder, *nodes: Object, **spec: Any) -> str:
    """Return the reason not to refuse `pod`, which gets no bad advice, and no Event that it never fits."""
    found = verdict(pod, *nodes, **spec)
    assert found.outcome == "Patched", "it is refused"
    assert not any("tolerated" in each or "ask" in each for each in found.placement.suggestions)
    report = report_of(found)
    assert report is None or report.reason != "PlacementInfeasible"
    assert any("not refused" in warning for warning in found.warnings)
    return found.placement.deny_exemption
