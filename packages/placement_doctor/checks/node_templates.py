"""The policy has a node template for each kind of nodes with accelerators that an autoscaler adds."""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import yaml

from placement_doctor.check import Finding, check, info, named, warning
from placement_doctor.cluster import Cluster, name_of
from placement_doctor.source import Source
from webhook.documents.documents import JsonObject, field
from webhook.documents.parts import listed, texts
from webhook.kube.names import INSTANCE_TYPE_LABEL
from webhook.kube.pod.taints import Taint, is_temporary
from webhook.kube.quantity import value
from webhook.placement.packing.free_cards import accelerator_of
from webhook.policy.policy import Policy
from webhook.policy.spec.accelerators import FACTS
from webhook.policy.spec.schedulers import NodeTemplate

_NODE_POOL_LABEL = "karpenter.sh/nodepool"
# The labels of managed node groups of EKS, GKE and AKS. Only the cloud provider knows which one an autoscaler changes.
_GROUP_LABELS = ("eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool")
_AUTOSCALER_LEASE = "cluster-autoscaler"


class _Kind(NamedTuple):
    """The nodes of a pool with the same accelerators, taints and labels that pods select.

    `pool_key` is the label that names the `pool`. `example` is one of them, or a NodeClaim. `has_labels` is false if
    their labels of accelerators are not known.
    """

    pool_key: str
    pool: str
    example: str
    labels: Mapping[str, str]
    taints: frozenset[Taint]
    capacity: Mapping[str, str]
    has_labels: bool


@check(
    "add the entry that the finding prints to `nodeTemplates`",
    needs={Source.NODES, Source.NODE_POOLS, Source.LEASES, Source.POLICY},
)
def node_templates(cluster: Cluster) -> Iterator[Finding]:
    """An autoscaler adds nodes with accelerators that no node template describes, or a template names no NodePool.

    Without a template, pods that need such a node are Infeasible if none is left. Node groups of Cluster Autoscaler are
    an INFO, because no object shows whether it may remove their last node. Sizes that no node or NodeClaim has are not
    guessed.
    """
    policy, pools = cluster.policy, _node_pools(cluster)
    templates = [each for some in cluster.policies for each in some.spec.node_templates]
    kinds = [*_of_node_pools(cluster, policy, pools), *_of_node_groups(cluster, policy)]
    place = f"{cluster.place_of(policy)}: spec.nodeTemplates"
    for kind in kinds:
        if not any(_describes(each, kind, policy) for each in templates):
            severity, title = (warning, "NodePool") if kind.pool_key == _NODE_POOL_LABEL else (info, "node group")
            cards = " and ".join(f"{amount} {name}" for name, amount in _cards(kind.capacity, policy).items())
            what = f"no entry is as the nodes of {title} {kind.pool}, such as {kind.example} ({cards})"
            missing = "" if kind.has_labels else ", with the labels that discovery writes"
            effect = "if none is left, pods that need one are Infeasible"
            yield severity(place, f"{what}: {effect}", f"{_entry(kind)}{missing}")
    known = {each.pool for each in kinds} | {each.labels.get(_NODE_POOL_LABEL) for each in templates}
    for name, pool in pools.items():
        if name not in known and _has_accelerators(pool, policy):
            what = f"NodePool {name} has had no node yet, so the size of its nodes is not known in the cluster"
            yield info(place, what, "write an entry by hand, or run doctor when it has a node")
    for template in templates if pools else ():
        wanted = template.labels.get(_NODE_POOL_LABEL)
        if wanted is not None and wanted not in pools:
            what = f"template {template.name}: there is no NodePool {wanted}, so pods wait for nodes that never come"
            yield warning(place, what, f"remove the entry, or name one of {named(sorted(pools))}")


def _node_pools(cluster: Cluster) -> dict[str, JsonObject]:
    """Return the NodePools by name, without static ones, which do not add nodes for pods."""
    own = (each for each in cluster.of(Source.NODE_POOLS) if each.get("kind") == "NodePool")
    return {str(field(each, "metadata", "name")): each for each in own if field(each, "spec", "replicas") is None}


def _of_node_pools(cluster: Cluster, policy: Policy, pools: Mapping[str, JsonObject]) -> Iterator[_Kind]:
    claims = [each for each in cluster.of(Source.NODE_POOLS) if each.get("kind") == "NodeClaim"]
    startup = (each for pool in pools.values() for each in listed(pool, "spec", "template", "spec", "startupTaints"))
    ignored = [*policy.spec.temporary_taints, *(str(each.get("key")) for each in startup)]
    of_nodes = _kinds(cluster.of(Source.NODES), _NODE_POOL_LABEL, policy, ignored)
    yield from (each for each in of_nodes if each.pool in pools)
    seen = {(each.pool, *_cards(each.capacity, policy).items()) for each in of_nodes}
    for each in _kinds(claims, _NODE_POOL_LABEL, policy, ignored):
        # Vendor discovery labels the node, not the NodeClaim.
        if each.pool in pools and (each.pool, *_cards(each.capacity, policy).items()) not in seen:
            yield each._replace(has_labels=False)


def _of_node_groups(cluster: Cluster, policy: Policy) -> Iterator[_Kind]:
    """Yield the kinds of nodes in node groups, if Cluster Autoscaler has a Lease."""
    if any(field(each, "metadata", "name") == _AUTOSCALER_LEASE for each in cluster.of(Source.LEASES)):
        for key in _GROUP_LABELS:
            yield from _kinds(cluster.of(Source.NODES), key, policy, policy.spec.temporary_taints)


def _kinds(objects: Iterable[JsonObject], pool_key: str, policy: Policy, ignored: Collection[str]) -> list[_Kind]:
    """Return the kinds of the nodes or NodeClaims with accelerators and the label `pool_key`, by their names.

    `ignored` are the keys of taints that pass.
    """
    selected, found = (
        [pool_key, policy.node_usage_key, *_card_labels(policy), INSTANCE_TYPE_LABEL],
        dict[Any, _Kind](),
    )
    for each in sorted(objects, key=name_of):
        labels, capacity = texts(each, "metadata", "labels"), texts(each, "status", "allocatable")
        cards = _cards(capacity, policy)
        if pool_key in labels and cards:
            own = {key: labels[key] for key in selected if key in labels}
            tainted = map(Taint.of, listed(each, "spec", "taints"))
            taints = frozenset(taint for taint in tainted if not is_temporary(taint.key, ignored))
            kind = _Kind(pool_key, labels[pool_key], name_of(each), own, taints, capacity, has_labels=True)
            found.setdefault((*own.items(), taints, *cards.items()), kind)
    return list(found.values())


def _card_labels(policy: Policy) -> Iterator[str]:
    return (label for each in policy.spec.accelerators for fact in FACTS for label in each.labels_of(fact))


def _cards(amounts: Mapping[str, str], policy: Policy) -> dict[str, int]:
    """Return the amounts of accelerators above 0, by resource."""
    found = {}
    for name, amount in sorted(amounts.items()):
        with suppress(ValueError):
            if accelerator_of(name, policy.spec.accelerators) is not None and value(amount):
                found[name] = value(amount)
    return found


def _describes(template: NodeTemplate, kind: _Kind, policy: Policy) -> bool:
    """Return whether a template has the accelerators, the taints, the pool and the products of a kind of nodes."""

    def facts(labels: Mapping[str, str]) -> list[str | None]:
        return [labels.get(policy.node_usage_key), *(each.product_of(labels) for each in policy.spec.accelerators)]

    of_both = zip(facts(template.labels), facts(kind.labels), strict=True)
    taints = {Taint(each.key, each.value, each.effect) for each in template.taints}
    return (
        all(own == wanted or (wanted is None and not kind.has_labels) for own, wanted in of_both)
        and template.labels.get(kind.pool_key, kind.pool) == kind.pool
        and taints == kind.taints
        and _cards(template.capacity, policy) == _cards(kind.capacity, policy)
    )


def _has_accelerators(pool: JsonObject, policy: Policy) -> bool:
    """Return whether limits, labels or requirements of the NodePool are about accelerators or their node pools."""
    labels = texts(pool, "spec", "template", "metadata", "labels")
    required = (str(each.get("key")) for each in listed(pool, "spec", "template", "spec", "requirements"))
    keys = {policy.node_usage_key, *_card_labels(policy)}
    return bool(_cards(texts(pool, "spec", "limits"), policy)) or not keys.isdisjoint((*labels, *required))


def _entry(kind: _Kind) -> str:
    """Return the remedy with the entry for a kind of nodes, as YAML in one line."""
    name = "-".join(filter(None, (kind.pool, kind.labels.get(INSTANCE_TYPE_LABEL)))).lower().replace("_", "-")
    entry: dict[str, Any] = {"name": name, "labels": dict(kind.labels)}
    if kind.taints:
        entry["taints"] = [each._asdict() for each in sorted(kind.taints)]
    entry["capacity"] = {name: amount for name, amount in kind.capacity.items() if _is_some(amount)}
    text: str = yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=sys.maxsize)
    return f"add - {text.strip()}"


def _is_some(amount: str) -> bool:
    try:
        return bool(value(amount))
    except ValueError:
        return False
