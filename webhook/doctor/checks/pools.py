"""The pools of the policy have nodes."""

from collections.abc import Iterator

from webhook.doctor.check import check
from webhook.doctor.finding import Fault, info, warning
from webhook.doctor.installation import Installation
from webhook.doctor.node_facts import NodeFacts, nodes_of, pools_of
from webhook.doctor.source import Source
from webhook.policy.policy import Policy


@check(
    "pools",
    "No node has a usage that the policy allows to a workload type",
    "`kubectl label node NODE KEY-DOMAIN/node.usage=POOL`, or remove the pool from `nodeUsage.allow`",
    Source.NODES,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each workload type without any node, and a note for each other pool without nodes.

    A pool of a node template is not empty: an autoscaler can add its nodes.
    """
    if not installation.knows(Source.NODES):
        return
    nodes, noted = nodes_of(installation), set[tuple[str, str]]()
    for policy in installation.policies:
        for fault, pool in _faults(installation, policy, nodes):
            if pool is None or (policy.node_usage_key, pool) not in noted:
                yield fault
            noted.add((policy.node_usage_key, pool or ""))


def _faults(
    installation: Installation, policy: Policy, nodes: tuple[NodeFacts, ...]
) -> Iterator[tuple[Fault, str | None]]:
    """Yield the faults of one policy; with the pool for a note."""
    key, place = policy.node_usage_key, installation.place_of(policy)
    held = {node.labels[key] for node in nodes if key in node.labels}
    held |= {each.labels[key] for each in policy.spec.node_templates if key in each.labels}
    empty_types = set()
    for name, each in policy.spec.workload_types.items():
        if held.isdisjoint(each.node_usage.allow):
            empty_types.add(name)
            what = f"no node has one of {', '.join(each.node_usage.allow)}: every pod of {name} stays Pending"
            label = f"{key}={each.node_usage.allow[0]}"
            remedy = f"`kubectl label node NODE {label}` and `kubectl taint node NODE {label}:NoSchedule`"
            yield warning(f"{place}: spec.workloadTypes.{name}.nodeUsage.allow", what, remedy), None
    for pool, types in pools_of(policy).items():
        if pool not in held and not empty_types.issuperset(types):
            where = f"{place}: spec.workloadTypes.{types[0]}.nodeUsage.allow"
            yield (
                info(where, f"no node has {key}={pool}", f"remove the pool, or `kubectl label node NODE {key}={pool}`"),
                pool,
            )
