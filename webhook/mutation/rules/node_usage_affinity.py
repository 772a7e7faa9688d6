"""NodeUsageAffinity: the pod runs on the node pools of its type."""

from collections.abc import Sequence
from typing import ClassVar

from webhook.mutation.edits import Edit, PreferNode, RequireNode, Tolerate
from webhook.mutation.node_terms import Requirement
from webhook.mutation.workload import Workload
from webhook.policy.policy import Policy


class NodeUsageAffinity:
    """Requires the type's `node.usage` labels, prefers its own pool, and tolerates the pools' taints."""

    name: ClassVar[str] = "NodeUsageAffinity"

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit]:
        """One required expression, a preferred term for each weight, a toleration for each pool."""
        usage, key = workload.type.node_usage, policy.node_usage_key
        # In an order of its own: the order of the policy's keys is not in its revision.
        preferred = sorted(usage.prefer.items(), key=lambda item: (-item[1], item[0]))
        return (
            RequireNode(Requirement(key, "In", usage.allow)),
            *(PreferNode(weight, Requirement(key, "In", (value,))) for value, weight in preferred),
            *(Tolerate(key, value) for value in usage.allow),
        )
