"""The nodes have pools, products, labels and taints as the policies and their workload types need them."""

from collections.abc import Iterator, Sequence

from placement_doctor.check import Finding, check, info, named, warning
from placement_doctor.cluster import Cluster, name_of
from placement_doctor.commands import on_nodes, respelt
from placement_doctor.nodes import (
    Spelling,
    grouped,
    named_products,
    nodes_of,
    offered_cards,
    pools_by_key,
    pools_of,
    product_keys,
    product_labels,
    shown,
    tainted,
)
from placement_doctor.sample_pods import judge, sample_pod, types_of
from placement_doctor.source import Source
from webhook.cluster.node_info import Node, NodeInfo
from webhook.cluster.snapshot import Snapshot
from webhook.kube.pod.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from webhook.placement.profiles.node_templates import template_nodes
from webhook.placement.scheduler import Scheduler
from webhook.policy.policy import Policy


@check(
    "`kubectl label node NODE KEY-DOMAIN/node.usage=POOL`, or remove the pool from `nodeUsage.allow`",
    needs={Source.NODES, Source.POLICY},
)
def pools(cluster: Cluster) -> Iterator[Finding]:
    """No node has a usage that the policy allows to a workload type.

    Another pool without nodes is an INFO. A pool of a node template is not empty, because an autoscaler can add nodes.
    """
    nodes, noted = nodes_of(cluster), set[tuple[str, str]]()
    for policy in cluster.policies if cluster.knows(Source.NODES) else ():
        key, place = policy.node_usage_key, f"{cluster.place_of(policy)}: spec.workloadTypes"
        labels = [*(each.labels for each in nodes), *(each.labels for each in policy.spec.node_templates)]
        held = {each[key] for each in labels if key in each}
        empty_types = set()
        for name, each in policy.spec.workload_types.items():
            if held.isdisjoint(each.node_usage.allow):
                empty_types.add(name)
                what = f"no node has one of {', '.join(each.node_usage.allow)}: every pod of {name} stays Pending"
                label = f"{key}={each.node_usage.allow[0]}"
                remedy = f"`kubectl label node NODE {label}` and `kubectl taint node NODE {label}:NoSchedule`"
                yield warning(f"{place}.{name}.nodeUsage.allow", what, remedy)
        for pool, types in pools_of(policy).items():
            if pool not in held and not empty_types.issuperset(types) and (key, pool) not in noted:
                noted.add((key, pool))
                remedy = f"remove the pool, or `kubectl label node NODE {key}={pool}`"
                yield info(f"{place}.{types[0]}.nodeUsage.allow", f"no node has {key}={pool}", remedy)


@check(
    "the finding has the message of kube-scheduler; `placement-webhook check` explains it for a pod",
    needs={Source.NODES, Source.NAMESPACES, Source.POLICY},
)
def workload_types(cluster: Cluster) -> Iterator[Finding]:
    """No node could run the smallest pod of a workload type with one card, or no namespace may use the type."""
    if not (cluster.knows(Source.NODES) and cluster.knows(Source.NAMESPACES)):
        return
    nodes = nodes_of(cluster)
    snapshot = Snapshot.of(map(NodeInfo.of, nodes))
    explained = "`placement-webhook check -f POD` explains each node"
    names = [name_of(each) for each in cluster.of(Source.NAMESPACES)]
    for policy in cluster.policies:
        # Its pods are only in these namespaces.
        namespaces = [name for name in names if cluster.policy_of(name) is policy]
        usages = {each.labels.get(policy.node_usage_key) for each in nodes}
        for name, each in policy.spec.workload_types.items() if namespaces else ():
            where = f"{cluster.place_of(policy)}: spec.workloadTypes.{name}"
            namespace = next((own for own in namespaces if name in types_of(policy, own)), None)
            if namespace is None:
                what = f"no namespace of the cluster matches {', '.join(each.allowed_namespaces)}"
                yield warning(f"{where}.allowedNamespaces", what, "correct the patterns, or create the namespace")
            elif not usages.isdisjoint(each.node_usage.allow) and (
                reason := _why_not(policy, name, namespace, offered_cards(policy, nodes), snapshot)
            ):
                what = f"no node could run its smallest pod, even if all were empty: {reason}"
                yield warning(where, what, f"{explained}; correct labels, taints or policy")


def _why_not(policy: Policy, workload_type: str, namespace: str, cards: Sequence[str], snapshot: Snapshot) -> str:
    """Return the scheduler's message if the pod fits with none of `cards`, or "".

    Without `cards`, pods have no card.
    """
    templates, temporary = template_nodes(policy.spec.node_templates), policy.spec.temporary_taints
    scheduler, reason = Scheduler(templates=templates, temporary_taints=temporary), ""
    for resource in cards or (None,):
        judged = judge(sample_pod(policy, workload_type, resource), namespace, policy)
        if judged.signature is None:
            reason = reason or judged.reason
            continue
        placement = scheduler.answer(judged.signature, snapshot)
        if placement.verdict != "Infeasible" or placement.deny_exemption:
            return ""
        reason = reason or placement.message
    return reason


@check(
    "`kubectl taint node NODE KEY=VALUE:NoSchedule`, `kubectl label node NODE KEY=VALUE`",
    needs={Source.NODES, Source.POLICY},
)
def node_usage(cluster: Cluster) -> Iterator[Finding]:
    """A node has the usage label without the taint, the taint without the label, or different values or effects.

    The remedy for a mistyped value is to correct it.
    """
    nodes = nodes_of(cluster)
    for key, known in pools_by_key(cluster.policies).items():
        yield from _of_usage(key, known, nodes)
        yield from _of_effects(cluster, key, key, nodes)


def _of_usage(key: str, known: set[str], nodes: tuple[Node, ...]) -> Iterator[Finding]:
    spelling = Spelling(key, nodes, known)
    labelled = [each for each in nodes if key in each.labels]
    bare = [each for each in labelled if all(taint.key != key for taint in each.taints)]
    untainted = grouped(bare, lambda node: [node.labels[key]])
    for value, those in untainted.items():
        what = f"label {key}={value} without the taint: pods without a workload type run there, too"
        remedy = _completed(those, "taint", key, value, spelling)
        yield warning(f"{shown(those)}: spec.taints", what, remedy)
    unlabelled = grouped([each for each in nodes if key not in each.labels], lambda node: tainted(node, key))
    for value, those in unlabelled.items():
        what = f"taint {key}={value} without the label: no workload type selects the node, so it stays empty"
        remedy = _completed(those, "label", key, value, spelling)
        yield warning(f"{shown(those)}: metadata.labels", what, remedy)
    different = grouped(
        labelled, lambda node: [(node.labels[key], value) for value in tainted(node, key) if value != node.labels[key]]
    )
    for (label, value), those in different.items():
        what = f"label {key}={label}, but taint {key}={value}: a type needs both pools to run there"
        command = f"{on_nodes(those, 'label', f'{key}={value}', '--overwrite')}, or change the taint"
        for wrong in (label, value):
            if (meant := spelling.right(wrong)) is not None:
                command = respelt(those, key, wrong, meant)
        yield warning(f"{shown(those)}: spec.taints", what, command)
    for value, those in grouped(labelled, lambda node: [node.labels[key]]).items():
        if value not in known and spelling.right(value) is None:
            what = f"{value}: no workload type of the policy allows this pool"
            remedy = "add it to nodeUsage.allow of a type, if one is to"
            yield info(f"{shown(those)}: metadata.labels[{key}]", what, remedy)


def _completed(nodes: list[Node], verb: str, key: str, value: str, spelling: Spelling) -> str:
    """Return the command that adds the missing taint or label (`verb`), after those that correct a mistyped value."""
    right = spelling.right(value) or value
    added = on_nodes(nodes, verb, f"{key}={right}:NoSchedule" if verb == "taint" else f"{key}={right}")
    return added if right == value else f"{respelt(nodes, key, value, right)} and {added}"


def _of_effects(cluster: Cluster, key: str, label_key: str, nodes: tuple[Node, ...]) -> Iterator[Finding]:
    """Yield a finding for the taints of `key` whose effect differs from that of the injected tolerations."""

    def others(node: Node) -> Iterator[tuple[str, str]]:
        plain = {each.value for each in node.taints if (each.key, each.effect) == (key, NO_SCHEDULE)}
        for each in node.taints:
            # Another value than that of the label is a finding of its own.
            is_other = each.key != key or each.value != node.labels.get(label_key, each.value)
            has_effect = each.effect == NO_EXECUTE or (each.effect == PREFER_NO_SCHEDULE and not plain)
            if not is_other and has_effect and not _is_tolerated(cluster, each):
                yield each.value, each.effect

    for (value, effect), those in grouped(nodes, others).items():
        follows = "pods that name nothing of it run there, too"
        if effect == NO_EXECUTE:
            follows = "no injected toleration has this effect, so no workload type runs there"
        changed = on_nodes(those, "taint", f"{key}:{effect}-", f"{key}={value}:{NO_SCHEDULE}", "--overwrite")
        yield warning(f"{shown(those)}: spec.taints", f"taint {key}={value}:{effect}: {follows}", changed)


def _is_tolerated(cluster: Cluster, taint: Taint) -> bool:
    """Return whether the policy lists a toleration for `taint` in a workload type."""
    types = (each for policy in cluster.policies for each in policy.spec.workload_types.values())
    extra = (each for some in types for each in some.extra_tolerations)
    return any(
        each.key == taint.key
        and each.effect in (None, taint.effect)
        and (each.operator == "Exists" or each.value == taint.value)
        for each in extra
    )


@check(
    "make the taint equal to the label, which vendor discovery writes; allow the pool of the nodes in the policy",
    needs={Source.NODES, Source.POLICY},
)
def node_products(cluster: Cluster) -> Iterator[Finding]:
    """A node has a product taint without the label, or another value or effect, or a product is in no pool of any type.

    Vendor discovery writes the label, and people write the taint. So an existing label is right, unless it looks like a
    mistyped form of the label of more nodes.
    """
    nodes = nodes_of(cluster)
    for taint, labels in product_keys(cluster.policies):
        # The last label is the one that people write by hand.
        label = next((each for each in labels if any(each in node.labels for node in nodes)), labels[-1])
        yield from _of_product_taints(taint, label, nodes, Spelling(label, nodes, named_products(cluster.policies)))
        yield from _of_effects(cluster, taint, label, nodes)
        yield from _out_of_reach(cluster, label, nodes)


def _of_product_taints(key: str, label_key: str, nodes: tuple[Node, ...], spelling: Spelling) -> Iterator[Finding]:
    def differing(node: Node) -> Iterator[tuple[str, str | None, tuple[str, ...]]]:
        label = node.labels.get(label_key)
        return ((value, label, effects) for value, effects in tainted(node, key).items() if value != label)

    for (value, label, effects), those in grouped(nodes, differing).items():
        if label is None:
            what = f"taint {key}={value} without the label: no pod that names the product selects the node"
            remedy = _completed(those, "label", label_key, value, spelling)
            yield warning(f"{shown(those)}: metadata.labels", what, remedy)
        elif (right_label := spelling.right(label)) is not None:
            what = f"label {label_key}={label}, but taint {key}={value}, and more nodes have {right_label}"
            yield warning(f"{shown(those)}: metadata.labels", what, respelt(those, label_key, label, right_label))
        else:
            what = f"label {label_key}={label}, but taint {key}={value}: a pod must name both products to run there"
            removed = [f"{key}:{effect}-" for effect in effects if effect != NO_SCHEDULE]
            command = on_nodes(those, "taint", *removed, f"{key}={label}:{NO_SCHEDULE}", "--overwrite")
            yield warning(f"{shown(those)}: spec.taints", what, f"{command}: vendor discovery writes the label")


def _out_of_reach(cluster: Cluster, key: str, nodes: tuple[Node, ...]) -> Iterator[Finding]:
    """Yield a finding for each product that no node in the pool of a workload type has."""
    owners = [policy for policy in cluster.policies if key in product_labels([policy])]
    pools = {(policy.node_usage_key, pool) for policy in owners for pool in pools_of(policy)}
    usages = sorted({usage for usage, _ in pools})
    by_product = grouped(nodes, lambda node: [node.labels[key]] if key in node.labels else [])
    for product, those in sorted(by_product.items()):
        if all(pools.isdisjoint(node.labels.items()) for node in those):
            what = f"{product}: no workload type reaches this product, as none of its nodes is in a pool of the policy"
            yield warning(f"{shown(those)}: metadata.labels[{key}]", what, _within_reach(those, usages))


def _within_reach(nodes: list[Node], usages: list[str]) -> str:
    """Return the remedy that makes the nodes available to a workload type. Nodes in a separate pool can be intended."""
    own = {key: sorted({node.labels[key] for node in nodes if key in node.labels}) for key in usages}
    key = next((each for each in usages if own[each]), usages[0])
    labelled = on_nodes(nodes, "label", f"{key}=POOL", "--overwrite")
    moved = f"{labelled} and {on_nodes(nodes, 'taint', f'{key}=POOL:NoSchedule', '--overwrite')}"
    if not own[key]:
        return moved
    return f"add {named(own[key])} to nodeUsage.allow of a workload type, or move the nodes: {moved}"
