"""The JSON about what a pod waits for, and about the pods that kube-scheduler may evict for it."""

from typing import Any

from webhook.cli.predictions.checked_replicas import Answer


def evictions_json(answer: Answer) -> dict[str, Any]:
    """Return `waitsFor`, the lines on the evictions, and the possible `victims` by node, as namespace/name."""
    preemption, victims = answer.placement.preemption, dict[str, list[str]]()
    for each in preemption.victims if preemption else ():
        victims.setdefault(each.node_name, []).append(f"{each.namespace}/{each.name}")
    return {"waitsFor": answer.placement.waits_for, "evictions": list(answer.evictions), "victims": victims}
