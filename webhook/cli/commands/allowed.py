"""`allowed`: print what the pods of a namespace may use."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from webhook.cli.inputs.clusters import cluster_option, live_options
from webhook.cli.inputs.files import output_option
from webhook.cli.inputs.manifests import namespace_option
from webhook.cli.inputs.policies import NamespacePolicies, policies_option, policy_to_json
from webhook.cli.inputs.session import Session, with_session
from webhook.cli.output.screen import marked, text_console
from webhook.cli.output.terminal import echo_json, warn
from webhook.cluster.snapshot import Snapshot
from webhook.kube.names import DEFAULT_SCHEDULER
from webhook.policy.policy import allows_namespace
from webhook.policy.products import limits_of, may_use_product
from webhook.policy.spec.admission import NamespaceLimits
from webhook.policy.spec.document import PolicySpec
from webhook.policy.spec.field_types import matches_any


@click.command()
@with_session(namespace_option, cluster_option, live_options, policies_option, output_option, needs_pods=False)
def allowed(session: Session) -> int:
    """Print the workload types, products, schedulers and queues that the pods of a namespace may use.

    The products are those of the nodes, and those that the policy names. The queues are those of Volcano, KAI and Kueue
    in the cluster.

    \b
    Examples:
      placement-webhook allowed -n team-a
      placement-webhook allowed -n team-a --cluster cluster.json --policy policy.yaml -o json
    """
    snapshot, namespace = session.snapshot, session.default_namespace
    if snapshot.namespaces and namespace not in snapshot.namespaces:
        warn(f"the cluster has no namespace {namespace}")
    policy = NamespacePolicies(session.rules, snapshot).of_namespace(namespace)
    found = _found(policy.spec, snapshot, namespace)
    place = session.place_of(policy)
    if session.is_json:
        echo_json({"namespace": namespace, "policy": policy_to_json(policy, place), **found})
        return 0
    most, patterns = found["maxCardsPerPod"], found["queuePatterns"]
    limited = "any" if patterns is None else _joined(patterns)
    lines = (
        ("policy", f"{policy.identity} ({place})" if place else policy.identity),
        ("workload types", _joined(found["workloadTypes"])),
        ("products", _joined(found["products"])),
        ("not allowed", _joined(found["otherProducts"])),
        ("schedulers", _joined(found["schedulers"])),
        ("queues", f"{limited}; in the cluster: {_joined(found['queues'])}"),
        ("cards of a pod", "no limit" if most is None else f"at most {most}"),
    )
    console = text_console()
    console.print(f"[bold]{marked(namespace)}[/bold]:")
    for title, text in lines:
        console.print(f"  {title:<15} {marked(text)}")
    return 0


def _found(spec: PolicySpec, snapshot: Snapshot, namespace: str) -> dict[str, Any]:
    limits = limits_of(spec, namespace) or NamespaceLimits(namespaces=("*",))
    types = (name for name, each in spec.workload_types.items() if allows_namespace(each, namespace))
    products = _products(spec, snapshot)
    schedulers = dict.fromkeys((DEFAULT_SCHEDULER, *spec.allowed_schedulers))
    return {
        "workloadTypes": _within(types, limits.workload_types),
        "products": [each for each in products if may_use_product(spec, each, namespace)],
        "otherProducts": [each for each in products if not may_use_product(spec, each, namespace)],
        "schedulers": _within(schedulers, limits.schedulers, DEFAULT_SCHEDULER),
        "queues": _within(sorted(_queues(snapshot, namespace)), limits.queues),
        "queuePatterns": limits.queues,
        "maxCardsPerPod": limits.max_cards_per_pod,
    }


def _products(spec: PolicySpec, snapshot: Snapshot) -> list[str]:
    labels = {label for each in spec.accelerators for label in each.product_labels}
    held = {info.node.labels[label] for info in snapshot.nodes for label in labels.intersection(info.node.labels)}
    limited = (product for each in spec.namespace_limits for product in each.products or ())
    return sorted(held.union(each for each in (*spec.allowed_products, *limited) if "*" not in each))


def _queues(snapshot: Snapshot, namespace: str) -> Iterator[str]:
    """Yield the queues that pods of the namespace can name, without parent queues of KAI, which take no pods."""
    yield from snapshot.volcano.queues or ()
    yield from (name for name in snapshot.kai.queues or () if name not in snapshot.kai.parents)
    yield from (name for own, name in snapshot.kueue.local_queues or () if own == namespace)


def _within(names: Iterable[str], patterns: Sequence[str] | None, *always: str) -> list[str]:
    """Return the names that match one of `patterns` or are in `always`, or all names if `patterns` is None."""
    return [each for each in names if patterns is None or each in always or matches_any(each, patterns)]


def _joined(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
