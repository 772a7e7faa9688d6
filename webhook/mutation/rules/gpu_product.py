"""GpuProduct: run the pod on cards that meet its annotations."""

from collections.abc import Sequence
from typing import ClassVar

from webhook.mutation.edits import AddToleration, Edit, RequireNode
from webhook.mutation.node_terms import NodeLabelRequirement
from webhook.mutation.rule import Skipped
from webhook.mutation.workload import Workload
from webhook.policy.policy import Policy


class GpuProduct:
    """Requires the product, memory, count and driver labels of the annotations, and tolerates the products' taints."""

    name: ClassVar[str] = "GpuProduct"

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | Skipped:
        """Return required expressions on the accelerator's labels, and a toleration for each product."""
        card = workload.accelerator.card
        product_label = f"{card}.product"
        driver_label = workload.accelerator.driver_label or f"{card}.driver-version"
        edits: list[Edit] = []
        if workload.products and policy.spec.product_affinity:
            edits.append(RequireNode(NodeLabelRequirement(product_label, "In", workload.products)))
        amounts = (
            (f"{card}.memory", workload.gpu_memory_mib),
            (f"{card}.count", workload.gpu_count),
            (driver_label, workload.gpu_driver),
        )
        # Node selectors have no operator for "at least", only Gt.
        edits += [
            RequireNode(NodeLabelRequirement(key, "Gt", (str(least - 1),)))
            for key, least in amounts
            if least is not None
        ]
        edits += [AddToleration(product_label, product) for product in workload.products]
        return edits or Skipped("no card is asked for")
