"""The variables of an exported policy: the values that the webhook reads from a pod and its namespace, as CEL.

They are evaluated at their first use, on the pod before the mutation. They have the same values for the mutated pod,
because edits are idempotent.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from webhook.kube.names import KAI_SHARES
from webhook.kube.pod.amounts import DEVICE_CLASS_PREFIX
from webhook.kube.pod.card_names import ASCEND, ASCEND_SHARES, CARD_BY_OTHER_NAME, is_share
from webhook.mutation.exported.cel import (
    Cel,
    all_of,
    any_of,
    choose,
    concatenated,
    is_label_value,
    matches_any,
    negated,
    stripped,
    text,
    texts,
    when,
)
from webhook.policy.keys import MOST_PRODUCTS, Annotation, Keys
from webhook.policy.policy import Policy
from webhook.policy.spec.accelerators import Accelerator
from webhook.policy.spec.workloads import WorkloadType

Variable = tuple[str, Cel]
NAMESPACE: Cel = "request.namespace"
OWN: Cel = "variables.own"
DEFAULTS: Cel = "variables.defaults"
NOT_EXPORTED = (
    Keys.gpu_memory,
    Keys.gpu_count,
    Keys.gpu_driver,
    Keys.queue,
    Keys.gang,
    Keys.gang_size,
    Keys.within,
    Keys.gpu_fraction,
    Keys.preemptible,
)
"""Annotations without whose effect a pod could run where, or when, it must not: such a pod is left to the webhook."""


def requested_cards(policy: Policy) -> Iterator[Variable]:
    """Yield the accelerators that the pod requests, by index, and whether it may request one in another way."""
    is_extended = '(n.contains("/") && !n.contains("kubernetes.io/") && !n.startsWith("requests."))'
    by_class = f"n.startsWith({text(DEVICE_CLASS_PREFIX)})"
    ends = any_of(f"n.endsWith({text(each)})" for each in ASCEND_SHARES)
    of_ascend = f"(n.startsWith({text(ASCEND)}) && {ends})"
    # The memory or cores of one card: with an amount of zero, it requests the default.
    is_share_of_card = any_of((f"n in {texts(filter(is_share, CARD_BY_OTHER_NAME))}", of_ascend))
    counts = any_of(('r[n] != "0"', is_share_of_card))
    names = f"[c.?resources.?requests.orValue({{}})].map(r, r.map(n, {any_of((is_extended, by_class))} && {counts}, n))"
    yield "resources", f"(object.spec.containers + object.spec.?initContainers.orValue([])).map(c, {names}[0])"
    found = (
        when(f"variables.resources.exists(l, l.exists(n, {_is_of(each)}))", f"[{index}]")
        for index, each in enumerate(policy.spec.accelerators)
    )
    yield "requested", concatenated(found)
    claims = "object.spec.?resourceClaims.orValue([]).size() > 0"
    of_class = f"variables.resources.exists(l, l.exists(n, {by_class}))"
    yield "mayIncludeCard", f"variables.requested.size() > 0 || {claims} || {of_class}"


def _is_of(accelerator: Accelerator) -> Cel:
    """Return whether the resource `n` is one of the accelerator, by any of its names."""
    exact = [each for each in accelerator.resources if not each.endswith("*")]
    prefixes = [each.removesuffix("*") for each in accelerator.resources if each.endswith("*")]
    others = [other for other, card in CARD_BY_OTHER_NAME.items() if card in exact or card.startswith(tuple(prefixes))]
    names = list(dict.fromkeys((*exact, *others)))
    return any_of(((f"n in {texts(names)}" if names else "false"), *(f"n.startsWith({text(p)})" for p in prefixes)))


def value_of(policy: Policy, annotation: Annotation[Any]) -> Cel:
    """Return the value of an annotation of the pod or its namespace, without blanks, or "" if there is none."""
    key = text(policy.keys.of(annotation))
    own, default = f"{stripped(f'{OWN}[{key}]')}", stripped(f"{DEFAULTS}[{key}]")
    return choose([(f"{key} in {OWN}", own), (f"({key} in {DEFAULTS} && variables.defaultsApply)", default)], '""')


def has_any(keys: Iterable[str]) -> Cel:
    """Return whether the pod, or its namespace as a default, has one of the annotations."""
    return f"{texts(keys)}.exists(k, k in {OWN} || (k in {DEFAULTS} && variables.defaultsApply))"


def by_type(values: Iterable[tuple[str, Cel]], otherwise: Cel) -> Cel:
    """Return the expression for the value of the pod's workload type; types with equal values share a branch."""
    grouped: dict[Cel, list[str]] = {}
    for name, value in values:
        grouped.setdefault(value, []).append(name)
    return choose(((is_type(names), value) for value, names in grouped.items() if value != otherwise), otherwise)


def is_type(names: Iterable[str]) -> Cel:
    """Return whether the workload type is one of `names`."""
    found = list(names)
    return f"variables.type == {text(found[0])}" if len(found) == 1 else f"variables.type in {texts(found)}"


def types_of(policy: Policy) -> Iterable[tuple[str, WorkloadType]]:
    """Return names and settings of the workload types."""
    return policy.spec.workload_types.items()


def workload_type(policy: Policy) -> Iterator[Variable]:
    """Yield the type of the pod. It is empty unless the type exists and the namespace may use it."""
    key = text(policy.keys.workload_type)
    applies = policy.spec.without_accelerator.namespace_defaults != "leave"
    yield "defaultsApply", "true" if applies else "variables.mayIncludeCard"
    required = policy.spec.require_type
    fallback = '""'
    if required is not None and required in policy.spec.workload_types:
        fallback = choose([("variables.requested.size() > 0", text(required))], '""')
    # The look-up comes first: what the containers request is costly to find.
    applied = f"{key} in {DEFAULTS} && variables.defaultsApply"
    pairs = [(f"{key} in {OWN}", stripped(f"{OWN}[{key}]")), (applied, stripped(f"{DEFAULTS}[{key}]"))]
    yield "namedType", choose(pairs, fallback)
    named = "variables.namedType"
    may_use = any_of(
        all_of((f"{named} == {text(name)}", matches_any(NAMESPACE, each.allowed_namespaces)))
        for name, each in types_of(policy)
    )
    yield "type", choose([(may_use, named)], '""')


def is_usable(policy: Policy) -> Cel:
    """Return whether the exported rules apply to the pod."""
    conditions = ["variables.inForce", 'variables.type != ""']
    if policy.spec.without_accelerator.pod_annotations == "leave":
        names_type = f"{text(policy.keys.workload_type)} in {OWN}"
        conditions.append(negated(f"({names_type} && !(variables.mayIncludeCard))"))
    left = [policy.keys.of(each) for each in NOT_EXPORTED]
    left += [policy.keys.gpu_product] if policy.spec.allowed_products else []
    # The webhook copies the terms of a pod for each label.
    copied = [i for i, each in enumerate(policy.spec.accelerators) if len(each.product_labels) > 1]
    if copied and policy.spec.product_affinity and not policy.spec.allowed_products:
        asked = "(variables.requested.size() == 0 ? 0 : variables.requested[0])"
        conditions.append(negated(all_of((has_any([policy.keys.gpu_product]), f"{asked} in {copied}"))))
    return all_of((*conditions, negated(has_any((*left, *KAI_SHARES)))))


def _of_accelerator(values: list[str]) -> Cel:
    """Return the one of `values`, one for each accelerator, that is for the cards of the pod."""
    found = [(f"variables.requested[0] == {index}", text(each)) for index, each in enumerate(values)]
    return choose([("variables.requested.size() == 0", found[0][1]), *found[1:]], found[0][1])


def products(policy: Policy) -> Iterator[Variable]:
    """Yield the taint prefix and the label of the pod's cards, the requested products, and whether others will do.

    If the policy has `allowedProducts`, only the webhook decides on products.
    """
    accelerators = policy.spec.accelerators
    yield "card", _of_accelerator([each.card for each in accelerators])
    yield "productLabel", _of_accelerator([each.product_labels[0] for each in accelerators])
    yield "productText", value_of(policy, Keys.gpu_product)
    yield "productList", f'variables.productText == "" ? [] : variables.productText.split(",").map(p, {stripped("p")})'
    yield "productsOnce", "variables.productList.transformList(i, p, variables.productList.indexOf(p) == i, p)"
    once, variants = "variables.productsOnce", texts(policy.spec.product_variants)
    is_valid = f"{once}.size() <= {MOST_PRODUCTS} && {once}.all(p, {is_label_value('p')})"
    yield "products", f"{is_valid} ? {once} : []"
    with_variants = f"([p] + {variants}.filter(s, !p.endsWith(s) && {is_label_value('(p + s)')}).map(s, p + s))"
    every = f'variables.products.map(p, {with_variants}.join(",")).join(",").split(",")'
    yield (
        "everyProduct",
        f"variables.products.size() == 0 ? [] : {every}" if policy.spec.product_variants else "variables.products",
    )
    yield "accepted", "variables.everyProduct.transformList(i, p, variables.everyProduct.indexOf(p) == i, p)"
    will_do = policy.spec.tolerate_any_product and not policy.spec.allowed_products
    names_it = f"(variables.products.size() > 0 || {text(policy.keys.gpu_product)} in {OWN})"
    yield "anyWillDo", f"variables.requested.size() > 0 && !{names_it}" if will_do else "false"
