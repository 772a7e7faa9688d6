"""NodeUsageAffinity: run the pod on the node pools of its workload type."""

from collections.abc import Sequence

from webhook.mutation.edits.edits import AddToleration, Edit
from webhook.mutation.edits.node_edits import PreferNode, RequireNode
from webhook.mutation.edits.node_terms import NodeLabelRequirement
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import Policy


class NodeUsageAffinity:
    """Requires the type's `node.usage` labels, prefers its own pool, and tolerates the pools' taints."""

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit]:
        """Return one required expression, a preferred term for each weight, and a toleration for each pool."""
        usage, key = workload.type.node_usage, policy.node_usage_key
        # Sorted, because the order of keys in the policy is not part of its revision.
        preferred = sorted(usage.prefer.items(), key=lambda item: (-item[1], item[0]))
        preferences = tuple((weight, NodeLabelRequirement(key, "In", (value,))) for value, weight in preferred)
        return (
            RequireNode(NodeLabelRequirement(key, "In", usage.allow)),
            *(PreferNode(weight, preference, preferences) for weight, preference in preferences),
            *(AddToleration(key, value) for value in usage.allow),
        )
