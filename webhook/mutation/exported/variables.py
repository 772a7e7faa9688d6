"""The variables of an exported policy: what the webhook reads of a pod and its namespace, as CEL.

They are evaluated when they are first used, on the pod as it was before the mutation. Admission of a mutated pod finds
the same, which is a law of edits.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from webhook.backends.kai import Kai
from webhook.kube.names import DEFAULT_SCHEDULER, KAI_SHARES
from webhook.kube.pod.amounts import DEVICE_CLASS_PREFIX
from webhook.kube.pod.card_names import ASCEND, ASCEND_SHARES, CARD_BY_OTHER_NAME, is_share
from webhook.mutation.exported.cel import (
    Cel,
    all_of,
    any_of,
    choose,
    concatenated,
    matches_any,
    negated,
    stripped,
    text,
    texts,
    when,
)
from webhook.policy.keys import Annotation
from webhook.policy.policy import Policy
from webhook.policy.spec.admission import NamespaceLimits
from webhook.policy.spec.schedulers import BUILT_IN_SCHEDULERS, settings_of
from webhook.policy.spec.workloads import Accelerator, WorkloadType

Variable = tuple[str, Cel]
NAMESPACE: Cel = "request.namespace"
OWN: Cel = "variables.own"
DEFAULTS: Cel = "variables.defaults"


def requested_cards(policy: Policy) -> Iterator[Variable]:
    """Yield the accelerators that the pod requests, by their index, and whether it may request one otherwise.

    The API server has set a missing request to the limit.
    """
    name = any_of((_is_extended("n"), f"n.startsWith({text(DEVICE_CLASS_PREFIX)})"))
    counts = any_of(('r[n] != "0"', is_share_of_card("n")))
    names = f"[c.?resources.?requests.orValue({{}})].map(r, r.map(n, {name} && {counts}, n))[0]"
    yield "resources", f"(object.spec.containers + object.spec.?initContainers.orValue([])).map(c, {names})"
    found = (
        when(f"variables.resources.exists(l, l.exists(n, {_is_of(each)}))", f"[{index}]")
        for index, each in enumerate(policy.spec.accelerators)
    )
    yield "requested", concatenated(found)
    shared = texts(KAI_SHARES)
    yield "kaiShare", f"variables.requested.size() == 0 && {shared}.exists(k, k in {OWN})"
    is_share_of_policy = f"{text(policy.keys.gpu_fraction)} in {OWN}"
    of_kai = is_of_backend(policy, Kai.name, "variables.ownScheduler")
    yield "share", f"variables.requested.size() == 0 && ({is_share_of_policy} || (variables.kaiShare && {of_kai}))"
    claims = "object.spec.?resourceClaims.orValue([]).size() > 0"
    by_class = f"variables.resources.exists(l, l.exists(n, n.startsWith({text(DEVICE_CLASS_PREFIX)})))"
    yield "mayIncludeCard", f"variables.requested.size() > 0 || variables.share || {claims} || {by_class}"


def _is_extended(name: Cel) -> Cel:
    return f'({name}.contains("/") && !{name}.contains("kubernetes.io/") && !{name}.startsWith("requests."))'


def is_share_of_card(name: Cel) -> Cel:
    """Return whether the resource is memory or cores of one card: with an amount of zero, it requests the default."""
    ends = any_of(f"{name}.endsWith({text(each)})" for each in ASCEND_SHARES)
    of_ascend = f"({name}.startsWith({text(ASCEND)}) && {ends})"
    return any_of((f"{name} in {texts(filter(is_share, CARD_BY_OTHER_NAME))}", of_ascend))


def is_of_any(name: Cel, policy: Policy) -> Cel:
    """Return whether the resource `name`, the variable n, is a card of the policy."""
    return all_of((_is_extended(name), any_of(map(_is_of, policy.spec.accelerators))))


def _is_of(accelerator: Accelerator) -> Cel:
    """Return whether the resource `n` is one of the accelerator, by any of its names."""
    exact = [each for each in accelerator.resources if not each.endswith("*")]
    prefixes = [each.removesuffix("*") for each in accelerator.resources if each.endswith("*")]
    others = [other for other, card in CARD_BY_OTHER_NAME.items() if card in exact or card.startswith(tuple(prefixes))]
    names = list(dict.fromkeys((*exact, *others)))
    return any_of(((f"n in {texts(names)}" if names else "false"), *(f"n.startsWith({text(p)})" for p in prefixes)))


def is_of_backend(policy: Policy, backend: str, scheduler: Cel) -> Cel:
    """Return whether `scheduler` has this backend. It is empty for the default scheduler."""
    names = {*policy.spec.schedulers, *BUILT_IN_SCHEDULERS}
    found = sorted(name for name in names if settings_of(policy.spec.schedulers, name).backend == backend)
    found += [""] if DEFAULT_SCHEDULER in found else []
    return f"{scheduler} in {texts(found)}" if found else "false"


def value_of(policy: Policy, annotation: Annotation[Any]) -> Cel:
    """Return the value of an annotation of the pod or its namespace, without blanks. It is empty if there is none."""
    key = text(policy.keys.of(annotation))
    applied = all_of((f"{key} in {DEFAULTS}", "variables.defaultsApply", *_is_allowed_default(policy, annotation)))
    own, default = f"{stripped(f'{OWN}[{key}]')}", stripped(f"{DEFAULTS}[{key}]")
    return choose([(f"{key} in {OWN}", own), (applied, default)], '""')


def _is_allowed_default(policy: Policy, annotation: Annotation[Any]) -> Iterator[Cel]:
    if policy.spec.namespace_limits and annotation.attribute in ("queue", "scheduler"):
        yield f"variables.{annotation.attribute}DefaultAllowed"


def is_type(names: Iterable[str]) -> Cel:
    """Return whether the workload type is one of `names`."""
    found = list(names)
    return f"variables.type == {text(found[0])}" if len(found) == 1 else f"variables.type in {texts(found)}"


def by_type(values: Iterable[tuple[str, Cel]], otherwise: Cel) -> Cel:
    """Return the value of the pod's workload type; types with equal values share a branch."""
    grouped: dict[Cel, list[str]] = {}
    for name, value in values:
        grouped.setdefault(value, []).append(name)
    return choose(((is_type(names), value) for value, names in grouped.items() if value != otherwise), otherwise)


def types_of(policy: Policy) -> Iterable[tuple[str, WorkloadType]]:
    """Return names and settings of the workload types."""
    return policy.spec.workload_types.items()


def workload_type(policy: Policy) -> Iterator[Variable]:
    """Yield the type of the pod. It is empty unless the type exists and the namespace may use it."""
    key = text(policy.keys.workload_type)
    if policy.spec.namespace_limits:
        entries = enumerate(policy.spec.namespace_limits)
        yield "limit", choose(((matches_any(NAMESPACE, each.namespaces), str(index)) for index, each in entries), "-1")
    applies = policy.spec.without_accelerator.namespace_defaults != "leave"
    yield "defaultsApply", "true" if applies else "variables.mayIncludeCard"
    required = policy.spec.require_type
    fallback = '""'
    if required is not None and required in policy.spec.workload_types:
        fallback = choose([("variables.requested.size() > 0 || variables.share", text(required))], '""')
    # The look-up comes first: what the containers request is costly to find.
    applied = f"{key} in {DEFAULTS} && variables.defaultsApply"
    pairs = [(f"{key} in {OWN}", stripped(f"{OWN}[{key}]")), (applied, stripped(f"{DEFAULTS}[{key}]"))]
    yield "hasType", f"{key} in {OWN} || ({applied})"
    yield "namedType", choose(pairs, fallback)
    named = "variables.namedType"
    is_known = f"{named} in {texts(policy.spec.workload_types)}"
    yield "type", choose([(f"{is_known} && {may_use_type(policy, named)}", named)], '""')


def is_left_without_card(policy: Policy) -> Cel:
    """Return whether the pod sets a type itself, requests no accelerator, and the policy leaves such pods alone."""
    if policy.spec.without_accelerator.pod_annotations != "leave":
        return "false"
    return f"({text(policy.keys.workload_type)} in {OWN} && {negated('variables.mayIncludeCard')})"


def may_use_type(policy: Policy, type_name: Cel) -> Cel:
    """Return whether pods of the namespace may use the workload type `type_name`, which exists."""
    allowed = [
        (f'{type_name} == "{name}"', matches_any(NAMESPACE, each.allowed_namespaces)) for name, each in types_of(policy)
    ]

    def is_listed(limits: NamespaceLimits) -> Cel:
        return any_of(f'{type_name} == "{name}"' for name in limits.workload_types or ())

    return f"({choose(allowed, 'false')} && {by_limit(policy, 'workload_types', is_listed, 'true')})"


def by_limit(policy: Policy, field: str, value: Callable[[NamespaceLimits], Cel], otherwise: Cel) -> Cel:
    """Return the `value` of the entry of `namespaceLimits` for the namespace, `otherwise` if it does not set `field`.

    The variable `limit` has the index of the entry.
    """
    entries = enumerate(policy.spec.namespace_limits)
    set_by = ((f"variables.limit == {i}", value(each)) for i, each in entries if getattr(each, field) is not None)
    return choose(set_by, otherwise)


def is_limited(policy: Policy, field: str) -> bool:
    """Return whether an entry of `namespaceLimits` sets `field`."""
    return any(getattr(each, field) is not None for each in policy.spec.namespace_limits)
