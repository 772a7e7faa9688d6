"""DynamicResources: a pod that claims devices of a class that there is not goes nowhere."""

from collections.abc import Iterator

import numpy as np

from webhook.cluster.deadline import Expired, never
from webhook.cluster.devices import DeviceClaim
from webhook.cluster.snapshot import Column, Rows, Snapshot
from webhook.placement.plugin import Preselection
from webhook.placement.pod_info import PodInfo


class DynamicResources:
    """Knows device classes, claims and templates of claims; not devices, which it takes to be there.

    A claim that is still to be made from a template is judged by the template.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go
    """

    name = "DynamicResources"

    def pre_filter(self, pod: PodInfo, nodes: Snapshot) -> Preselection:
        """No node, where a request of a claim of `pod` names a device class that there is not."""
        classes = nodes.devices.classes
        for claim in _claims(pod, nodes) if classes is not None else ():
            for request in claim.requests if not claim.is_allocated else ():
                if classes is not None and request.device_class not in classes:
                    reason = f"request {request.name}: device class {request.device_class} does not exist"
                    return Preselection(refusal=reason)
        return Preselection()

    def skips(self, pod: PodInfo) -> bool:
        """Never."""
        return False

    def score(self, pod: PodInfo, nodes: Snapshot, rows: Rows, expired: Expired = never) -> Column:
        """0: which of several alternatives a node has is not known."""
        return np.zeros(len(rows), dtype=np.int64)


def _claims(pod: PodInfo, nodes: Snapshot) -> Iterator[DeviceClaim]:
    for use in pod.device_claims:
        known = nodes.devices.templates if use.is_template else nodes.devices.claims
        claim = known.get((use.namespace, use.name))
        if claim is not None:
            yield claim
