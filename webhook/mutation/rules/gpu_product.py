"""GpuProduct: run the pod on cards that meet its annotations."""

from collections.abc import Iterator, Sequence

from webhook.mutation.edits.edits import AddToleration, Edit
from webhook.mutation.edits.node_edits import RequireNode
from webhook.mutation.edits.node_terms import NodeLabelRequirement
from webhook.mutation.workload.workload import Workload
from webhook.policy.policy import Policy


class GpuProduct:
    """Requires the product, memory, count and driver labels of the annotations, and tolerates the products' taints.

    A pod that requests a card and names no product tolerates the taint of every product that it may use.
    """

    @staticmethod
    def edits(workload: Workload, policy: Policy) -> Sequence[Edit] | str:
        """Return required expressions on the accelerator's labels, and tolerations of products."""
        product_label = f"{workload.accelerator.card}.product"
        edits: list[Edit] = []
        if workload.products and policy.spec.product_affinity:
            edits.append(RequireNode(NodeLabelRequirement(product_label, "In", workload.products)))
        edits += _amounts(workload)
        edits += [AddToleration(product_label, product) for product in workload.products]
        edits += _any_product(workload)
        if not edits and not workload.requested_accelerators:
            return "the pod has no valid gpu- annotation and requests no accelerator"
        return edits or "the pod has no valid gpu- annotation"


def _amounts(workload: Workload) -> Iterator[Edit]:
    card = workload.accelerator.card
    memory = workload.gpu_memory
    if memory is not None:
        yield RequireNode(_at_least(f"{card}.memory", memory.least_mib, memory.origin))
    if workload.gpu_count is not None:
        yield RequireNode(_at_least(f"{card}.count", workload.gpu_count))
    if workload.gpu_driver is not None:
        driver_label = workload.accelerator.driver_label or f"{card}.driver-version"
        yield RequireNode(_at_least(driver_label, workload.gpu_driver))


def _at_least(label: str, least: int, origin: str = "") -> NodeLabelRequirement:
    # Node selectors have no operator for "at least", only Gt.
    return NodeLabelRequirement(label, "Gt", (str(least - 1),), origin)


def _any_product(workload: Workload) -> Iterator[Edit]:
    """Yield the edits for a pod that names no product."""
    choice = workload.any_product
    if choice is None:
        return
    for accelerator in workload.requested_accelerators:
        label = f"{accelerator.card}.product"
        if choice.listed is not None:
            if choice.is_required and choice.listed:
                yield RequireNode(NodeLabelRequirement(label, "In", choice.listed))
            yield from (AddToleration(label, product) for product in choice.listed)
            continue
        if choice.excluded:
            # NotIn also matches nodes without the label, whose taint could be that of an excluded product.
            yield RequireNode(NodeLabelRequirement(label, "Exists"))
            yield RequireNode(NodeLabelRequirement(label, "NotIn", choice.excluded))
        yield AddToleration(label, operator="Exists")
