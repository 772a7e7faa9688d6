"""Temporary states of nodes: cordoned, temporary taints, and devices that are unhealthy or not registered."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from webhook.cluster.index.labels import Mask
from webhook.cluster.node_info import Node
from webhook.cluster.snapshot import LARGEST_AMOUNT, Column, Snapshot
from webhook.kube.names import INSTANCE_TYPE_LABEL
from webhook.kube.pod.amounts import is_extended_resource
from webhook.kube.pod.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY_TAINTS,
    TEMPORARY_TAINTS,
    UNSCHEDULABLE,
    Toleration,
    is_temporary,
)
from webhook.placement.pod.pod_info import PodInfo
from webhook.policy.spec.accelerators import BUILT_IN_ACCELERATORS, Accelerator

_MOST_DIGITS = 6
# A pod can request thousands of resources; each takes a pass over the nodes.
_MOST_RESOURCES = 16

# Labels that say that a node has devices before any plugin does: of NFD, by vendor, and of clouds.
_DEVICE_LABELS = {
    "nvidia.com/": (
        *(f"feature.node.kubernetes.io/pci-{each}10de.present" for each in ("", "0300_", "0302_")),
        "cloud.google.com/gke-accelerator",
        "k8s.amazonaws.com/accelerator",
        "karpenter.k8s.aws/instance-gpu-name",
    ),
    "amd.com/": tuple(f"feature.node.kubernetes.io/pci-{each}1002.present" for each in ("", "0380_", "1200_")),
}


class UnhealthyDevices(NamedTuple):
    """A node on which `healthy` of `total` devices of `resource` can be used."""

    node: str
    resource: str
    healthy: int
    total: int

    def __str__(self) -> str:
        return f"{self.node}: {self.healthy} of {self.total} {self.resource} are healthy"


def is_ready(node: Node) -> bool:
    """Return whether the kubelet of `node` reports its status, by the taints, which kube-scheduler reads."""
    return all(each.key not in NOT_READY_TAINTS for each in node.taints)


def state_of(node: Node, temporary: Collection[str] = TEMPORARY_TAINTS) -> str:
    """Return the state in which `node` accepts no new pods, or an empty string if it accepts pods."""
    if node.unschedulable:
        return "cordoned"
    if not is_ready(node):
        return "not ready"
    keys = (each.key for each in node.taints if each.effect in (NO_SCHEDULE, NO_EXECUTE))
    return next((f"taint {key}" for key in keys if is_temporary(key, temporary)), "")


def open_nodes(nodes: Snapshot, temporary: Collection[str] = TEMPORARY_TAINTS) -> Mask:
    """Return a mask of the nodes that accept pods: those without a temporary state."""
    return np.array([not state_of(info.node, temporary) for info in nodes.nodes], dtype=np.bool_)


def tolerating_states(info: PodInfo, nodes: Snapshot, temporary: Collection[str]) -> PodInfo:
    """Return the pod with tolerations for all temporary taints of `nodes`, or `info` itself if there are none."""
    keys = {taint.key for taint in nodes.taints.distinct if is_temporary(taint.key, temporary)}
    if nodes.unschedulable.any():
        keys.add(UNSCHEDULABLE)
    if not keys:
        return info
    return info._replace(tolerations=info.tolerations.union(Toleration(key, "Exists", "", "") for key in keys))


def uncordoned(nodes: Snapshot) -> Snapshot:
    """Return `nodes` with no node cordoned; `nodes` itself if none is."""
    return replace(nodes, unschedulable=np.zeros_like(nodes.unschedulable)) if nodes.unschedulable.any() else nodes


def with_healthy_devices(info: PodInfo, nodes: Snapshot) -> Snapshot:
    """Return `nodes` with all devices of the pod's resources counted as healthy; `nodes` itself if all are healthy."""
    changed = {}
    for resource in [name for name, _ in info.requests if is_extended_resource(name)][:_MOST_RESOURCES]:
        healthy = healthy_amounts(nodes, resource)
        if (healthy != nodes.allocatable(resource)).any():
            changed[resource] = healthy
    if not changed:
        return nodes
    devices = replace(nodes.devices, answers={})
    return replace(nodes, allocatable_columns={**nodes.allocatable_columns, **changed}, devices=devices)


def healthy_amounts(nodes: Snapshot, resource: str) -> Column:
    """Return the amount of `resource` that each node offers when all its devices are healthy and registered.

    If the device plugin has not registered yet, the node has no amount. The amount is then derived from labels of the
    node about its cards (number, product, `CARD.present`, labels of NFD and clouds), or from other nodes
    of the same product or instance type. `LARGEST_AMOUNT` means an unknown number of cards.
    """
    lost = np.array([info.node.unhealthy.get(resource, 0) for info in nodes.nodes], dtype=np.int64)
    healthy: Column = nodes.allocatable(resource) + lost
    of = [each for each in BUILT_IN_ACCELERATORS if any(fnmatchcase(resource, name) for name in each.resources)]
    products = dict.fromkeys((f"{resource}.product", *(label for each in of for label in each.product_labels)))
    alike = _most_on_alike(nodes, healthy, (*products, INSTANCE_TYPE_LABEL))
    domain = f"{resource.partition('/')[0]}/"
    of_cards = dict.fromkeys((f"{resource}.present", *(f"{each.card}.present" for each in of)))
    present = (*of_cards, *products, *_DEVICE_LABELS.get(domain, ()))
    counts = dict.fromkeys((f"{resource}.count", *(label for each in of for label in each.count_labels)))
    is_labelled = alike > 0
    for key in (*counts, *present):
        is_labelled |= nodes.labels.domains(key).codes >= 0
    for row in np.flatnonzero(is_labelled & (healthy == 0)).tolist():
        node = nodes.nodes[row].node
        if not _has_registered(node, domain):
            is_present = any(node.labels.get(key, "false") != "false" for key in present)
            healthy[row] = _labelled(node, counts) or int(alike[row]) or (LARGEST_AMOUNT if is_present else 0)
    return healthy


def _most_on_alike(nodes: Snapshot, amounts: Column, keys: Iterable[str]) -> Column:
    """Return, for each node, the largest of `amounts` on nodes with an equal label of `keys`, or 0 without a label."""
    most: Column = np.zeros_like(amounts)
    for key in keys:
        codes, count = nodes.labels.domains(key)
        largest = np.zeros(count, dtype=np.int64)
        has_label = codes >= 0
        np.maximum.at(largest, codes[has_label], amounts[has_label])
        most[has_label] = np.maximum(most[has_label], largest[codes[has_label]])
    return most


def unhealthy_devices(nodes: Iterable[Node], accelerators: Iterable[Accelerator]) -> Iterator[UnhealthyDevices]:
    """Yield the devices, with cards that only labels show, that `nodes` have but do not offer, in order."""
    cards = {each.card: each for each in accelerators}
    for node in nodes:
        for resource, lost in sorted(node.unhealthy.items()):
            healthy = node.allocatable.get(resource, 0)
            yield UnhealthyDevices(node.name, resource, healthy, healthy + lost)
        for card, accelerator in cards.items():
            # A label of a cloud can count the cards of other accelerators.
            is_own = accelerator.product_of(node.labels) is not None
            count = _labelled(node, accelerator.count_labels if is_own else (f"{card}.count",))
            if count and not _has_registered(node, f"{card.partition('/')[0]}/"):
                yield UnhealthyDevices(node.name, accelerator.resources[0], 0, count)


def _labelled(node: Node, labels: Iterable[str]) -> int:
    """Return the number of devices in the first of `labels` that the node has, or 0.

    GPU Feature Discovery counts cards, and has the devices of each in `CARD.replicas`.
    """
    for label in labels:
        if count := _number(node.labels.get(label, "")):
            return count * max(1, _number(node.labels.get(f"{label.removesuffix('.count')}.replicas", "")))
    return 0


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else 0


def _has_registered(node: Node, domain: str) -> bool:
    amounts = (*node.allocatable.items(), *node.unhealthy.items())
    return any(amount and name.startswith(domain) for name, amount in amounts)
