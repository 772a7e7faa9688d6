"""The claim that kube-scheduler creates on each node for extended resources that a DeviceClass backs.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from webhook.cluster.dra.devices import Devices
from webhook.cluster.dra.resource_claim import Alternatives, DeviceRequest, ResourceClaim
from webhook.cluster.index.labels import Mask
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.kube.deadline import Expired, in_time
from webhook.kube.pod.amounts import may_name_device_class
from webhook.kube.pod.resources import ContainerRequests
from webhook.placement.pod.pod_info import PodInfo

_NAME = "<extended-resources>"


class ExtendedResourceNeed(NamedTuple):
    """The nodes in `rows` that lack the same backed resources, and the claim for these, or None if they lack none."""

    rows: Rows
    claim: ResourceClaim | None


class ExtendedResourceClaims(NamedTuple):
    """The claims that a pod's extended resources need on each node.

    `lacks_resource` is a mask of the nodes that lack a resource that no DeviceClass backs. `is_known` is False if the
    class of a resource is not known.
    """

    needs: Sequence[ExtendedResourceNeed]
    lacks_resource: Mask
    is_known: bool


def extended_resource_claims(pod: PodInfo, nodes: Snapshot, expired: Expired) -> ExtendedResourceClaims:
    """Return the claims that the extended resources of `pod` need on each of `nodes`."""
    count = len(nodes.nodes)
    everywhere = np.arange(count)
    lacks_resource = np.zeros(count, dtype=np.bool_)
    resources = [name for name, _ in pod.requests if may_name_device_class(name)] if pod.by_container else []
    if not any(map(nodes.devices.back, resources)):
        return ExtendedResourceClaims((ExtendedResourceNeed(everywhere, None),), lacks_resource, is_known=True)
    backed = []
    for name in in_time(resources, expired):
        if nodes.devices.back(name):
            backed.append(name)
        else:
            lacks_resource |= ~_lists_in_allocatable(name, nodes)
    needs = [
        ExtendedResourceNeed(rows, _claim(pod, lacking, nodes.devices))
        for rows, lacking in _rows_by_lacking(backed, nodes, expired)
    ]
    return ExtendedResourceClaims(needs, lacks_resource, all(map(nodes.devices.is_class_known, backed)))


def _lists_in_allocatable(resource: str, nodes: Snapshot) -> Mask:
    """Return the nodes that list the resource in `allocatable`, even with an amount of 0."""
    offered = nodes.allocatable(resource) > 0
    if offered.all() or resource not in nodes.allocatable_columns:
        return offered
    return np.array([resource in info.node.allocatable for info in nodes.nodes], dtype=np.bool_)


def _rows_by_lacking(backed: Sequence[str], nodes: Snapshot, expired: Expired) -> Iterator[tuple[Rows, frozenset[str]]]:
    """Yield groups of nodes that lack the same `backed` resources, and these resources."""
    kinds: dict[bytes, int] = {}
    lacks = np.array([nodes.allocatable(resource) == 0 for resource in in_time(backed, expired)], dtype=np.bool_)
    kind_of = np.array([kinds.setdefault(each.tobytes(), len(kinds)) for each in lacks.T], dtype=np.intp)
    for kind in range(len(kinds)):
        rows = np.flatnonzero(kind_of == kind)
        yield rows, frozenset([name for name, lacking in zip(backed, lacks[:, rows[0]], strict=True) if lacking])


def _claim(pod: PodInfo, resources: frozenset[str], devices: Devices) -> ResourceClaim | None:
    """Return the claim for `resources`.

    It has at most one request for each container and resource, in the order of names.
    """
    requests = [
        request
        for resource in resources
        if (device_class := devices.class_of(resource)) is not None
        for request in _requests(resource, device_class.name, pod.by_container)
    ]
    if not requests:
        return None
    return ResourceClaim(
        namespace="",
        name=_NAME,
        requests=tuple([Alternatives((each,), is_list=False) for each in sorted(requests, key=lambda each: each.name)]),
        constraints=(),
        is_being_deleted=False,
        allocation=None,
    )


class _ContainerDevices(NamedTuple):
    """The number of devices that one container needs; `position` is the index of the resource among its requests."""

    place: int
    position: int
    amount: int
    is_short_lived: bool

    def request(self, class_name: str) -> DeviceRequest:
        return DeviceRequest(f"container-{self.place}-request-{self.position}", class_name, amount=self.amount)


def _requests(resource: str, class_name: str, by_container: Sequence[ContainerRequests]) -> Iterator[DeviceRequest]:
    """Yield the requests for one resource.

    An init container that is not a sidecar uses the devices of the long-lived containers after it. Such init containers
    share the devices that they need in addition, so the largest additional amount is one request.
    """
    needs = list(_container_devices(resource, by_container))
    later = sum(need.amount for need in needs if not need.is_short_lived)
    rests = []
    for need in needs:
        if not need.is_short_lived:
            later -= need.amount
            yield need.request(class_name)
        elif need.amount > later:
            rests.append(need._replace(amount=need.amount - later))
    if rests:
        yield max(rests, key=lambda need: need.amount).request(class_name)


def _container_devices(resource: str, by_container: Sequence[ContainerRequests]) -> Iterator[_ContainerDevices]:
    """Yield the devices that each container needs. Fractional amounts are skipped, as in kube-scheduler."""
    for place, is_short_lived, amounts in by_container:
        milli = dict(amounts).get(resource, 0)
        if milli and milli % 1000 == 0:
            position = sorted([name for name, _ in amounts]).index(resource)
            yield _ContainerDevices(place, position, milli // 1000, is_short_lived)
