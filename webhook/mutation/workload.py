"""Read the workload from the annotations of a pod and the defaults of its namespace."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from webhook.kube.field import FieldError, InvalidInput, forbidden
from webhook.kube.resources import extended_resource_names
from webhook.mutation.annotations import Annotations
from webhook.policy.accelerator import Accelerator
from webhook.policy.keys import WITHOUT_EFFECT, Keys
from webhook.policy.placement_check import CheckMode
from webhook.policy.policy import Policy, allows_namespace, matches_any, namespaces_of_product, opt_out_namespaces
from webhook.policy.workload_type import NodeUsage, WorkloadType

STRICTNESS: Sequence[CheckMode] = ("off", "warn", "deny")


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload that the annotations of a pod describe. Amounts without an annotation are None."""

    type_name: str
    type: WorkloadType
    accelerator: Accelerator
    products: tuple[str, ...]
    gpu_memory_mib: int | None
    gpu_count: int | None
    gpu_driver: int | None
    bin_packing: bool
    scheduler: str | None
    scheduler_is_requested: bool
    check_mode: CheckMode


@dataclass(frozen=True, slots=True)
class WorkloadReading:
    """The workload, if the pod has a valid type that its namespace may use, with errors and warnings.

    `errors` are invalid values, `denials` are privileges that the namespace lacks. The workload includes neither.
    """

    type_name: str | None
    workload: Workload | None
    errors: tuple[FieldError, ...] = ()
    denials: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


def opts_out(pod_annotations: Mapping[str, str], namespace: Mapping[str, str], policy: Policy) -> bool:
    """Return whether the pod, or by default its namespace, opts out."""
    return (Annotations(pod_annotations, "", namespace, policy).text(policy.keys.inject) or "").strip() == "disabled"


def read_workload(
    pod: Mapping[str, Any],
    namespace: str,
    defaults: Mapping[str, str],
    policy: Policy,
    extended_resources: Sequence[str] | None = None,
) -> WorkloadReading:
    """Return the workload of `pod`, which must not opt out, from its annotations and the defaults of its namespace.

    `defaults` are the annotations of the namespace. `extended_resources` are the resources that the pod requests; None:
    they are read from the pod.
    """
    if extended_resources is None:
        extended_resources = _extended_resources(pod)
    own: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    annotations = Annotations(own, namespace, defaults, policy)
    key = policy.keys.workload_type
    value = annotations.text(key)
    if value is None:
        return WorkloadReading(None, None, warnings=tuple(_misspelt_keys(own, policy)))
    warnings = _misspelt_keys(own, policy)
    if opts_out(own, defaults, policy):
        allowed = ", ".join(opt_out_namespaces(policy.spec)) or "none"
        detail = f'"disabled" has no effect in namespace "{namespace}": the policy allows it in {allowed}'
        warnings.append(f"{policy.keys.inject}: {detail}")
    type_name = annotations.read(Keys.workload_type)
    workload_type = policy.spec.workload_types.get(type_name or "")
    is_allowed = workload_type is not None and allows_namespace(workload_type, namespace)
    denials = []
    if workload_type is not None and not is_allowed:
        detail = f'namespace "{namespace}" may not ask for workload type "{type_name}"'
        denials.append(_denial(annotations.path(key), detail, workload_type.allowed_namespaces))
    # Read even if the type is invalid, so that all invalid annotations are reported at once.
    requested = _requested_workload(
        annotations, extended_resources, type_name or "", workload_type or _ANY_TYPE, policy, warnings
    )
    denied_products = list(_denied_products(annotations.path(policy.keys.gpu_product), requested, namespace, policy))
    if denied_products:
        denials += denied_products
        requested = replace(requested, products=())
    warnings += _without_effect_yet(annotations, policy)
    workload = requested if is_allowed else None
    return WorkloadReading(value.strip(), workload, tuple(annotations.errors), tuple(denials), tuple(warnings))


def _denied_products(path: str, requested: Workload, namespace: str, policy: Policy) -> Iterator[FieldError]:
    for product in requested.products:
        allowed = namespaces_of_product(policy.spec, product)
        if allowed is not None and not matches_any(namespace, allowed):
            yield _denial(path, f'namespace "{namespace}" may not ask for product "{product}"', allowed)


def _denial(path: str, detail: str, allowed: Sequence[str]) -> FieldError:
    return forbidden(path, f"{detail}; allowed namespaces: {', '.join(allowed) or 'none'}")


# Placeholder for an unknown type, while the other annotations are validated.
_ANY_TYPE = WorkloadType(node_usage=NodeUsage(allow=("any",)))


def _requested_workload(
    annotations: Annotations,
    extended_resources: Sequence[str],
    type_name: str,
    workload_type: WorkloadType,
    policy: Policy,
    warnings: list[str],
) -> Workload:
    annotations.read(Keys.inject)
    products = annotations.read(Keys.gpu_product) or ()
    bin_packing = annotations.read(Keys.bin_packing)
    scheduler = annotations.read(Keys.scheduler)
    accelerators = policy.accelerators_of(extended_resources)
    if len(accelerators) > 1 and products:
        names = ", ".join(accelerator.name for accelerator in accelerators)
        warnings.append(f"the pod requests cards of {names}; its gpu- annotations are read as {accelerators[0].name}'s")
    return Workload(
        type_name=type_name,
        type=workload_type,
        accelerator=(accelerators or policy.spec.accelerators)[0],
        products=products,
        gpu_memory_mib=annotations.read(Keys.gpu_memory),
        gpu_count=annotations.read(Keys.gpu_count),
        gpu_driver=annotations.read(Keys.gpu_driver),
        bin_packing=workload_type.bin_packing if bin_packing is None else bin_packing == "true",
        scheduler=workload_type.scheduler_name if scheduler is None else scheduler,
        scheduler_is_requested=scheduler is not None,
        check_mode=_check_mode(annotations.read(Keys.placement_check), policy, warnings),
    )


def _extended_resources(pod: Mapping[str, Any]) -> Sequence[str]:
    """Return the extended resources of a pod; none if its resources are malformed, which the API server rejects."""
    try:
        return extended_resource_names(pod)
    except InvalidInput:
        return ()


def _check_mode(value: str | None, policy: Policy, warnings: list[str]) -> CheckMode:
    check = policy.spec.placement_check
    floor = STRICTNESS.index(check.floor)
    if value is None:
        return STRICTNESS[max(STRICTNESS.index(check.mode), floor)]
    if STRICTNESS.index(value) < floor:
        warnings.append(f'placement-check "{value}" is laxer than the policy\'s floor; "{check.floor}" holds')
    return STRICTNESS[max(STRICTNESS.index(value), floor)]


def _without_effect_yet(annotations: Annotations, policy: Policy) -> list[str]:
    present = []
    for annotation in WITHOUT_EFFECT:
        annotations.read(annotation)
        key = policy.keys.of(annotation)
        if annotations.text(key) is not None:
            present.append(key)
    return [f"nothing acts on {', '.join(present)} yet: the pod is scheduled as without"] if present else []


# The comparison is slow, and a pod may have thousands of annotations.
_MOST_COMPARED = 20


def _misspelt_keys(annotations: Mapping[str, str], policy: Policy) -> list[str]:
    """Return warnings for keys similar to a known one. Other keys are ignored: the domain belongs to the company."""
    prefix = policy.spec.key_domain + "/"
    ours = {*policy.keys, policy.policy_annotation, policy.rules_annotation}
    unknown = [key for key in annotations if key.startswith(prefix) and key not in ours]
    return [
        f"annotation {key} is not known and does nothing; did you mean {close[0]}?"
        for key in unknown[:_MOST_COMPARED]
        if (close := get_close_matches(key, policy.keys, 1, 0.9))
    ]
