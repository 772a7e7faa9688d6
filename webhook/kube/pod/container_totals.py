"""The sum of the requests of a pod's containers, including the resources that the kubelet reports during a resize.

Amounts are in thousandths.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from webhook.documents.parts import listed
from webhook.kube.pod.amounts import peak_of, read_milli
from webhook.kube.pod.pod_status import RESIZE_PENDING
from webhook.kube.reader import Reader

Milli = dict[str, int]


class Container(NamedTuple):
    """The requests of one container. A missing request defaults to the limit."""

    name: str
    requests: dict[str, int]
    is_sidecar: bool

    @classmethod
    def of(cls, container: Reader) -> "Container":
        """Return the requests of `container`."""
        requests: dict[str, int] = {}
        if container.raw.get("resources") is not None:
            resources = container.object("resources")
            requests = read_milli(resources, "limits") | read_milli(resources, "requests")
        return cls(container.text("name"), requests, container.raw.get("restartPolicy") == "Always")


class _Reported(NamedTuple):
    """The resources in a status: actual resources that the kubelet has set, and allocated ones.

    Each is None if absent.
    """

    actuated: Milli | None
    allocated: Milli | None

    @classmethod
    def of(cls, status: Reader) -> "_Reported":
        resources = status.object("resources")
        return cls(
            None if resources.raw.get("requests") is None else read_milli(resources, "requests"),
            None if status.raw.get("allocatedResources") is None else read_milli(status, "allocatedResources"),
        )


class Resize(NamedTuple):
    """The resources in the status of a running pod, by container and for the pod as a whole.

    `is_infeasible` is true if the node can never allocate what the spec requests. `has_pod_resources` is true if the
    pod as a whole has resources, perhaps empty ones.

    Source: k8s.io/component-helpers/resource/helpers.go, AggregateContainerRequests and effectivePodLevelResources
    """

    by_container: Mapping[str, _Reported]
    of_whole_pod: _Reported
    is_infeasible: bool
    has_pod_resources: bool

    @classmethod
    def of(cls, status: Reader) -> "Resize | None":
        """Return the resources that `status` reports, or None if it reports none."""
        by_container: dict[str, _Reported] = {}
        for field in ("containerStatuses", "initContainerStatuses"):
            for container in status.objects(field):
                by_container.setdefault(container.text("name"), _Reported.of(container))
        pending = [
            each.get("reason") for each in listed(status.raw, "conditions") if each.get("type") == RESIZE_PENDING
        ]
        is_infeasible = pending[:1] == ["Infeasible"]
        of_pod = _Reported.of(status)
        if not is_infeasible and all(each == (None, None) for each in (of_pod, *by_container.values())):
            return None
        return cls(by_container, of_pod, is_infeasible, status.raw.get("resources") is not None)

    def of_pod(self, spec: Milli) -> Milli:
        """Return the effective pod-level requests for `spec`, those of the spec, which must not be empty."""
        if not self.has_pod_resources:
            return spec
        found = peak_of(self.of_whole_pod.actuated or {}, self.of_whole_pod.allocated or {})
        return found if self.is_infeasible else peak_of(spec, found)

    def views(self, containers: Sequence[Container]) -> tuple[list[Container], list[Container]]:
        """Return `containers` with their allocated resources, and `containers` with their actual resources."""
        allocated, actuated = [], []
        for container in containers:
            reported = self.by_container.get(container.name, _Reported(None, None))
            rest = {} if self.is_infeasible else container.requests
            allocated_requests = rest if reported.allocated is None else reported.allocated
            allocated.append(container._replace(requests=allocated_requests))
            actuated.append(
                container._replace(requests=allocated_requests if reported.actuated is None else reported.actuated)
            )
        return allocated, actuated


def aggregate(
    containers: Sequence[Container],
    init_containers: Sequence[Container],
    defaults: Mapping[str, int],
    resize: Resize | None = None,
) -> Milli:
    """Return the sum of the requests of all containers: the maximum of requested, allocated and actual resources.

    `defaults` replace missing requests of a container. Without a `resize`, only the requested resources count.

    Source: k8s.io/component-helpers/resource/helpers.go, AggregateContainerRequests
    """
    if resize is None:
        return _together(containers, init_containers, defaults)
    whole = resize.of_whole_pod
    if whole.actuated is not None and whole.allocated is not None:
        totals = [whole.allocated, whole.actuated]
    else:
        views = zip(resize.views(containers), resize.views(init_containers), strict=True)
        totals = [_together(view, of_init, defaults) for view, of_init in views]
    if not resize.is_infeasible:
        totals.append(_together(containers, init_containers, defaults))
    return reduce(peak_of, totals)


def _together(
    containers: Sequence[Container], init_containers: Sequence[Container], defaults: Mapping[str, int]
) -> Milli:
    """Return the maximum by resource of the sum of all containers and the peak of the init containers.

    An init container runs together with the sidecars before it; sidecars keep running with the containers.
    """
    total: dict[str, int] = {}
    for container in containers:
        for name, amount in {**defaults, **container.requests}.items():
            total[name] = total.get(name, 0) + amount
    peak: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in init_containers:
        for name, amount in {**defaults, **container.requests}.items():
            # The resources of only the sidecars are skipped: they are in the total.
            running = sidecars.get(name, 0) + amount
            peak[name] = max(peak.get(name, 0), running)
            if container.is_sidecar:
                total[name] = total.get(name, 0) + amount
                sidecars[name] = running
    return peak_of(total, peak)
