"""Cards that are held without a pod: by claims, by quota of Kueue, and by nodes that reject their pods."""

from collections import Counter
from collections.abc import Iterator
from shlex import quote

from placement_reclaim.cluster import Objects, Raw, condition, seconds
from placement_reclaim.held import REJECTING_NODE, UNUSED_CLAIM, UNUSED_QUOTA, Held, Since, Step
from webhook.cluster.batch import fields
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import field
from webhook.placement.packing.free_cards import accelerator_of

# A kubelet that restarts rejects a few pods.
_LEAST_REJECTED = 3
_RECENT_SECONDS = 3600
_REJECTED = "UnexpectedAdmissionError"
_OUT_OF = "OutOf"
_INACTIVE = """'{"spec":{"active":false}}'"""


def unused_claims(objects: Objects, snapshot: Snapshot) -> Iterator[Held]:
    """Yield the claims with cards that are not reserved for an existing pod, nor for a consumer of another kind."""
    for (namespace, name), claim in objects.claims.items():
        devices = [*objects.devices_of(claim)]
        consumers = field(claim, "status", "reservedFor")
        consumers = consumers if isinstance(consumers, list) else []
        is_used = any(
            fields.text(each, "resource") != "pods" or fields.text(each, "uid") in objects.uids for each in consumers
        )
        if not devices or is_used:
            continue
        cards = Counter(driver for driver, _ in devices)
        nodes = tuple(sorted({pool for _, pool in devices if pool in snapshot.rows}))
        changed = [seconds(each, "time") for each in fields.items(claim, "metadata", "managedFields")]
        since = Since(max(changed), is_least=True) if any(changed) else _unknown(claim)
        gone = fields.text(consumers[0], "name") if consumers else ""
        why = f"reserved for pod {gone}, which does not exist" if gone else "allocated, and reserved for no pod"
        command = Step(f"kubectl delete resourceclaim {quote(name)} -n {quote(namespace)}", "no pod is to use it")
        is_down = any(objects.nodes[node].is_down for node in nodes if node in objects.nodes)
        yield Held(
            UNUSED_CLAIM,
            cards,
            nodes,
            namespace,
            name,
            since,
            why,
            "resource claim controller",
            (command,),
            (),
            is_down,
        )


def unused_quota(objects: Objects) -> Iterator[Held]:
    """Yield the Workloads of Kueue that have quota for cards, but whose owner has no pods, by reference or name."""
    names: dict[str, list[str]] = {}
    owners: set[str] = set()
    for (namespace, name), pod in (*objects.pods.items(), *objects.pending.items()):
        names.setdefault(namespace, []).append(name)
        owners |= {fields.text(each, "uid") for each in fields.items(pod, "metadata", "ownerReferences")}
    for (namespace, name), workload in objects.workloads.items():
        admitted = condition(workload, "Admitted")
        over = any(fields.text(condition(workload, each), "status") == "True" for each in ("Finished", "Evicted"))
        cards = _quota_of(workload, objects)
        if fields.text(admitted, "status") != "True" or over or not cards:
            continue
        # The pods of MultiKueue are in another cluster. Others, as those of an AppWrapper, have owners of their own.
        ready = condition(workload, "PodsReady")
        if fields.text(workload, "status", "clusterName") or fields.text(ready, "status") == "True":
            continue
        references = [*fields.items(workload, "metadata", "ownerReferences")]
        uids = {fields.text(each, "uid") for each in references}
        roots = tuple(f"{fields.text(each, 'name')}-" for each in references)
        if uids & (owners | objects.uids) or any(each.startswith(roots) for each in names.get(namespace, ())):
            continue
        is_known = fields.text(ready, "status") == "False"
        since = Since(seconds(ready if is_known else admitted, "lastTransitionTime"), is_known=is_known)
        owner = " ".join(fields.text(references[0], each) for each in ("kind", "name")) if references else "its owner"
        target = f"workloads.kueue.x-k8s.io {quote(name)} -n {quote(namespace)}"
        command = Step(f"kubectl patch {target} --type=merge -p {_INACTIVE}", f"{owner} is to make no pods")
        yield Held(
            UNUSED_QUOTA, cards, (), namespace, name, since, "Kueue holds quota, no pod exists", owner, (command,)
        )


def _quota_of(workload: Raw, objects: Objects) -> dict[str, int]:
    cards: dict[str, int] = {}
    for each in fields.items(workload, "status", "admission", "podSetAssignments"):
        for resource, amount in fields.amounts(each, "resourceUsage").items():
            if amount and accelerator_of(resource, objects.accelerators):
                cards[resource] = cards.get(resource, 0) + amount
    return cards


def rejecting_nodes(objects: Objects, snapshot: Snapshot, now: int) -> Iterator[Held]:
    """Yield the nodes that have recently rejected several pods with cards, and have started none since.

    kube-scheduler regards the cards of these nodes as free. `now` is in Unix seconds.
    """
    rejected: dict[str, list[int]] = {}
    reasons: dict[str, str] = {}
    for pod in objects.ended.values():
        node, reason = fields.text(pod, "spec", "nodeName"), fields.text(pod, "status", "reason")
        if reason == _REJECTED or (reason.startswith(_OUT_OF) and accelerator_of(reason[5:], objects.accelerators)):
            time = seconds(pod, "status", "startTime") or seconds(pod, "metadata", "creationTimestamp")
            rejected.setdefault(node, []).append(time)
            reasons[node] = reason
    for node, times in rejected.items():
        state, row = objects.nodes.get(node), snapshot.rows.get(node)
        is_over = max(times) < now - _RECENT_SECONDS or len(times) < _LEAST_REJECTED
        if row is None or state is None or state.is_down or is_over:
            continue
        info = snapshot.nodes[row]
        pods = [each for each in info.pods if any(accelerator_of(name, objects.accelerators) for name in each.requests)]
        free = {
            name: left
            for name, amount in info.node.allocatable.items()
            if accelerator_of(name, objects.accelerators) and (left := amount - info.requested.get(name, 0)) > 0
        }
        if not free or info.node.unschedulable or any(pod.started_seconds >= min(times) for pod in pods):
            continue
        why = f"{reasons[node]}: rejected {len(times)} pods, started none"
        command = Step(f"kubectl cordon {quote(node)}", "the device plugin of the node does not come back")
        yield Held(
            REJECTING_NODE, free, (node,), "", node, Since(min(times)), why, "device plugin of the node", (command,)
        )


def _unknown(content: Raw) -> Since:
    return Since(seconds(content, "metadata", "creationTimestamp"), is_known=False)
