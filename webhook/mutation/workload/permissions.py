"""Check a pod against the limits of its namespace: workload types, products, schedulers, queues, cards.

If the pod itself has a value that is not allowed, it is denied. If a default of the namespace is not allowed, it is
ignored with a warning, because a value on a Namespace must not deny its pods.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webhook.backends.kueue import Kueue
from webhook.backends.registry import backend_of
from webhook.documents.field import FieldError, forbidden
from webhook.documents.text import cut
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.mutation.edits.node_terms import LONGEST_SHOWN
from webhook.mutation.workload.annotations import Annotations
from webhook.mutation.workload.batch_scheduling import BatchScheduling
from webhook.mutation.workload.card_count import cards_of
from webhook.policy.keys import Keys
from webhook.policy.policy import Policy, allows_namespace
from webhook.policy.products import limits_of, may_use_product, namespaces_of_product, products_instead_of
from webhook.policy.spec.field_types import matches_any


def read_type(annotations: Annotations, namespace: str, policy: Policy) -> tuple[str, list[FieldError]]:
    """Return the type, or "" if it is invalid or not allowed, and the denials of a type that the pod itself sets."""
    type_name = annotations.read(Keys.workload_type)
    if type_name is None:
        return "", []
    key, limits = policy.keys.workload_type, limits_of(policy.spec, namespace)
    workload_type = policy.spec.workload_types[type_name]
    detail = f'namespace "{namespace}" may not ask for workload type "{type_name}"'
    if not allows_namespace(workload_type, namespace):
        denial = _denial(annotations.path(key), detail, "namespaces", workload_type.allowed_namespaces)
    elif limits is not None and limits.workload_types is not None and type_name not in limits.workload_types:
        denial = _denial(annotations.path(key), detail, "workload types", limits.workload_types)
    else:
        return type_name, []
    if annotations.is_own(key):
        return "", [denial]
    annotations.ignore(denial)
    return "", []


def read_products(
    annotations: Annotations, namespace: str, policy: Policy, denials: list[FieldError]
) -> tuple[str, ...]:
    """Return the products. If the namespace may not use one of them, report it and return none."""
    key, products = policy.keys.gpu_product, annotations.read(Keys.gpu_product) or ()
    denied = [product for product in products if not may_use_product(policy.spec, product, namespace)]
    for product in denied:
        detail = f'namespace "{namespace}" may not ask for product "{product}"'
        noun, allowed = "products", products_instead_of(policy.spec, product, namespace)
        if allowed is None:
            noun, allowed = "namespaces", namespaces_of_product(policy.spec, product) or ()
        denial = _denial(annotations.path(key), detail, noun, allowed)
        if annotations.is_own(key):
            denials.append(denial)
        else:
            annotations.ignore(denial)
    return () if denied else products


def allowed_defaults(
    defaults: Mapping[str, str], own: Mapping[str, str], namespace: str, policy: Policy
) -> tuple[Mapping[str, str], list[str]]:
    """Return the defaults without a queue or scheduler that the namespace may not use, and warnings about these.

    A default that the pod overrides is kept.
    """
    if limits_of(policy.spec, namespace) is None:
        return defaults, []
    values = Annotations({}, namespace, {key: defaults[key] for key in defaults if key not in own}, policy)
    denials = dict(_denied_annotations(values, namespace, policy))
    kept = {key: value for key, value in defaults.items() if key not in denials}
    return kept, [f"ignored: {denial}" for denial in denials.values()]


def limit_denials(
    annotations: Annotations, pod: Mapping[str, Any], batch: BatchScheduling, namespace: str, policy: Policy
) -> Iterator[FieldError]:
    """Yield the denials for the queue, the scheduler (that of `batch`) and the number of cards of `pod`."""
    limits = limits_of(policy.spec, namespace)
    if limits is None:
        return
    yield from (denial for _, denial in _denied_annotations(annotations, namespace, policy))
    yield from _denied_queues(pod["metadata"], batch.scheduler, namespace, policy)
    if denial := _scheduler_denial("spec.schedulerName", pod["spec"].get("schedulerName"), namespace, policy):
        yield denial
    if limits.max_cards_per_pod is None:
        return
    if (cards := cards_of(pod, batch.scheduler, batch.request.gpu_fraction, policy)) > limits.max_cards_per_pod:
        detail = f'namespace "{namespace}" may not request {cards} cards in a pod'
        yield forbidden("spec.containers", f"{detail}; allowed: at most {limits.max_cards_per_pod}")


def _denied_annotations(annotations: Annotations, namespace: str, policy: Policy) -> Iterator[tuple[str, FieldError]]:
    for key, denial_of in ((policy.keys.queue, queue_denial), (policy.keys.scheduler, _scheduler_denial)):
        if denial := denial_of(annotations.path(key), (annotations.text(key) or "").strip(), namespace, policy):
            yield key, denial


def _denied_queues(metadata: Mapping[str, Any], scheduler: str, namespace: str, policy: Policy) -> Iterator[FieldError]:
    """Yield the denials of queues that the pod names in fields that its scheduler or Kueue reads."""
    for holder, key in (*backend_of(policy.spec, scheduler).queue_at, *Kueue.queue_at):
        queue = (metadata.get(holder) or {}).get(key)
        if denial := queue_denial(f"metadata.{holder}[{key}]", queue, namespace, policy):
            yield denial


def queue_denial(path: str, queue: str | None, namespace: str, policy: Policy) -> FieldError | None:
    """Return the denial of `queue` at `path`, or None if `queue` is empty or pods of `namespace` may use it."""
    limits = limits_of(policy.spec, namespace)
    if not queue or limits is None or limits.queues is None or matches_any(queue, limits.queues):
        return None
    detail = f'namespace "{namespace}" may not use queue "{cut(queue, LONGEST_SHOWN)}"'
    return _denial(path, detail, "queues", limits.queues)


def _scheduler_denial(path: str, scheduler: str | None, namespace: str, policy: Policy) -> FieldError | None:
    limits = limits_of(policy.spec, namespace)
    if not scheduler or limits is None or limits.schedulers is None:
        return None
    if scheduler in (DEFAULT_SCHEDULER, *limits.schedulers):
        return None
    detail = f'namespace "{namespace}" may not use scheduler "{cut(scheduler, LONGEST_SHOWN)}"'
    return _denial(path, detail, "schedulers", limits.schedulers)


def _denial(path: str, detail: str, noun: str, allowed: Sequence[str]) -> FieldError:
    return forbidden(path, f"{detail}; allowed {noun}: {', '.join(allowed) or 'none'}")
