"""Turn suggestions about tolerations and required labels into suggestions of annotations with the same effect."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from webhook.admission.evaluation import evaluate
from webhook.admission.mutated_pod import Mutated, as_created
from webhook.admission.pod_content import PodContent
from webhook.cluster.node_info import Node
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput
from webhook.kube.deadline import Expired
from webhook.kube.pod.resources import requested_extended_resources
from webhook.mutation.workload.card_request import ABOUT_CARDS, CardRequest
from webhook.placement.framework.result import Placement, Remedy
from webhook.placement.reasons.cluster_warnings import meant_product
from webhook.placement.waiting.pending_placement import WaitingPod
from webhook.policy.policy import Policy
from webhook.policy.spec.accelerators import Accelerator

Place = Callable[[WaitingPod], Placement]
_MIB_IN_GIB = 1024


def as_annotation_changes(
    content: PodContent, policy: Policy, placement: Placement, snapshot: Snapshot, place: Place, expired: Expired
) -> Placement:
    """Return `placement` with suggestions of annotations that make the pod in `content` fit.

    `content` is the pod as written. Each suggestion is proven: the policy is evaluated for the annotated pod, and
    `place` finds a node for the result. At most one product is suggested. If a pod has a workload type but requests no
    accelerator, removing the type is suggested. If a pod has no workload type, the original suggestions are kept after
    the new ones.
    """
    if placement.verdict not in ("Waiting", "Infeasible"):
        return placement
    current = _current(content)
    resources = requested_extended_resources(content.pod)
    has_card = CardRequest.of(content.pod, _own(content), resources, policy).may_include_card
    has_type = policy.keys.workload_type in current
    if not placement.remedies and (has_card or not has_type):
        return placement
    suggestions = [*_without_type(content, policy, place, expired)] if has_type and not has_card else []
    remedies = {remedy.text: remedy for remedy in placement.remedies}
    products = {key for each in policy.spec.accelerators for key in (each.product_taint, *each.product_labels)}
    # A pod that does better without its type need not be placed among cards.
    names_product = bool(suggestions)
    for text in placement.suggestions:
        remedy = remedies.get(text)
        wanted = _wanted(remedy, content, policy, snapshot, has_card=has_card) if remedy is not None else []
        tolerates_product = remedy is not None and not has_card and bool(products & (remedy.keys or set()))
        is_about_product = tolerates_product or any(policy.keys.gpu_product in each for each in wanted)
        if is_about_product and names_product:
            continue
        proven = (_proven(each, content, policy, place, expired) for each in wanted)
        found = next((each for each in proven if each), None)
        names_product |= is_about_product and (tolerates_product or found is not None)
        suggestions += [*([found] if found else []), *([text] if not found or not has_type else [])]
    return replace(placement, suggestions=tuple(dict.fromkeys(suggestions)))


def _without_type(content: PodContent, policy: Policy, place: Place, expired: Expired) -> Iterator[str]:
    key, own = policy.keys.workload_type, _own(content)
    bare = content.with_annotations({each: own[each] for each in own if each != key})
    remedy = f"remove {key}"
    if key not in own or isinstance(evaluate(bare, policy, expired), Mutated):
        # The type is a default of the namespace.
        remedy = "set withoutAccelerator: leave in the policy"
    try:
        pod = WaitingPod.of(as_created(bare.pod, content.namespace))
    except InvalidInput:
        return
    placed = place(pod)
    if placed.verdict == "Feasible":
        yield f"{remedy}, since the pod requests no accelerator: {_would_fit(placed)}"


def _would_fit(placed: Placement) -> str:
    return f"{placed.feasible} {'node' if placed.feasible == 1 else 'nodes'} would fit"


def _wanted(
    remedy: Remedy, content: PodContent, policy: Policy, snapshot: Snapshot, *, has_card: bool
) -> list[dict[str, str]]:
    """Return the annotations to try, the best first: types, then the product that was meant, then those of the node."""
    keys = policy.keys
    wanted = _annotations(remedy, snapshot.nodes[snapshot.rows[remedy.node]].node, content, policy)
    if not wanted or (not has_card and wanted.keys() & {keys.of(each) for each in ABOUT_CARDS}):
        # A pod without a card would be asked to remove an annotation about cards.
        return []
    has_type = keys.workload_type in _current(content)
    types = [] if has_type else [{keys.workload_type: each} for each in policy.spec.workload_types]
    if keys.gpu_product not in wanted:
        return [*types, wanted]
    named = _current(content).get(keys.gpu_product, "")
    meant = meant_product(_accelerator(content, policy), named.strip(), snapshot, policy.spec.node_templates)
    return [*types, *([{**wanted, keys.gpu_product: meant}] if meant else []), wanted]


def _proven(
    wanted: Mapping[str, str], content: PodContent, policy: Policy, place: Place, expired: Expired
) -> str | None:
    """Return the suggestion of the `wanted` annotations, or None if they do not make the pod fit."""
    result = evaluate(content.with_annotations({**_own(content), **wanted}), policy, expired)
    if not isinstance(result, Mutated) or (waiting := result.waiting) is None:
        return None
    placed = place(waiting[1])
    if placed.verdict != "Feasible":
        return None
    current = _current(content)
    values = " and ".join(
        f"{key}: {value}" + (f" instead of {current[key]}" if key in current else "") for key, value in wanted.items()
    )
    return f"set {values}: {_would_fit(placed)}"


def _current(content: PodContent) -> Mapping[str, str]:
    """Return the annotations of the pod merged with those of its namespace; those of the pod take precedence."""
    return {**content.defaults, **_own(content)}


def _own(content: PodContent) -> Mapping[str, str]:
    annotations: Mapping[str, str] | None = content.pod["metadata"].get("annotations")
    return annotations or {}


def _annotations(remedy: Remedy, node: Node, content: PodContent, policy: Policy) -> dict[str, str] | None:
    """Return the annotations that select `node`, or None if no annotation has the effect of the remedy."""
    current, keys = _current(content), policy.keys
    values = dict(_values(node, _accelerator(content, policy), policy))
    if remedy.keys is None or not remedy.keys <= {policy.node_usage_key, *values}:
        return None
    wanted: dict[str, str] = {}
    if policy.node_usage_key in remedy.keys or keys.workload_type not in current:
        type_name = _type_for(node, policy, current.get(keys.workload_type))
        if type_name is None:
            return None
        wanted[keys.workload_type] = type_name
    wanted |= {annotation: value for label, (annotation, value) in values.items() if label in remedy.keys}
    return wanted


def _values(node: Node, accelerator: Accelerator, policy: Policy) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each label and taint that an annotation selects, with the annotation and its value for the node."""
    keys, labels = policy.keys, node.labels
    if product := accelerator.product_of(labels):
        for key in (accelerator.product_taint, *accelerator.product_labels):
            yield key, (keys.gpu_product, product)
    amounts = {keys.gpu_count: accelerator.count_labels, keys.gpu_driver: accelerator.driver_labels}
    for annotation, names in amounts.items():
        amount = next((labels[name] for name in names if name in labels), "")
        if amount.isascii() and amount.isdecimal():
            yield from ((name, (annotation, amount)) for name in names)
    memory = next((labels[name] for name in accelerator.memory_labels if name in labels), "")
    if (size_mib := accelerator.memory_mib(memory)) is not None:
        gibibytes = size_mib // _MIB_IN_GIB
        size = f"{gibibytes}Gi" if gibibytes else f"{size_mib}Mi"
        yield from ((name, (keys.gpu_memory, size)) for name in accelerator.memory_labels)


def _accelerator(content: PodContent, policy: Policy) -> Accelerator:
    return (policy.accelerators_of(requested_extended_resources(content.pod)) or policy.spec.accelerators)[0]


def _type_for(node: Node, policy: Policy, current: str | None) -> str | None:
    """Return the first workload type, other than `current`, whose pods may use the node, or None."""
    key = policy.node_usage_key
    usages = {node.labels.get(key), *(taint.value for taint in node.taints if taint.key == key)}
    types = policy.spec.workload_types.items()
    return next((name for name, each in types if name != current and usages & {*each.node_usage.allow}), None)
