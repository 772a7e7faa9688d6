"""A pod of each workload type fits on some node, were it empty."""

from collections.abc import Iterator, Sequence

from webhook.cluster.node_info import Node, NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, warning
from webhook.doctor.installation import Installation, name_of
from webhook.doctor.node_facts import nodes_of, offered_cards
from webhook.doctor.sample_pods import judge, sample_pod, types_of
from webhook.doctor.source import Source
from webhook.kube.field import InvalidInput
from webhook.placement.scheduler import Scheduler
from webhook.placement.templates import template_nodes
from webhook.policy.policy import Policy


@check(
    "workload-types",
    "No node could run the smallest pod of a workload type with one card, or no namespace may use the type",
    "the finding has the message of kube-scheduler; `placement-webhook check` explains it for a pod",
    Source.NODES,
    Source.NAMESPACES,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each type whose smallest pod no empty node can take, with any of the offered resources."""
    if not (installation.knows(Source.NODES) and installation.knows(Source.NAMESPACES)):
        return
    snapshot = _empty_nodes(installation)
    names = [name_of(each) for each in installation.of(Source.NAMESPACES)]
    for policy in installation.policies:
        # Its pods are in these namespaces alone.
        own = [name for name in names if installation.policy_of(name) is policy]
        yield from _faults(installation, policy, own, snapshot)


def _faults(
    installation: Installation, policy: Policy, namespaces: Sequence[str], snapshot: Snapshot
) -> Iterator[Fault]:
    nodes, place = nodes_of(installation), installation.place_of(policy)
    resources: list[str | None] = [*offered_cards(policy, nodes)] or [None]
    scheduler = Scheduler(templates=template_nodes(policy.spec.node_templates))
    usages = {each.labels.get(policy.node_usage_key) for each in nodes}
    for name, each in policy.spec.workload_types.items() if namespaces else ():
        where = f"{place}: spec.workloadTypes.{name}"
        namespace = next((ns for ns in namespaces if name in types_of(policy, ns)), None)
        if namespace is None:
            patterns = ", ".join(each.allowed_namespaces)
            what = f"no namespace of the cluster matches {patterns}"
            yield warning(f"{where}.allowedNamespaces", what, "correct the patterns, or create the namespace")
        elif not usages.isdisjoint(each.node_usage.allow):
            reason = _why_not(policy, name, namespace, resources, scheduler, snapshot)
            if reason:
                remedy = (
                    "`placement-webhook check --mutate -f POD` explains each node; correct labels, taints or policy"
                )
                yield warning(where, f"no node could run its smallest pod, even if all were empty: {reason}", remedy)


def _why_not(
    policy: Policy,
    workload_type: str,
    namespace: str,
    resources: Sequence[str | None],
    scheduler: Scheduler,
    snapshot: Snapshot,
) -> str:
    """Return the scheduler's message if no card of `resources` will do; empty if one does."""
    reason = ""
    for resource in resources:
        judged = judge(sample_pod(policy, workload_type, resource), namespace, policy)
        if judged.signature is None:
            reason = reason or judged.reason
            continue
        placement = scheduler.answer(judged.signature, snapshot)
        if placement.verdict != "Infeasible":
            return ""
        reason = reason or placement.message
    return reason


def _empty_nodes(installation: Installation) -> Snapshot:
    infos = []
    for each in installation.of(Source.NODES):
        try:
            infos.append(NodeInfo.of(Node.of(each)))
        except InvalidInput:
            continue
    return Snapshot.of(infos)
