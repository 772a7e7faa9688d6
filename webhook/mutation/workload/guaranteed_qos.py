"""Find the amounts that a pod lacks for the QoS class Guaranteed, and those of them that can be set."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from webhook.documents.field import FieldError, forbidden
from webhook.documents.text import cut
from webhook.kube.pod.amounts import CPU
from webhook.kube.pod.qos import COMPUTE_RESOURCES, ComputeResources, compute_resources, container_resources
from webhook.kube.reader import Reader
from webhook.mutation.edits.editor import Path, PodEditor
from webhook.mutation.edits.node_terms import LONGEST_SHOWN
from webhook.policy.spec.workloads import WorkloadType

# A pod can have thousands of containers.
MOST_REPORTED = 5


@dataclass(frozen=True, slots=True)
class GuaranteedQos:
    """`amounts` are (path, value) of the requests and limits to set if missing.

    `gaps` name what the pod still lacks then.
    """

    amounts: tuple[tuple[Path, Any], ...] = ()
    gaps: tuple[FieldError, ...] = ()


def read_guaranteed_qos(pod: Mapping[str, Any], type_name: str, workload_type: WorkloadType) -> GuaranteedQos | None:
    """Return the GuaranteedQos of `pod`, empty if its resources are malformed, or None if not required."""
    if workload_type.qos.class_ is None:
        return None
    reader = Reader(pod)
    parts = compute_resources(reader)
    apps = list(container_resources(reader.object("spec"), "containers")) if workload_type.qos.whole_cpus else []
    if reader.errors:
        return GuaranteedQos()
    fills_limits = workload_type.qos.limits_from_requests
    editor = PodEditor(dict(pod))
    amounts = tuple(each for part in parts for each in _amounts(editor, part, fills_limits=fills_limits))
    end = f'workload type "{type_name}" asks for QoS class Guaranteed'
    found = [gap for part in parts for gap in _gaps(part, end, fills_limits=fills_limits)]
    found += [gap for part in apps for gap in _fractions(part, end)]
    return GuaranteedQos(amounts, tuple(islice(found, MOST_REPORTED)))


def _amounts(pod: PodEditor, part: ComputeResources, *, fills_limits: bool) -> Iterator[tuple[Path, Any]]:
    """Yield the requests to set from limits, and the limits to set from requests."""
    for name in COMPUTE_RESOURCES:
        if name in part.limits and part.requests.get(name) == part.limits[name]:
            yield (*part.place, "requests", name), pod.get(*part.place, "limits", name)
        elif name not in part.limits and name in part.requests and fills_limits:
            # A request of the pod can be one that the API server has not written yet: the sum of the containers'.
            value = pod.get(*part.place, "requests", name)
            if value is not None:
                yield (*part.place, "limits", name), value


def _gaps(part: ComputeResources, end: str, *, fills_limits: bool) -> Iterator[FieldError]:
    for name in COMPUTE_RESOURCES:
        if name not in part.limits:
            if not (fills_limits and name in part.requests):
                yield forbidden(_field(part, "limits", name), f"{_owner(part)} has no {name} limit, but {end}")
        elif part.requests.get(name) != part.limits[name]:
            detail = f"{_owner(part)} requests less {name} than its limit, but {end}"
            yield forbidden(_field(part, "requests", name), detail)


def _fractions(part: ComputeResources, end: str) -> Iterator[FieldError]:
    cpu = part.requests.get(CPU, 0)
    if cpu == 0 or cpu % 1000:
        detail = f"{_owner(part)} does not request a whole number of CPUs, but {end} with whole CPUs"
        yield forbidden(_field(part, "requests", CPU), detail)


def _owner(part: ComputeResources) -> str:
    return "the pod" if part.container is None else f'container "{cut(part.container, LONGEST_SHOWN)}"'


def _field(part: ComputeResources, kind: str, name: str) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in part.place)
    return f"{place[1:]}.{kind}.{name}"
