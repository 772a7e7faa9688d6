"""DynamicResources: a pod goes where the devices that its claims ask for are free, or where those are that they got."""

from collections.abc import Sequence

import numpy as np

from webhook.cluster.dra.resource_claim import ResourceClaim
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.kube.deadline import Expired, never
from webhook.placement.dra.feasibility import device_feasibility, resource_claim
from webhook.placement.framework.interface import Failure, PreFilterResult, default_normalize
from webhook.placement.pod.pod_info import PodInfo, PodResourceClaim

ERR_REASON_CANNOT_FIT = "cannot fit resource"
ERR_REASON_STALE_CLAIM = "cannot schedule extended resource claim"
ERR_REASON_CANNOT_ALLOCATE = "cannot allocate all claims"
ERR_REASON_INVALID_POOLS = "invalid resource pools were encountered"
ERR_REASON_NOT_AVAILABLE = "resourceclaim not available on the node"


class DynamicResources:
    """Looks for devices in the ResourceSlices that a node reaches, for all claims of a pod that have none yet.

    Extended resources that a DeviceClass backs, and that the node does not offer itself, are one more claim. A claim
    that is still to be made from a template is judged by the template. On emptied nodes all devices are free.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go
    """

    name = "DynamicResources"

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> PreFilterResult:
        """No node, where a claim of `pod` is not fit for use, or a request names a device class that there is not."""
        for use in pod.device_claims:
            claim = resource_claim(use, nodes.devices)
            if reason := _claim_rejection(use, claim, nodes):
                return PreFilterResult(reason=reason, is_transient=True)
            if claim is not None and (reason := _unknown_class_rejection(claim, nodes)):
                return PreFilterResult(reason=reason)
        return PreFilterResult()

    def filter(self, pod: PodInfo, nodes: Snapshot, expired: Expired = never) -> Sequence[Failure]:
        """The nodes with too few of the devices that are asked for, or too far from those that a claim has got."""
        if not (pod.device_claims or pod.by_container):
            return ()
        if pod.stored in nodes.devices.extended_claims and not nodes.is_without_pods:
            # kube-scheduler deletes the claim of an earlier attempt, and then tries again.
            return (Failure(ERR_REASON_STALE_CLAIM, np.ones(len(nodes.nodes), dtype=np.bool_)),)
        fit = device_feasibility(pod, nodes, expired)
        return (
            Failure(ERR_REASON_CANNOT_FIT, fit.unoffered),
            Failure(ERR_REASON_CANNOT_ALLOCATE, fit.unallocatable),
            Failure(ERR_REASON_INVALID_POOLS, fit.invalid),
            Failure(ERR_REASON_NOT_AVAILABLE, fit.unavailable),
        )

    def skips(self, pod: PodInfo) -> bool:
        """Never."""
        return False

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column:
        """How far up in lists of alternatives the claims come."""
        if not pod.device_claims:
            return np.zeros(len(rows), dtype=np.int64)
        return default_normalize(device_feasibility(pod, nodes, expired).preferred[rows])


def _claim_rejection(use: PodResourceClaim, claim: ResourceClaim | None, nodes: Snapshot) -> str:
    """Why the claim does not let the pod into the scheduling queue; empty where it does, or is not known."""
    if claim is not None:
        if claim.is_being_deleted and not use.is_template:
            return f'resourceclaim "{claim.name}" is being deleted'
        if use.owner and claim.controller_uid != use.owner.uid:
            owned = f"ResourceClaim {use.namespace}/{use.name}"
            return f"{owned} was not created for Pod {use.namespace}/{use.owner.name} (Pod is not owner)"
        return ""
    known = nodes.devices.templates if use.is_template else nodes.devices.claims
    if known is None:
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
