"""The nodes that an autoscaler can add, as the policy's node templates describe them."""

from collections.abc import Iterable
from dataclasses import dataclass

from webhook.cluster.node_info import Node, NodeInfo
from webhook.kube.resource_names import PODS
from webhook.kube.wellknown import ARCH_LABEL, HOSTNAME_LABEL, OS_LABEL
from webhook.policy.node_template import NodeTemplate

# What a kubelet allows and labels where nobody tells it otherwise.
_DEFAULT_PODS = "110"
_DEFAULT_LABELS = {OS_LABEL: "linux", ARCH_LABEL: "amd64"}


@dataclass(frozen=True, slots=True)
class TemplateNode:
    """A node as it would be right after it was added from the template `name`: nothing runs there."""

    name: str
    info: NodeInfo

    @classmethod
    def of(cls, template: NodeTemplate) -> "TemplateNode":
        """The empty node of `template`. Its name, like its hostname label, is one that no node can have."""
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
    """The nodes of a policy's `templates`, in their order."""
    return tuple(TemplateNode.of(template) for template in templates)
