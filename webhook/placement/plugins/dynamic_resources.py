"""DynamicResources: the devices that a pod's claims request must be free, or be allocated and accessible."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.dra.resource_claim import ResourceClaim
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, never
from webhook.placement.dra.feasibility import device_feasibility, is_left_out, resource_claim
from webhook.placement.framework.interface import ALL_NODES, Failure, PreFilterResult, default_normalize
from webhook.placement.pod.pod_info import PodInfo, PodResourceClaim

ERR_REASON_CANNOT_FIT = "cannot fit resource"
ERR_REASON_STALE_CLAIM = "cannot schedule extended resource claim"
ERR_REASON_CANNOT_ALLOCATE = "cannot allocate all claims"
ERR_REASON_INVALID_POOLS = "invalid resource pools were encountered"
ERR_REASON_NOT_AVAILABLE = "resourceclaim not available on the node"


class DynamicResources:
    """Find devices in the ResourceSlices that a node can access, for all unallocated claims of a pod.

    Extended resources that a DeviceClass backs and that the node does not offer itself count as an additional claim. A
    claim that is not created yet is evaluated by its template. On nodes without pods, all devices are free.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go
    """

    name = "DynamicResources"

    def concerns(self, pod: PodInfo, nodes: Snapshot) -> bool:
        """Return whether the pod has claims, or requests resources that devices back."""
        return bool(pod.device_claims or pod.by_container)

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """Reject all nodes if a claim of `pod` cannot be used, or a request names a DeviceClass that does not exist."""
        for use in pod.device_claims:
            claim = resource_claim(use, nodes.devices)
            if reason := _claim_rejection(use, claim, nodes):
                return PreFilterResult(reason=reason, is_transient=True)
            if claim is not None and (reason := _unknown_class_rejection(claim, nodes)):
                return PreFilterResult(reason=reason)
        return ALL_NODES

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """Return the nodes that lack requested devices, or that cannot access the devices allocated to a claim."""
        if not (pod.device_claims or pod.by_container):
            return ()
        if pod.stored in nodes.devices.extended_claims and not nodes.is_without_pods:
            # kube-scheduler deletes the claim of an earlier attempt, and then tries again.
            return (Failure(ERR_REASON_STALE_CLAIM, np.ones(len(nodes.nodes), dtype=np.bool_)),)
        fit = device_feasibility(pod, nodes, expired)
        return (
            Failure(ERR_REASON_CANNOT_FIT, fit.lacks_resource),
            Failure(ERR_REASON_CANNOT_ALLOCATE, fit.unallocatable),
            Failure(ERR_REASON_INVALID_POOLS, fit.invalid),
            Failure(ERR_REASON_NOT_AVAILABLE, fit.unavailable),
        )

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column:
        """Return a higher score if claims are satisfied by earlier alternatives of their lists."""
        if not pod.device_claims:
            return np.zeros(len(rows), dtype=np.int64)
        return default_normalize(device_feasibility(pod, nodes, expired).preferred[rows])


def _claim_rejection(use: PodResourceClaim, claim: ResourceClaim | None, nodes: Snapshot) -> str:
    """Return the reason why the claim rejects all nodes, or "" if it does not or is not known."""
    if claim is not None:
        if claim.is_being_deleted and not use.is_template:
            return f'resourceclaim "{claim.name}" is being deleted'
        if use.owner and claim.controller_uid != use.owner.uid:
            owned = f"ResourceClaim {use.namespace}/{use.name}"
            return f"{owned} was not created for Pod {use.namespace}/{use.owner.name} (Pod is not owner)"
        return ""
    known = nodes.devices.templates if use.is_template else nodes.devices.claims
    if known is None or is_left_out(use, nodes):
        return ""
    if use.is_template:
        return f'resourceclaimtemplate "{use.name}" not found: ResourceClaim not created yet'
    return f'could not find ResourceClaim "{use.namespace}/{use.name}"'


def _unknown_class_rejection(claim: ResourceClaim, nodes: Snapshot) -> str:
    classes = nodes.devices.classes
    if classes is None or claim.allocation is not None:
        return ""
    for alternatives in claim.requests:
        for request in alternatives.requests:
            if request.device_class not in classes:
                return f"request {request.name}: device class {request.device_class} does not exist"
    return ""
