"""The nodes that an autoscaler can add, as the policy's node templates describe them."""

from collections.abc import Iterable
from dataclasses import dataclass

from webhook.cluster.node_info import Node, NodeInfo
from webhook.kube.names import ARCH_LABEL, HOSTNAME_LABEL, OS_LABEL
from webhook.kube.pod.amounts import PODS
from webhook.policy.spec.schedulers import NodeTemplate

# The defaults of a kubelet.
_DEFAULT_PODS = "110"
_DEFAULT_LABELS = {OS_LABEL: "linux", ARCH_LABEL: "amd64"}


@dataclass(frozen=True, slots=True)
class TemplateNode:
    """A new, empty node of the template `name`."""

    name: str
    info: NodeInfo

    @classmethod
    def of(cls, template: NodeTemplate) -> "TemplateNode":
        """Return the empty node of `template`. No real node can have its name and hostname label."""
        node_name = f"<{template.name}>"
        node = {
            "metadata": {
                "name": node_name,
                "labels": {**_DEFAULT_LABELS, **template.labels, HOSTNAME_LABEL: node_name},
            },
            "spec": {"taints": [taint.model_dump() for taint in template.taints]},
            "status": {"allocatable": {PODS: _DEFAULT_PODS, **template.capacity}},
        }
        return cls(template.name, NodeInfo.of(Node.of(node)))


def template_nodes(templates: Iterable[NodeTemplate]) -> tuple[TemplateNode, ...]:
    """Return a node for each of a policy's `templates`, in order."""
    return tuple(TemplateNode.of(template) for template in templates)
