"""The page Pending: the waiting pods, the reasons, and the changes that would make room for them."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any

import orjson

from placement_console.evictions import evictions_json
from placement_console.page import Asked, Endpoint, NotFoundError, Query, Sources
from placement_console.pod_facts import PodFact
from placement_planner.capacity.make_room import Room, make_room
from placement_planner.capacity_moves import room_to_json
from webhook.cli.inputs.pending import PendingQueue
from webhook.cli.output.terminal import remarks_taken
from webhook.cli.predictions.checked_replicas import Answer
from webhook.cli.predictions.injected import ENDING, admissions_of, injected
from webhook.cli.predictions.replica_check import Checks
from webhook.cluster.pods.pending_pods import PendingPod, PodKey
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document, field
from webhook.documents.field import InvalidInput
from webhook.kube.deadline import DeadlineNearError, Expired
from webhook.kube.pod.resources import read_pod_resources
from webhook.kube.reader import Reader
from webhook.placement.framework.result import Placement
from webhook.placement.reasons.cluster_warnings import is_absent
from webhook.placement.waiting.pending_placement import predict_after_waiting, read_waiting

# Groups on the page; the names of the pods of a group; the groups that a report explains.
_MOST_GROUPS, _MOST_NAMES, _MOST_REPORTED = 2000, 50, 50
_MOST_READ = 5000
# A prediction can take 0.3 s with 5,000 nodes, and the list is asked for every few seconds.
_MOST_SECONDS = 1.0


def endpoints(sources: Sources) -> Sequence[Endpoint]:
    """Return the endpoints of the page."""
    pending = PendingPods(sources)
    return (
        Endpoint("/api/pending", pending.groups, is_costly=True, reported=lambda: ({},)),
        Endpoint("/api/pending/explain", pending.explained, is_costly=True, reported=pending.first_of_groups),
        Endpoint("/api/pending/room", pending.room, is_costly=True, reported=pending.first_of_groups),
    )


class PendingPods:
    """Answers about pending pods. Predictions on one snapshot are cached. An instance is for the worker thread."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._queue: tuple[Snapshot, PendingQueue] | None = None
        self._waits_for: dict[PodKey, str] = {}

    def groups(self, asked: Asked) -> object:
        """Return the pending pods in the order of the queue. Pods of one owner and template are one group."""
        snapshot, found = asked.snapshot, list[dict[str, Any]]()
        queue, end_seconds = self._placed(snapshot), time.monotonic() + _MOST_SECONDS
        for key, pods in self._grouped(snapshot):
            if len(found) == _MOST_GROUPS:
                break
            with suppress(DeadlineNearError):
                self._predict(pods[0], key[-1], queue, lambda: time.monotonic() > end_seconds)
            found.append(self._group(key, pods, queue))
        return {"pods": len(snapshot.pending), "generation": snapshot.generation, "groups": found}

    def first_of_groups(self) -> Iterable[Query]:
        """Yield the first pod of each group, for a report."""
        groups = self._grouped(self._sources.view.snapshot())
        for _, pods in groups[:_MOST_REPORTED]:
            key = pods[0].key
            yield {"namespace": key.namespace, "name": key.name}

    def explained(self, asked: Asked) -> object:
        """Return the results of `check` and `explain` for a pending pod."""
        snapshot = asked.snapshot
        pod, fact = self._named(asked.query, snapshot)
        session = self._sources.session
        with remarks_taken() as remarks:
            document = Document(pod.key.name, _object(pod, fact))
            workloads = session.workloads_of([document], snapshot)
            policy = workloads[0].policy
            found = injected(document.content, policy, is_known=session.is_known(policy))
            checks = Checks(self._placed(snapshot), admissions_of(found, session.schedulers))
            ending = Answer(workloads[0], Placement.unknown(ENDING))
            answer = ending if fact.is_terminating else checks.answers(workloads)[0]
        line = answer.to_json()
        # The scores of each node are for the page Try.
        return line | {
            "scores": {},
            "injected": found.to_json(),
            **evictions_json(answer),
            "reserved": answer.reserved.text,
            "withoutPending": list(answer.without_pending),
            "withoutPods": list(answer.without_pods),
            "remarks": remarks,
        }

    def room(self, asked: Asked) -> object:
        """Return the fewest moves of running pods that make room for a pending pod, as `capacity --make-room`."""
        with remarks_taken():
            snapshot, disruptions = self._sources.movable()
            pod, fact = self._named(asked.query, snapshot)
            if fact.is_terminating:
                return room_to_json(Room("Unknown", message=ENDING), disruptions.budgets)
            session, content = self._sources.session, _object(pod, fact)
            policy = session.workloads_of([Document(pod.key.name, content)], snapshot)[0].policy
            queue = session.queue(snapshot)
            # All pods with room are bound before another pod is moved.
            others = queue.assumed.without([pod.key]) if pod.key in queue.assumed.by_key else queue.assumed
            schedulers = session.schedulers(policy)
            found = make_room(others.all_shown, disruptions.bound, disruptions.budgets, content, schedulers)
        return room_to_json(found, disruptions.budgets)

    def _placed(self, snapshot: Snapshot) -> PendingQueue:
        if self._queue is None or self._queue[0] is not snapshot:
            with remarks_taken():
                self._queue = snapshot, self._sources.session.queue(snapshot)
            self._waits_for = {}
        return self._queue[1]

    def _predict(self, pod: PendingPod, state: str, queue: PendingQueue, expired: Expired) -> None:
        """Predict a pod without a node, and store what it waits for (`Placement.waits_for`).

        Raises:
            DeadlineNearError: `expired()` returned true.
        """
        has_place = state not in ("unschedulable", "queued") or pod.key in queue.assumed.by_key
        if has_place or pod.key in self._waits_for:
            return
        schedulers, waiting = self._sources.session.schedulers(self._sources.session.rules.default), read_waiting(pod)
        scheduler = schedulers.scheduler_of(pod.object()) if waiting else None
        if waiting is None or scheduler is None:
            return
        signature, (assumed, _) = waiting.signature, queue.before(pod.object(), queue.assumed)
        before = assumed.before_pod(waiting.preemption)
        alone = scheduler.answer_alone(signature, before, expired)
        placement = predict_after_waiting(scheduler, signature, alone, assumed, expired)
        if placement.verdict == "Waiting":
            placement = replace(placement, preemption=scheduler.preemption(signature, before, expired))
        if placement.is_final:
            self._waits_for[pod.key] = placement.waits_for

    def _named(self, query: Query, snapshot: Snapshot) -> tuple[PendingPod, PodFact]:
        key = PodKey(query.get("namespace", ""), query.get("name", ""))
        pod = snapshot.pending.get(key)
        if pod is None:
            raise NotFoundError(f"pod {key.namespace}/{key.name} does not wait any more")
        return pod, self._sources.facts.of(*key)

    def _grouped(self, snapshot: Snapshot) -> list[tuple[tuple[Any, ...], list[PendingPod]]]:
        """Return the pods of each owner and template, in the order of their first pod in the queue."""
        found: dict[tuple[Any, ...], list[PendingPod]] = {}
        settings = self._sources.session.rules.default.spec.schedulers
        is_missing = cache(partial(is_absent, snapshot=snapshot, schedulers=settings))
        for pod in sorted(snapshot.pending.values(), key=lambda each: (-each.priority, each.created)):
            fact = self._sources.facts.of(*pod.key)
            # A Job's pods have equal templates but an index among their annotations or variables.
            own = (fact.owner, pod.priority) if fact.owner else (pod.key.name, pod.priority)
            found.setdefault((pod.key.namespace, *own, _state(pod, fact, is_missing)), []).append(pod)
        return [*found.items()]

    def _group(self, key: tuple[Any, ...], pods: Sequence[PendingPod], queue: PendingQueue) -> dict[str, Any]:
        first = pods[0]
        fact = self._sources.facts.of(*first.key)
        placed = {each.key.name: queue.assumed.by_key.get(each.key) for each in pods[:_MOST_NAMES]}
        return {
            "namespace": first.key.namespace,
            "owner": fact.owner,
            "type": fact.workload_type,
            "count": len(pods),
            "names": [*placed],
            "nodes": {name: each.pod.node_name for name, each in placed.items() if each},
            "priority": first.priority,
            "created": first.created,
            "state": key[-1],
            "waitsFor": self._waits_for.get(first.key, ""),
            "message": fact.message,
            "gates": fact.gates,
            "scheduler": _read(first.content)[1],
            "requests": _read(first.content)[0],
        }


@lru_cache(_MOST_READ)
def _read(content: bytes) -> tuple[Mapping[str, int], str]:
    """Return the requests of a pod and the name of its scheduler; both are empty if the pod cannot be read."""
    pod = orjson.loads(content) if content else {}
    name = field(pod, "spec", "schedulerName")
    try:
        # The details of a pod have its errors.
        requests = read_pod_resources(Reader(pod)).requests if content else {}
    except InvalidInput:
        requests = {}
    return requests, name if isinstance(name, str) else ""


def _state(pod: PendingPod, fact: PodFact, is_missing: Callable[[str], bool]) -> str:
    """Return the state of a waiting pod: gated, terminating, no-scheduler, unschedulable, nominated, or queued.

    `is_missing` returns whether nothing shows that a scheduler runs.
    """
    if fact.is_terminating:
        return "terminating"
    if fact.gates:
        return "gated"
    if is_missing(_read(pod.content)[1]):
        return "no-scheduler"
    if pod.nominated is not None:
        return "nominated"
    return "queued" if pod.is_waiting else "unschedulable"


def _object(pod: PendingPod, fact: PodFact) -> dict[str, Any]:
    """Return the pod as an API object, with the annotations of the key domain if they are known."""
    if not pod.content:
        raise NotFoundError(f"pod {pod.key.namespace}/{pod.key.name} is malformed or too large to be evaluated")
    content = pod.object()
    annotations = {**(content["metadata"].get("annotations") or {}), **dict(fact.annotations)}
    metadata = {**content["metadata"], "annotations": annotations, "creationTimestamp": pod.created or None}
    return {"apiVersion": "v1", "kind": "Pod", **content, "metadata": metadata}
