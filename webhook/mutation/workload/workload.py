"""Read the workload from the annotations of a pod and the defaults of its namespace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.documents.field import FieldError, required
from webhook.kube.pod.resources import requested_extended_resources
from webhook.mutation.workload.annotations import Annotations, keys_without_type, stray_keys
from webhook.mutation.workload.batch_scheduling import BatchScheduling, ignored_constraints, read_batch_scheduling
from webhook.mutation.workload.card_amounts import CardAmounts
from webhook.mutation.workload.card_request import CardRequest, is_of_kai, without_card_warnings
from webhook.mutation.workload.gathering import Gathering, read_gathering
from webhook.mutation.workload.guaranteed_qos import GuaranteedQos, read_guaranteed_qos
from webhook.mutation.workload.permissions import allowed_defaults, limit_denials, read_products, read_type
from webhook.mutation.workload.spreading import Spreading, read_spreading
from webhook.policy.keys import Keys
from webhook.policy.policy import Policy, opt_out_namespaces
from webhook.policy.products import AnyProduct, accepted_products, any_product
from webhook.policy.spec.accelerators import Accelerator
from webhook.policy.spec.admission import CheckMode
from webhook.policy.spec.workloads import NodeUsage, WorkloadType

STRICTNESS: Sequence[CheckMode] = ("off", "warn", "deny")


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload that the annotations of a pod describe. Amounts without an annotation are None."""

    type_name: str
    type: WorkloadType
    accelerator: Accelerator
    """The accelerator whose labels the annotations mean."""
    requested_accelerators: tuple[Accelerator, ...]
    products: tuple[str, ...]
    """The products that will do, with their variants."""
    any_product: AnyProduct | None
    """The products that will do for a pod that requests an accelerator and names no product."""
    amounts: CardAmounts
    bin_packing: bool
    scheduler: str | None
    scheduler_is_requested: bool
    check_mode: CheckMode
    batch: BatchScheduling
    """The scheduler that the pod will have, and what is requested of it."""
    qos: GuaranteedQos | None = None
    """The amounts to set and the gaps for its QoS class, or None if its type asks for none."""
    spreading: Spreading | str = ""
    """The spreading of the replicas, or the reason why they are not spread."""
    gathering: Gathering | str = ""
    """The gathering of the gang in one topology domain, or the reason why it is not; empty if nothing requests it."""


@dataclass(frozen=True, slots=True)
class WorkloadReading:
    """The workload, if the pod has a valid type that its namespace may use, with errors and warnings.

    `errors` are invalid values, and `denials` are values that the namespace may not use. The workload includes neither.
    Without a workload, `bypass_reason` is the reason to inject nothing if the pod is admitted. `is_forbidden` is true
    if the namespace may not use a value that the pod, or a default of the namespace, requests.
    """

    type_name: str | None
    workload: Workload | None
    errors: tuple[FieldError, ...] = ()
    denials: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    bypass_reason: str = ""
    is_forbidden: bool = False


def opts_out(pod_annotations: Mapping[str, str], namespace: Mapping[str, str], policy: Policy) -> bool:
    """Return whether the pod opts out of the injection, by its own annotation or by that of its namespace."""
    return (Annotations(pod_annotations, "", namespace, policy).text(policy.keys.inject) or "").strip() == "disabled"


def read_workload(
    pod: Mapping[str, Any],
    namespace: str,
    defaults: Mapping[str, str],
    policy: Policy,
    extended_resources: Sequence[str] | None = None,
) -> WorkloadReading:
    """Return the workload of `pod`, which must not opt out, from its annotations and the defaults of its namespace.

    `defaults` are the annotations of the namespace. `extended_resources` are the extended resources that the pod
    requests; if it is None, they are read from the pod.
    """
    if extended_resources is None:
        extended_resources = requested_extended_resources(pod)
    own: Mapping[str, str] = pod["metadata"].get("annotations") or {}
    request = CardRequest.of(pod, own, extended_resources, policy)
    applied = request.applicable_defaults(defaults, policy)
    applied, denied_defaults = allowed_defaults(applied, own, namespace, policy)
    key, has_card = policy.keys.workload_type, request.accelerators or request.has_share
    required_type = policy.spec.require_type if has_card else None
    if required_type is not None and required_type in policy.spec.workload_types:
        applied = {key: required_type, **applied}
    annotations = Annotations(own, namespace, applied, policy)
    warnings = [*stray_keys(own, pod["metadata"].get("labels") or {}, policy), *denied_defaults]
    if annotations.text(key) is None:
        return _without_type(own, warnings, policy, required_type, type_is_left_out=key in defaults)
    type_name, denials = read_type(annotations, namespace, policy)
    if annotations.ignored:
        warnings += [*annotations.ignored, *keys_without_type(own, policy)]
        reason = "invalid default of the namespace"
        return WorkloadReading(None, None, warnings=tuple(warnings), bypass_reason=reason, is_forbidden=True)
    if opts_out(own, applied, policy):
        allowed = ", ".join(opt_out_namespaces(policy.spec)) or "none"
        detail = f'"disabled" has no effect in namespace "{namespace}": the policy allows it in {allowed}'
        warnings.append(f"{policy.keys.inject}: {detail}")
    # Read even if the type is invalid, so that all invalid annotations are reported at once.
    workload = _requested_workload(annotations, request, pod, type_name, namespace, policy, warnings, denials)
    if policy.keys.reclaim in own or policy.keys.reclaim in applied:
        # No rule reads it; a wrong value would not protect the pod.
        annotations.read(Keys.reclaim)
    warnings += annotations.ignored
    beyond_limits = [*limit_denials(annotations, pod, workload.batch, namespace, policy)]
    gaps = workload.qos.gaps if workload.qos is not None else ()
    if workload.type.qos.on_missing == "deny":
        beyond_limits += gaps
    else:
        warnings += [f"{each.path}: {each.detail}" for each in gaps]
    denials += beyond_limits
    is_usable = workload.type is not _ANY_TYPE and not beyond_limits
    bypass_reason = "" if is_usable else "invalid annotations"
    if is_usable and not request.may_include_card:
        warnings += without_card_warnings(annotations, request, type_name, namespace, policy)
        if annotations.is_own(key) and policy.spec.without_accelerator.pod_annotations == "leave":
            is_usable, bypass_reason = False, "no accelerator requested"
    type_text, usable = (annotations.text(key) or "").strip(), workload if is_usable else None
    errors, denied = tuple(annotations.errors), tuple(denials)
    return WorkloadReading(type_text, usable, errors, denied, tuple(warnings), bypass_reason, bool(denials))


def _without_type(
    own: Mapping[str, str], warnings: list[str], policy: Policy, required_type: str | None, *, type_is_left_out: bool
) -> WorkloadReading:
    """Return the reading of a pod without a workload type."""
    reason = "no workload type"
    errors: tuple[FieldError, ...] = ()
    if type_is_left_out:
        reason = "no accelerator requested; the workload type is a default of the namespace"
    if required_type is None:
        warnings += keys_without_type(own, policy, type_is_left_out=type_is_left_out)
    else:
        types = ", ".join(sorted(policy.spec.workload_types))
        detail = f"the pod requests an accelerator, and the policy requires a workload type of such pods: {types}"
        missing = required(f"metadata.annotations[{policy.keys.workload_type}]", detail)
        if required_type == "deny":
            errors = (missing,)
        else:
            warnings.append(str(missing))
    return WorkloadReading(None, None, errors, warnings=tuple(warnings), bypass_reason=reason)


# Placeholder for an unknown type, while the other annotations are validated.
_ANY_TYPE = WorkloadType(node_usage=NodeUsage(allow=("any",)))


def _requested_workload(
    annotations: Annotations,
    request: CardRequest,
    pod: Mapping[str, Any],
    type_name: str,
    namespace: str,
    policy: Policy,
    warnings: list[str],
    denials: list[FieldError],
) -> Workload:
    workload_type = policy.spec.workload_types.get(type_name, _ANY_TYPE)
    accelerators = request.accelerators
    annotations.read(Keys.inject)
    products = read_products(annotations, namespace, policy, denials)
    bin_packing = annotations.read(Keys.bin_packing)
    scheduler = annotations.read(Keys.scheduler)
    if len(accelerators) > 1 and products:
        names = ", ".join(accelerator.name for accelerator in accelerators)
        warnings.append(f"the pod requests cards of {names}; its gpu- annotations are read as {accelerators[0].name}'s")
    # A product of the pod's own that is ignored is still one that it wants: not every other product will do.
    names_product = bool(products) or annotations.is_own(policy.keys.gpu_product)
    scheduler_name = workload_type.scheduler_name if scheduler is None else scheduler
    batch = read_batch_scheduling(annotations, workload_type, pod, scheduler_name, accelerators, policy, warnings)
    if request.has_share or (request.has_kai_share and is_of_kai(batch.scheduler, policy)):
        accelerators = policy.spec.accelerators[:1]
    accelerator = (accelerators or policy.spec.accelerators)[0]
    any_will_do = policy.spec.tolerate_any_product and accelerators and not names_product
    spreading = read_spreading(annotations, workload_type, pod, policy, warnings)
    gathering: Gathering | str = ""
    if workload_type.within.topology is not None or annotations.has(policy.keys.within, policy.keys.within_mode):
        of_type = type_name, workload_type
        gathering, spreading = read_gathering(annotations, *of_type, batch, spreading, pod, policy, warnings)
    workload = Workload(
        type_name=type_name,
        type=workload_type,
        accelerator=accelerator,
        requested_accelerators=accelerators,
        products=accepted_products(policy.spec, products, namespace),
        any_product=any_product(policy.spec, namespace) if any_will_do else None,
        amounts=CardAmounts.of(annotations, accelerator),
        bin_packing=workload_type.bin_packing if bin_packing is None else bin_packing == "true",
        scheduler=scheduler_name,
        scheduler_is_requested=scheduler is not None,
        check_mode=_check_mode(annotations.read(Keys.placement_check), policy, warnings),
        batch=batch,
        spreading=spreading,
        gathering=gathering,
        qos=read_guaranteed_qos(pod, type_name, workload_type),
    )
    warnings += ignored_constraints(batch.scheduler, workload_type, spreading, pod, policy)
    return workload


def _check_mode(value: str | None, policy: Policy, warnings: list[str]) -> CheckMode:
    check = policy.spec.placement_check
    floor = STRICTNESS.index(check.floor)
    if value is None:
        return STRICTNESS[max(STRICTNESS.index(check.mode), floor)]
    if STRICTNESS.index(value) < floor:
        warnings.append(f'placement-check "{value}" is laxer than the policy\'s floor; "{check.floor}" holds')
    return STRICTNESS[max(STRICTNESS.index(value), floor)]
