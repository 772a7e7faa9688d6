"""Cards that are held without a pod: by claims, by quota of Kueue, and by nodes that reject their pods."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from shlex import quote

from placement_reclaim.cluster import Objects, Raw, condition, seconds
from placement_reclaim.held import REJECTING_NODE, UNUSED_CLAIM, UNUSED_QUOTA, Held, Remedy, Since
from webhook.cluster.batch import fields
from webhook.documents.parts import listed

# A kubelet that restarts rejects a few pods.
_LEAST_REJECTED = 3
_RECENT_SECONDS = 3600
_OWNERS = ("metadata", "ownerReferences")
_REJECTED, _OUT_OF = "UnexpectedAdmissionError", "OutOf"
_INACTIVE = """'{"spec":{"active":false}}'"""


def unused_claims(objects: Objects) -> Iterator[Held]:
    """Yield the claims with cards that are not reserved for an existing pod, nor for a consumer of another kind."""
    living = {fields.text(pod, "metadata", "uid") for pod in objects.pods.values()}
    for (namespace, name), claim in objects.claims.items():
        devices, consumers = [*objects.devices_of(claim)], listed(claim, "status", "reservedFor")
        used_by = ((fields.text(each, "resource"), fields.text(each, "uid")) for each in consumers)
        if not devices or any(resource != "pods" or uid in living for resource, uid in used_by):
            continue
        nodes = tuple(sorted({pool for _, pool in devices if pool in objects.snapshot.rows}))
        changed = max([seconds(each, "time") for each in fields.items(claim, "metadata", "managedFields")], default=0)
        begin = changed or seconds(claim, "metadata", "creationTimestamp")
        since = Since(begin, is_least=changed > 0, is_known=changed > 0)
        gone = fields.text(consumers[0], "name") if consumers else ""
        why = f"reserved for pod {gone}, which has ended or is gone" if gone else "allocated, and reserved for no pod"
        command = f"delete resourceclaim {quote(name)} -n {quote(namespace)}"
        remedy = Remedy("resource claim controller", {command: "no pod is to use it"})
        cards = Counter(driver for driver, _ in devices)
        is_down = any(node.not_ready_seconds is not None for name in nodes if (node := objects.node_of(name)))
        yield Held(UNUSED_CLAIM, cards, nodes, namespace, name, since, why, remedy, is_down=is_down)


def unused_quota(objects: Objects) -> Iterator[Held]:
    """Yield the Workloads of Kueue that have quota for cards, but whose owner has no pods, by reference or name."""
    owners = (each for pod in objects.pods.values() for each in fields.items(pod, *_OWNERS))
    in_use = {fields.text(pod, "metadata", "uid") for pod in objects.pods.values()}
    in_use |= {fields.text(each, "uid") for each in owners}
    names = defaultdict[str, list[str]](list)
    for namespace, name in objects.pods:
        names[namespace].append(name)
    for (namespace, name), workload in objects.workloads.items():
        # The pods of MultiKueue are in another cluster.
        is_elsewhere = bool(fields.text(workload, "status", "clusterName"))
        has_ready_or_is_over = any(_is_true(workload, each) for each in ("PodsReady", "Finished", "Evicted"))
        cards = Counter[str]()
        for each in fields.items(workload, "status", "admission", "podSetAssignments"):
            cards.update(objects.cards_in(fields.amounts(each, "resourceUsage")))
        if not cards or not _is_true(workload, "Admitted") or has_ready_or_is_over or is_elsewhere:
            continue
        # Some pods, as those of an AppWrapper, have owners of their own.
        references = listed(workload, *_OWNERS)
        roots = tuple(f"{fields.text(each, 'name')}-" for each in references)
        has_named = any(each.startswith(roots) for each in names[namespace])
        if has_named or any(fields.text(each, "uid") in in_use for each in references):
            continue
        ready = condition(workload, "PodsReady")
        is_known = fields.text(ready, "status") == "False"
        begin = seconds(ready if is_known else condition(workload, "Admitted"), "lastTransitionTime")
        owner = " ".join(fields.text(references[0], each) for each in ("kind", "name")) if references else "its owner"
        target = f"workloads.kueue.x-k8s.io {quote(name)} -n {quote(namespace)}"
        command = f"patch {target} --type=merge -p {_INACTIVE}"
        since, remedy = Since(begin, is_known=is_known), Remedy(owner, {command: f"{owner} is to make no pods"})
        yield Held(UNUSED_QUOTA, cards, (), namespace, name, since, "Kueue holds quota, no pod runs or waits", remedy)


def _is_true(content: Raw, kind: str) -> bool:
    return fields.text(condition(content, kind), "status") == "True"


def rejecting_nodes(objects: Objects, now: int) -> Iterator[Held]:
    """Yield the nodes that have rejected several pods with cards in the last hour, and have started none since."""
    rejected = defaultdict[str, list[int]](list)
    reasons: dict[str, str] = {}
    for pod in objects.ended.values():
        node, reason = fields.text(pod, "spec", "nodeName"), fields.text(pod, "status", "reason")
        if reason == _REJECTED or (reason.startswith(_OUT_OF) and objects.is_card(reason.removeprefix(_OUT_OF))):
            rejected[node].append(seconds(pod, "status", "startTime") or seconds(pod, "metadata", "creationTimestamp"))
            reasons[node] = reason
    for node, times in rejected.items():
        row = objects.snapshot.rows.get(node)
        is_over = max(times) < now - _RECENT_SECONDS or len(times) < _LEAST_REJECTED
        if row is None or objects.snapshot.nodes[row].node.not_ready_seconds is not None or is_over:
            continue
        info = objects.snapshot.nodes[row]
        amounts = objects.cards_in(info.node.allocatable)
        free = +Counter({name: amount - info.requested.get(name, 0) for name, amount in amounts.items()})
        started = (pod.started_seconds for pod in info.pods if any(map(objects.is_card, pod.requests)))
        if not free or info.node.unschedulable or any(time >= min(times) for time in started):
            continue
        why = f"{reasons[node]}: rejected {len(times)} pods, started none"
        commands = {f"cordon {quote(node)}": "the device plugin of the node does not come back"}
        remedy = Remedy("device plugin of the node", commands)
        yield Held(REJECTING_NODE, free, (node,), "", node, Since(min(times)), why, remedy)
