"""Determine whether a pod requests an accelerator, and handle other pods as `withoutAccelerator` of the policy says."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.backends.kai import Kai
from webhook.backends.registry import backend_of
from webhook.documents.text import cut
from webhook.kube.names import DEFAULT_SCHEDULER, KAI_SHARES
from webhook.kube.pod.amounts import DEVICE_CLASS_PREFIX
from webhook.mutation.edits.node_terms import LONGEST_SHOWN
from webhook.mutation.workload.annotations import Annotations, is_one_edit
from webhook.policy.keys import ANNOTATIONS
from webhook.policy.policy import Policy
from webhook.policy.spec.accelerators import Accelerator

# A pod can request thousands of resources.
_MOST_SHOWN = 3

ABOUT_CARDS = tuple(annotation for annotation in ANNOTATIONS if annotation.rule == "GpuProduct")
"""The annotations that select nodes by their cards."""


@dataclass(frozen=True, slots=True)
class CardRequest:
    """The accelerators that a pod requests by extended resources, and its other extended resources."""

    accelerators: tuple[Accelerator, ...]
    extended_resources: tuple[str, ...]
    has_claims: bool
    """Claims for devices (DRA) can be for an accelerator; the patch does not depend on the claims themselves. A
    resource with the name of a DeviceClass is a claim, too."""
    has_share: bool
    """The pod requests a share of a card by an annotation instead: that of the policy or, with KAI, one of KAI."""
    has_kai_share: bool
    """It has an annotation of KAI, which is a request for a share if its scheduler will be KAI."""

    @classmethod
    def of(
        cls, pod: Mapping[str, Any], own: Mapping[str, str], extended_resources: Sequence[str], policy: Policy
    ) -> "CardRequest":
        """Return the request of `pod`, whose annotations are `own`, for the `extended_resources`."""
        accelerators = tuple(policy.accelerators_of(extended_resources))
        has_claims = bool(pod["spec"].get("resourceClaims"))
        has_share = has_kai_share = False
        if not accelerators:
            has_claims = has_claims or DEVICE_CLASS_PREFIX in " ".join(extended_resources)
            has_kai_share = not own.keys().isdisjoint(KAI_SHARES)
            scheduler = pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER
            has_share = policy.keys.gpu_fraction in own or (has_kai_share and is_of_kai(scheduler, policy))
        return cls(accelerators, tuple(extended_resources), has_claims, has_share, has_kai_share)

    @property
    def may_include_card(self) -> bool:
        """Return whether the pod requests an accelerator, or has a claim that may request one."""
        return bool(self.accelerators) or self.has_claims or self.has_share

    def applicable_defaults(self, defaults: Mapping[str, str], policy: Policy) -> Mapping[str, str]:
        """Return the part of the namespace's `defaults` that applies to the pod."""
        if self.may_include_card or policy.spec.without_accelerator.namespace_defaults != "leave":
            return defaults
        # These restrict a pod and inject nothing.
        kept = (policy.keys.inject, policy.keys.placement_check)
        return {key: defaults[key] for key in kept if key in defaults}


def is_of_kai(scheduler: str, policy: Policy) -> bool:
    """Return whether pods of `scheduler` can request a share with an annotation of KAI."""
    return backend_of(policy.spec, scheduler) is Kai


def mistyped_resources(extended_resources: Sequence[str], policy: Policy) -> Iterator[str]:
    """Yield a warning for each resource that is almost that of an accelerator of the policy."""
    known = [resource for each in policy.spec.accelerators for resource in each.resources]
    for name in extended_resources[:_MOST_SHOWN]:
        similar = (each for each in known if is_one_edit(name, each) or name.lower() == each.lower() != name)
        if meant := next(similar, None):
            yield f"resource {name} is not that of an accelerator of the policy; did you mean {meant}?"


def without_card_warnings(
    annotations: Annotations, request: CardRequest, type_name: str, namespace: str, policy: Policy
) -> list[str]:
    """Return the warnings for a pod that requests no accelerator and has the workload type `type_name`."""
    keys, handling = policy.keys, policy.spec.without_accelerator
    example = policy.spec.accelerators[0].resources[0]
    others = ", ".join(cut(name, LONGEST_SHOWN) for name in request.extended_resources[:_MOST_SHOWN])
    others += ", …" if len(request.extended_resources) > _MOST_SHOWN else ""
    missing, remedy = "the pod requests no accelerator", f"request one, such as {example}"
    if others:
        missing += f" of the policy, only {others}"
        remedy += ", or list it under accelerators of the policy"
    if annotations.is_own(keys.workload_type) and handling.pod_annotations == "leave":
        return [f"{missing}, so {keys.workload_type} has no effect: {remedy}"]
    warnings = list(mistyped_resources(request.extended_resources, policy))
    if not annotations.is_own(keys.workload_type) and handling.namespace_defaults == "warn":
        warnings.append(f'{missing}, but has workload type "{type_name}" from namespace "{namespace}"')
    asked = [
        key
        for key in map(keys.of, ABOUT_CARDS)
        if annotations.text(key) is not None
        and (handling.pod_annotations if annotations.is_own(key) else handling.namespace_defaults) == "warn"
    ]
    if asked:
        # Clients see the beginning of a long warning, so the keys are at its end.
        follows = "" if others else ", so it gets no card"
        # With only the type, it tolerates no product of the pool.
        removed = [*([keys.workload_type] if not others and annotations.is_own(keys.workload_type) else []), *asked]
        warnings.append(f"{missing}{follows}: {remedy}, or remove {', '.join(removed)}")
    return warnings
