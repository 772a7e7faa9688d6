"""Warnings about names in a pod that the cluster does not have. They need a view of the cluster.

The warnings never change the patch or the verdict. Their cost is bounded for any pod and any node labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache

from webhook.backends.references import PodReferences
from webhook.backends.registry import api_groups_of
from webhook.cluster.index.pod_term import PodTerm
from webhook.cluster.objects.resource_quota import CROSS_NAMESPACE_SCOPE
from webhook.cluster.snapshot import Snapshot
from webhook.documents.listing import some
from webhook.documents.text import cut
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.placement.pod.inter_pod_info import InterPodInfo
from webhook.policy.spec.accelerators import Accelerator, Fact, similar_labels
from webhook.policy.spec.document import PolicySpec
from webhook.policy.spec.field_types import matches_any
from webhook.policy.spec.schedulers import BUILT_IN_SCHEDULERS, BinPacking, NodeTemplate, SchedulerSettings

# Products of one pod that are compared with the products of the nodes, and products of the nodes that they are
# compared with. One comparison takes up to 0.1 ms.
_MOST_COMPARED = 2
_MOST_CANDIDATES = 50
# The similarity of NVIDIA-H2O and NVIDIA-H20 is 0.9, that of NVIDIA-B300 and NVIDIA-H20 0.76.
_SIMILARITY = 0.85
_LONGEST_SHOWN = 63
_MOST_SHOWN = 3
NO_SIGN = ": no sign that it runs: "
"""The text by which a warning about a scheduler that does not run is known."""
_DID_YOU_MEAN = "; did you mean "


def unknown_products(references: PodReferences, snapshot: Snapshot, templates: Sequence[NodeTemplate]) -> Iterator[str]:
    """Yield a warning about the products that neither a node of `snapshot` nor a node template has.

    If a pod names a product and a variant of it, such as NVIDIA-H20-SHARED, the variant counts as the product. Nodes
    may have a product as the label or only as the taint of the same key. If the pod also names a known product, an
    unknown product is only reported if it looks like a typing error.
    """
    accelerator = references.accelerator
    if not references.products or accelerator is None or not snapshot.nodes:
        return
    if snapshot.labels.values(accelerator.product_labels[0]).issuperset(references.products):
        return
    known = _known_products(accelerator, snapshot, templates)
    if known.issuperset(references.products):
        return
    named = frozenset(references.products)
    with_known_variant = {base for each in named & known for base in _bases(each, named)}
    names = [
        each
        for each in references.products
        if each not in known and each not in with_known_variant and not _bases(each, named)
    ]
    candidates = tuple(sorted(known)[:_MOST_CANDIDATES])
    similar: list[str] = []
    plain: list[str] = []
    for index, product in enumerate(names):
        close = _closest(product, candidates) if index < _MOST_COMPARED else None
        shown = cut(product, _LONGEST_SHOWN)
        if close is None:
            plain.append(shown)
        elif close not in named:
            similar.append(f"gpu-product: no node has {shown}{_DID_YOU_MEAN}{cut(close, _LONGEST_SHOWN)}?")
    yield from similar
    # A manifest for several clusters names alternatives, and one that the cluster has is enough.
    if plain and not known & named:
        hint = "" if known else f" ({_without_label(accelerator, 'product', snapshot)})"
        yield f"gpu-product: no node has {some(plain, _MOST_SHOWN)}{hint}"


def unlabelled_amounts(
    references: PodReferences, snapshot: Snapshot, templates: Sequence[NodeTemplate]
) -> Iterator[str]:
    """Yield a warning for each requested amount of cards whose labels neither a node nor a node template has."""
    accelerator = references.accelerator
    if accelerator is None or not snapshot.nodes:
        return
    for fact in references.amounts:
        labels = accelerator.labels_of(fact)
        is_known = any(snapshot.labels.values(label) for label in labels)
        if not is_known and not any(label in each.labels for each in templates for label in labels):
            yield f"gpu-{fact}: {_without_label(accelerator, fact, snapshot)}"


def _without_label(accelerator: Accelerator, fact: Fact, snapshot: Snapshot) -> str:
    """Return that no node has a label of `accelerator` for `fact`, with a similar label that nodes have instead."""
    missing = f"no node has the label {' or '.join(accelerator.labels_of(fact))}"
    for label in similar_labels(accelerator, fact):
        # A label of a cloud can tell the cards of another vendor.
        if snapshot.labels.values(label) and (values := _values_beside_cards(label, accelerator, snapshot)):
            example = f"{label}={cut(min(values), _LONGEST_SHOWN)}"
            return f"{missing}, but some have {example}: name it in accelerators.labels.{fact} of the policy"
    return missing


def _values_beside_cards(label: str, accelerator: Accelerator, snapshot: Snapshot) -> set[str]:
    """Return the values of `label` on the nodes that offer cards of `accelerator`, or no devices yet."""
    found = set()
    for info in snapshot.nodes:
        if (value := info.node.labels.get(label)) is not None:
            devices = [resource for resource in info.node.allocatable if "/" in resource]
            if not devices or any(matches_any(each, accelerator.resources) for each in devices):
                found.add(value)
    return found


def meant_product(
    accelerator: Accelerator, product: str, snapshot: Snapshot, templates: Sequence[NodeTemplate]
) -> str | None:
    """Return the known product that the unknown `product` probably means, or None if it is known or similar to none."""
    known = _known_products(accelerator, snapshot, templates)
    return None if product in known or not product else _closest(product, tuple(sorted(known)[:_MOST_CANDIDATES]))


def about_one_product(warnings: Sequence[str], suggestion: str) -> tuple[str, ...]:
    """Return `warnings` without the question of `unknown_products` about a product, if `suggestion` names another."""
    if "gpu-product: " not in suggestion:
        return tuple(warnings)
    return tuple(
        text
        if not (meant := text.partition(_DID_YOU_MEAN)[2].removesuffix("?")) or f": {meant}" in suggestion
        else text.partition(_DID_YOU_MEAN)[0]
        for text in warnings
    )


def missing_product(references: PodReferences, snapshot: Snapshot) -> Iterator[str]:
    """Yield a warning if the pod names no product and `allowedProducts` allows it none of the tainted products."""
    accelerator = references.accelerator
    if references.tolerated_products is None or accelerator is None:
        return
    tainted = {taint.value for taint in snapshot.taints.distinct if taint.key == accelerator.product_taint}
    if tainted and tainted.isdisjoint(references.tolerated_products):
        yield (
            "gpu-product is missing: the policy restricts products in this namespace (allowedProducts), so the pod "
            "tolerates the taint of none that a node has; name a product that the namespace may use"
        )


def _known_products(accelerator: Accelerator, snapshot: Snapshot, templates: Sequence[NodeTemplate]) -> set[str]:
    labels, key = accelerator.product_labels, accelerator.product_taint
    known = {value for label in labels for value in snapshot.labels.values(label)}
    known |= {taint.value for taint in snapshot.taints.distinct if taint.key == key}
    for template in templates:
        known |= {template.labels[label] for label in labels if label in template.labels}
        known |= {taint.value for taint in template.taints if taint.key == key}
    return known


def is_absent(
    scheduler: str, snapshot: Snapshot, schedulers: Mapping[str, SchedulerSettings] = BUILT_IN_SCHEDULERS
) -> bool:
    """Return whether `snapshot` lacks evidence that `scheduler` runs; false if not known."""
    evidence = snapshot.scheduler_evidence
    if scheduler in ("", DEFAULT_SCHEDULER) or evidence is None:
        return False
    return not (evidence.shows(scheduler, api_groups_of(schedulers, scheduler)) or snapshot.has_pod_of(scheduler))


def absent_scheduler(
    scheduler: str, snapshot: Snapshot, schedulers: Mapping[str, SchedulerSettings] = BUILT_IN_SCHEDULERS
) -> Iterator[str]:
    """Yield a warning if `snapshot` has no evidence that `scheduler` runs: no API group, Lease or running pod.

    `schedulers` are the settings of the policy. There is no warning unless all three kinds of evidence are known.
    """
    if not is_absent(scheduler, snapshot, schedulers):
        return
    groups = api_groups_of(schedulers, scheduler)
    signs = "no Lease and no bound pod names it"
    hint = "; a new profile of kube-scheduler has its first sign with its first pod"
    if groups:
        signs, hint = f"no API group {' or '.join(groups)}, {signs}", ""
    shown = cut(scheduler, _LONGEST_SHOWN)
    yield f"scheduler {shown}{NO_SIGN}{signs}. Without it, the pod stays Pending{hint}"


def absent_schedulers_of(spec: PolicySpec, snapshot: Snapshot) -> Iterator[str]:
    """Yield the warning about each missing scheduler that a policy field names explicitly."""
    reported = set()
    for path, scheduler in spec.named_schedulers().items():
        if scheduler not in reported:
            reported.add(scheduler)
            found = absent_scheduler(scheduler, snapshot, spec.schedulers)
            yield from (f"spec.{path}: {warning}" for warning in found)


def missing_priority_class(name: str, snapshot: Snapshot) -> Iterator[str]:
    """Yield a warning if the known classes lack `name`, which the API server looks up again later."""
    if name and snapshot.lacks_priority_class(name):
        shown = cut(name, _LONGEST_SHOWN)
        yield f"PriorityClass {shown} does not exist: the API server denies this pod; create it, or name another class"


def full_quotas(pod: InterPodInfo, snapshot: Snapshot, packing: BinPacking, key_domain: str) -> Iterator[str]:
    """Yield a warning if a ResourceQuota denies the admitted `pod` because of its pod affinity across namespaces.

    The API server checks quotas after webhooks, so the packing hint can be the only reason.

    Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core/pods.go, usesCrossNamespacePodAffinity
    """
    quota = snapshot.full_quotas.get(pod.namespace)
    if quota is None:
        return
    own = frozenset((pod.namespace,))
    crossing = [each for each in pod.terms if each.namespace_selector is not None or each.namespaces != own]
    if not crossing:
        return
    hints = [_is_packing_hint(each, packing) for each in crossing]
    if all(hints):
        cause = "the packing hint selects pods of all namespaces"
        remedy = f'set binPacking.namespaces: same in the policy, or {key_domain}/bin-packing: "false"'
    elif any(hints):
        cause = "spec.affinity and the packing hint select pods of other namespaces"
        remedy = "drop those terms, and set binPacking.namespaces: same in the policy"
    else:
        cause, remedy = "spec.affinity selects pods of other namespaces", "drop those terms"
    yield f"quota {cut(quota, _LONGEST_SHOWN)} ({CROSS_NAMESPACE_SCOPE}) denies this pod: {cause}; {remedy}"


def _is_packing_hint(term: PodTerm, packing: BinPacking) -> bool:
    selected = [(each.key, tuple(each.values)) for each in term.selector or ()]
    return term.topology_key == packing.topology_key and selected == [(packing.label_key, (packing.label_value,))]


def _bases(product: str, named: frozenset[str]) -> set[str]:
    return {product[:index] for index, char in enumerate(product) if char == "-"} & named


@lru_cache(maxsize=256)
def _closest(product: str, candidates: tuple[str, ...]) -> str | None:
    """Return the candidate that the user most probably means: one that contains `product`, or else a similar one."""
    # Kept, because the pods of a template name the same product, and the nodes seldom get another.
    by_text = {each.casefold(): each for each in candidates}
    text = product.casefold()
    containing = [each for each in by_text if text in each]
    close = containing or get_close_matches(text, by_text, 1, _SIMILARITY)
    return by_text[close[0]] if close else None
