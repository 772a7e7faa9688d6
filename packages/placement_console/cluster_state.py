"""The nodes of a snapshot as JSON for the map: pool, product, cards with their pods, CPU and memory, taints."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from placement_console.pod_facts import PodFacts
from placement_planner.card_groups import card_count, group_facts
from webhook.cluster.node_info import Node, NodeInfo, RunningPod
from webhook.cluster.snapshot import Snapshot
from webhook.documents.text import json_bytes
from webhook.kube.names import HOSTNAME_LABEL
from webhook.kube.pod.amounts import CPU, MEMORY
from webhook.placement.framework.node_states import UnhealthyDevices, is_ready, state_of, unhealthy_devices
from webhook.placement.packing.free_cards import NONE, accelerator_of
from webhook.placement.packing.held_cards import BRIEF_SECONDS, end_seconds, is_of_node, timeless_class
from webhook.policy.policy import Policy

_MOST_TAINTS = 16
# A node takes 110 pods by default; a card that is shared can have many.
_MOST_PODS = 128


class ClusterState:
    """Writes nodes as JSON. Each state of a node is written once, and all clients share the bytes.

    `policy` defines pools, products and cards. An instance is for one thread.
    """

    def __init__(self, policy: Policy, facts: PodFacts) -> None:
        self._policy = policy
        self._facts = facts
        self._accelerators = policy.spec.accelerators
        self._count = card_count(policy)
        aliases = policy.spec.topology_aliases.items()
        # Each node is a domain of its own.
        self._domains = {alias: key for alias, key in aliases if key != HOSTNAME_LABEL}
        self._written: dict[str, tuple[NodeInfo, bytes]] = {}
        self._groups: tuple[Snapshot | None, list[dict[str, Any]]] = (None, [])

    def full(self, snapshot: Snapshot, age_seconds: float, name: str = "") -> bytes:
        """Return the state with all nodes, in the order of their names."""
        if len(self._written) > 2 * len(snapshot.nodes):
            self._written = {each: kept for each, kept in self._written.items() if each in snapshot.rows}
        head = {**self._head(snapshot, age_seconds), "cluster": name, "policy": self._policy.name}
        return orjson.dumps({**head, "nodes": [self._node(info) for info in snapshot.nodes]})

    def change(self, before: Snapshot, after: Snapshot, age_seconds: float) -> bytes:
        """Return the nodes of `after` that differ from `before`, and the names of nodes that are gone."""
        changed = [self._node(info) for info in changed_nodes(before, after)]
        gone = [] if before.rows is after.rows else [each for each in before.rows if each not in after.rows]
        return orjson.dumps({**self._head(after, age_seconds), "nodes": changed, "gone": gone})

    def _head(self, snapshot: Snapshot, age_seconds: float) -> dict[str, Any]:
        if self._groups[0] is not snapshot:
            self._groups = snapshot, [*map(group_facts, self._count.of(snapshot))]
        return {
            "generation": snapshot.generation,
            "ageSeconds": round(age_seconds, 1),
            "pending": len(snapshot.pending),
            "groups": self._groups[1],
        }

    def _node(self, info: NodeInfo) -> orjson.Fragment:
        known = self._written.get(info.node.name)
        if known is None or known[0] is not info:
            known = self._written[info.node.name] = info, json_bytes(self._facts_of(info))
        return orjson.Fragment(known[1])

    def _facts_of(self, info: NodeInfo) -> dict[str, Any]:
        node, labels = info.node, info.node.labels
        cards = [*self._cards(info)]
        of_card = next((each for each in self._accelerators if cards and each.card == cards[0]["card"]), None)
        return {
            "name": node.name,
            "pool": labels.get(self._policy.node_usage_key) or NONE,
            "product": (of_card.product_of(labels) if of_card else None) or NONE,
            "domains": {alias: labels[key] for alias, key in self._domains.items() if key in labels},
            "ready": is_ready(node),
            # The page compares the time from which its pods count as held.
            "downFrom": node.not_ready_seconds + BRIEF_SECONDS if node.not_ready_seconds else 0,
            "cordoned": node.unschedulable,
            "state": state_of(node, self._policy.spec.temporary_taints),
            "unhealthy": [[resource, healthy, total] for _, resource, healthy, total in self._unhealthy(node)],
            "taints": [
                f"{each.key}{each.value and f'={each.value}'}:{each.effect}" for each in node.taints[:_MOST_TAINTS]
            ],
            "cpu": [info.requested.get(CPU, 0), node.allocatable.get(CPU, 0)],
            "memory": [info.requested.get(MEMORY, 0), node.allocatable.get(MEMORY, 0)],
            "pods": [len(info.pods), node.allowed_pods],
            "cards": cards,
        }

    def _unhealthy(self, node: Node) -> Iterator[UnhealthyDevices]:
        return unhealthy_devices((node,), self._accelerators)

    def _cards(self, info: NodeInfo) -> Iterator[dict[str, Any]]:
        """Yield the card resources of the node with the pods that use them. Whole cards come first."""
        found = []
        for resource, amount in info.node.allocatable.items():
            accelerator = accelerator_of(resource, self._accelerators) if amount else None
            if accelerator is not None:
                found.append((kind_of(resource), resource, amount, accelerator))
        for kind, resource, amount, accelerator in sorted(found, key=lambda each: (each[0] != "whole", each[1])):
            users = [each for each in info.pods if each.requests.get(resource)]
            users.sort(key=lambda each: (each.namespace, each.name))
            yield {
                "resource": resource,
                "card": accelerator.card,
                "kind": kind,
                "count": amount,
                "used": [self._user(each, resource, info.node) for each in users[:_MOST_PODS]],
            }

    def _user(self, pod: RunningPod, resource: str, node: Node) -> list[Any]:
        """Return namespace, name, number of cards, owner and workload type of a pod.

        Of a pod that does not use its cards, or may not soon, also its class, or "", and the Unix time by which it
        should have ended, or 0. The written node does not depend on the time, so the page compares the times.
        """
        fact = self._facts.of(pod.namespace, pod.name)
        found = [pod.namespace, pod.name, pod.requests[resource], fact.owner, fact.workload_type]
        reason, end = timeless_class(pod, node), 0 if is_of_node(pod) else end_seconds(pod)
        return [*found, reason, end] if reason or end else found


def kind_of(resource: str) -> str:
    """Return `whole`, `shared` or `mig`, by the resource name, which a device plugin defines."""
    if "/mig-" in resource:
        return "mig"
    return "shared" if resource.endswith(".shared") else "whole"


def changed_nodes(before: Snapshot, after: Snapshot) -> Sequence[NodeInfo]:
    """Return the nodes of `after` that are new or not the same objects in `before`."""
    if before.rows is after.rows:
        pairs: Iterable[tuple[NodeInfo | None, NodeInfo]] = zip(before.nodes, after.nodes, strict=True)
    else:
        known: Mapping[str, NodeInfo] = {each.node.name: each for each in before.nodes}
        pairs = ((known.get(each.node.name), each) for each in after.nodes)
    return [now for then, now in pairs if then is not now]
