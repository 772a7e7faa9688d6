"""Parts of the answer for the pods of a template: evictions, missing kinds, and the gang of its object."""

import time
from collections.abc import Sequence
from dataclasses import replace

from webhook.backends.references import GangRequest, Within
from webhook.cli.inputs.workloads import Workload
from webhook.cli.output.terminal import warn
from webhook.cli.predictions.checked_replicas import Answer
from webhook.cluster.snapshot import Snapshot
from webhook.kube.workloads.pod_template_path import WorkloadKind
from webhook.objects.object_gang import VOLCANO_JOB
from webhook.placement.framework.result import GangFit, Placement
from webhook.placement.gang.object_domains import as_together
from webhook.placement.pod.network_limit import network_limit
from webhook.placement.reasons.evictions import eviction_lines
from webhook.placement.reasons.gang_request import network_of_job
from webhook.placement.reasons.preemption_note import preemption_note
from webhook.placement.replicas.emptied_nodes import nodes_without_pods, overdue_lines
from webhook.placement.scheduler import NOT_MODELLED, Scheduler
from webhook.placement.scorer import PodSignature


def with_evictions(
    answer: Answer,
    scheduler: Scheduler,
    signature: PodSignature,
    snapshot: Snapshot,
    backend: str,
) -> Answer:
    """Return the answer with the nodes that would take the pod if no pods were running, and the evictions there."""
    placement, info = answer.placement, signature.info.normalized_for(snapshot)
    without_pods = nodes_without_pods(scheduler, signature, snapshot) if placement.verdict == "Waiting" else ()
    evictions = tuple(eviction_lines(placement.preemption, snapshot, time.time())) if placement.preemption else ()
    note = preemption_note(backend, scheduler.profile, info, snapshot, placement, without_pods)
    overdue = overdue_lines(scheduler, signature, snapshot, backend, time.time()) if without_pods else ()
    return replace(answer, without_pods=without_pods, evictions=evictions, preemption_note=note, overdue=overdue)


def warn_of_ignored_domain(workload: Workload, kind: WorkloadKind, within: Within | None, snapshot: Snapshot) -> None:
    """Print a warning if Volcano ignores the domain that a Volcano Job requests."""
    network = network_of_job(workload.source.content, within) if (kind.group, kind.kind) == VOLCANO_JOB else None
    if network is not None and (why := network_limit(network, snapshot).ignored):
        warn(f"{workload.name}: Volcano ignores the network topology of the pods: {why}")


def with_missing_kinds(placement: Placement, kinds: Sequence[str], remedy: str) -> Placement:
    """Return the placement, whose message names the missing `kinds` with the remedy that adds them."""
    if not kinds:
        return placement
    named = f"{NOT_MODELLED}: {remedy.format(kinds=', '.join(kinds))}."
    return replace(placement, message=placement.message.replace(f"{NOT_MODELLED}.", named))


def in_gang_of_object(answer: Answer, gang: GangRequest, fit: GangFit) -> Answer:
    """Return the answer for a template of `gang`, which is Infeasible if an empty cluster is too small."""
    placement = as_together(answer.placement, gang, fit)
    if placement.verdict in ("Feasible", "Waiting") and fit.most is not None:
        placement = replace(placement, verdict="Infeasible", node=None, scores={})
        answer = replace(answer, without_pods=(), without_pending=())
    if fit.own is not None and answer.replicas is not None:
        # The replicas were placed without the domain.
        answer = replace(answer, replicas=replace(answer.replicas, nodes={}))
    return replace(answer, gang=gang, placement=placement)
