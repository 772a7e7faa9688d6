"""A pod's annotations, and its namespace's behind them, into the workload's intent."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from webhook.kube.field import FieldError, InvalidInput, forbidden
from webhook.kube.resources import extended_resource_names
from webhook.mutation.annotations import Annotations
from webhook.policy.document import Accelerator, CheckMode, NodeUsage, WorkloadType
from webhook.policy.keys import WITHOUT_EFFECT, Keys
from webhook.policy.policy import Policy, allows_namespace, matches_any, namespaces_of_product, opt_out_namespaces

STRICTNESS: Sequence[CheckMode] = ("off", "warn", "deny")


@dataclass(frozen=True, slots=True)
class Workload:
    """What a pod asks of the policy. Amounts that it does not ask for are None."""

    type_name: str
    type: WorkloadType
    accelerator: Accelerator
    products: tuple[str, ...]
    gpu_memory_mib: int | None
    gpu_count: int | None
    gpu_driver: int | None
    bin_packing: bool
    scheduler: str | None
    scheduler_is_asked: bool
    check_mode: CheckMode


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: the workload, if the pod has a valid type that it may ask for, and what is wrong or worth saying.

    `errors` are bad values, `denials` privileges that the namespace lacks; neither is in the workload.
    """

    type_name: str | None
    workload: Workload | None
    errors: tuple[FieldError, ...] = ()
    denials: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


def is_disabled(pod_annotations: Mapping[str, str], namespace: Mapping[str, str], policy: Policy) -> bool:
    """Whether the pod, or else its namespace, asks to be left alone."""
    return (Annotations(pod_annotations, "", namespace, policy).text(policy.keys.inject) or "").strip() == "disabled"


def read_workload(
    pod: Mapping[str, Any],
    namespace: str,
    defaults: Mapping[str, str],
    policy: Policy,
    extended_resources: Sequence[str] | None = None,
) -> Reading:
    """Return what `pod`, which may not opt out, asks for by its annotations and, behind them, those of its namespace.

    `defaults` are the annotations of the namespace; `extended_resources` are those that the pod requests, where they
    have been read before.
    """
    if extended_resources is None:
        extended_resources = _extended_resources(pod)
    own: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    annotations = Annotations(own, namespace, defaults, policy)
    key = policy.keys.workload_type
    asked = annotations.text(key)
    if asked is None:
        return Reading(None, None, warnings=tuple(_misspelt(own, policy)))
    warnings = _misspelt(own, policy)
    if is_disabled(own, defaults, policy):
        allowed = ", ".join(opt_out_namespaces(policy.spec)) or "none"
        told = f'"disabled" has no effect in namespace "{namespace}": the policy allows it in {allowed}'
        warnings.append(f"{policy.keys.inject}: {told}")
    type_name = annotations.read(Keys.workload_type)
    workload_type = policy.spec.workload_types.get(type_name or "")
    may_ask = workload_type is not None and allows_namespace(workload_type, namespace)
    denials = []
    if workload_type is not None and not may_ask:
        detail = f'namespace "{namespace}" may not ask for workload type "{type_name}"'
        denials.append(_denial(annotations.path(key), detail, workload_type.allowed_namespaces))
    # Read even where the type is bad, so that every bad key is named at once.
    intent = _intent(annotations, extended_resources, type_name or "", workload_type or _ANY_TYPE, policy, warnings)
    denied_products = list(_denied_products(annotations.path(policy.keys.gpu_product), intent, namespace, policy))
    if denied_products:
        denials += denied_products
        intent = replace(intent, products=())
    warnings += _without_effect_yet(annotations, policy)
    workload = intent if may_ask else None
    return Reading(asked.strip(), workload, tuple(annotations.errors), tuple(denials), tuple(warnings))


def _denied_products(path: str, intent: Workload, namespace: str, policy: Policy) -> Iterator[FieldError]:
    for product in intent.products:
        allowed = namespaces_of_product(policy.spec, product)
        if allowed is not None and not matches_any(namespace, allowed):
            yield _denial(path, f'namespace "{namespace}" may not ask for product "{product}"', allowed)


def _denial(path: str, detail: str, allowed: Sequence[str]) -> FieldError:
    return forbidden(path, f"{detail}; allowed namespaces: {', '.join(allowed) or 'none'}")


# Stands in for a type that is not known, while the other annotations are read for their errors.
_ANY_TYPE = WorkloadType(node_usage=NodeUsage(allow=("any",)))


def _intent(
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
        scheduler_is_asked=scheduler is not None,
        check_mode=_check_mode(annotations.read(Keys.placement_check), policy, warnings),
    )


def _extended_resources(pod: Mapping[str, Any]) -> Sequence[str]:
    """The extended resources of a pod; none where its resources are malformed, which the API server refuses itself."""
    try:
        return extended_resource_names(pod)
    except InvalidInput:
        return ()


def _check_mode(asked: str | None, policy: Policy, warnings: list[str]) -> CheckMode:
    check = policy.spec.placement_check
    floor = STRICTNESS.index(check.floor)
    if asked is None:
        return STRICTNESS[max(STRICTNESS.index(check.mode), floor)]
    if STRICTNESS.index(asked) < floor:
        warnings.append(f'placement-check "{asked}" is laxer than the policy\'s floor; "{check.floor}" holds')
    return STRICTNESS[max(STRICTNESS.index(asked), floor)]


def _without_effect_yet(annotations: Annotations, policy: Policy) -> list[str]:
    present = []
    for annotation in WITHOUT_EFFECT:
        annotations.read(annotation)
        key = policy.keys.of(annotation)
        if annotations.text(key) is not None:
            present.append(key)
    return [f"nothing acts on {', '.join(present)} yet: the pod is scheduled as without"] if present else []


# Comparing is slow, and a pod may have thousands of annotations.
_LOOKED_AT = 20


def _misspelt(annotations: Mapping[str, str], policy: Policy) -> list[str]:
    """Warnings for keys close to one of ours. Others under the domain are let be: it is the company's own."""
    prefix = policy.spec.key_domain + "/"
    ours = {*policy.keys, policy.policy_annotation, policy.rules_annotation}
    unknown = [key for key in annotations if key.startswith(prefix) and key not in ours]
    return [
        f"annotation {key} is not known and does nothing; did you mean {close[0]}?"
        for key in unknown[:_LOOKED_AT]
        if (close := get_close_matches(key, policy.keys, 1, 0.9))
    ]
