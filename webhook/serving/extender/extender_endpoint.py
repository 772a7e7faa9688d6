"""The scheduler extender. It never blocks: without a current view or time, every node passes with priority 0."""

from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import NamedTuple

import numpy as np
import structlog

from webhook.admission.cluster_view import ClusterView
from webhook.cluster.node_info import RunningPod
from webhook.cluster.pods.pending_pods import PodKey
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.documents.field import InvalidInput
from webhook.kube.api.extender import ExtenderArgs, filter_result, host_priority_list, parse_args
from webhook.kube.deadline import DeadlineNearError, Expired
from webhook.placement.profiles.profile import Profile
from webhook.placement.ranking.candidates import permanent_rejections, priorities
from webhook.placement.scorer import PodSignature
from webhook.runtime.byte_cache import value_count
from webhook.runtime.metrics import Metrics
from webhook.serving.connection import Arrival
from webhook.serving.decisions.admissions import MAX_VALUES, Answer
from webhook.serving.extender.extender_pods import ExtenderPods, RecentlyBound
from webhook.serving.scheduling.work import Work
from webhook.serving.work_budget import TimeSliceEndedError

_VERBS = {"/extender/filter": "filter", "/extender/prioritize": "prioritize"}
EXTENDER_PATHS = tuple(_VERBS)
# kube-scheduler waits as long by default.
# Source: k8s.io/kubernetes/pkg/scheduler/extender.go, DefaultExtenderTimeout
TIMEOUT_SECONDS = 5.0

# All calls share one place in the fair queue of the worker thread.
_FLOWS = (b"extender",)
# The pods of each take memory. One kube-scheduler leads at a time; more callers than that are others.
_MOST_CALLERS = 4


class Judged(NamedTuple):
    """The response to a call, and its kind: `scored`, `neutral`, or `failed` if it is neutral after an error."""

    body: bytes
    result: str


class Extender:
    """Filters and scores the nodes that kube-scheduler sends, with the results of `profile` and `cluster`.

    `profile` returns the profile, and `cluster` the view. `bound` are the pods that a live view has reported as bound.
    `judge` runs in the worker thread, everything else in the event loop.
    """

    def __init__(
        self,
        profile: Callable[[], Profile],
        cluster: Callable[[], ClusterView],
        metrics: Metrics,
        monotonic_seconds: Callable[[], float],
        bound: RecentlyBound | None = None,
    ) -> None:
        self._cluster = cluster
        self._profile = profile
        self._monotonic_seconds = monotonic_seconds
        # By caller: a client without a certificate places pods for its own calls only.
        self._assumed: dict[str, ExtenderPods] = {}
        self._bound = bound
        self._requests = metrics.extender_requests
        self._seconds = metrics.extender_seconds
        self._refused = metrics.refused_requests
        self._log = structlog.get_logger()

    def work(self, path: str, body: bytes, arrival: Arrival) -> Work:
        """Return the work for a call of `path`."""
        connection = arrival.connection
        verb, caller = _VERBS[path], "" if connection.client else connection.address
        return Work(
            _FLOWS,
            lambda work_budget: partial(self.judge, verb, body, caller, self._profile(), self._cluster(), work_budget),
            lambda judged: self._finish(verb, judged, arrival.arrived_seconds),
        )

    def judge(
        self, verb: str, body: bytes, caller: str, profile: Profile, cluster: ClusterView, expired: Expired
    ) -> Judged | Answer:
        """Return the response to a call. `caller` is the address of a client without a verified certificate.

        Raises:
            TimeSliceEndedError: the client has disconnected.
        """
        if len(body) > MAX_VALUES and value_count(body) > MAX_VALUES:
            return Answer(413, f"the call has more than {MAX_VALUES} JSON values\n".encode())
        try:
            args = parse_args(body)
            return self._judge_args(verb, args, caller, profile, cluster, expired)
        except InvalidInput as error:
            return Answer(400, f"{error}\n".encode("utf-8", "replace"))

    def _judge_args(
        self, verb: str, args: ExtenderArgs, caller: str, profile: Profile, cluster: ClusterView, expired: Expired
    ) -> Judged:
        if cluster.stale_reason or not cluster.snapshot.nodes:
            return Judged(_neutral(verb, args), "neutral")
        judged = _filtered if verb == "filter" else _prioritized
        try:
            pod = PodSignature.of(args.pod, expired)
            call = _Call(args, pod, self._assumed_by(caller), profile, cluster.snapshot, expired)
            return Judged(judged(call), "scored")
        except DeadlineNearError:
            return Judged(_neutral(verb, args), "neutral")
        except (InvalidInput, TimeSliceEndedError):
            raise
        except Exception:
            self._log.exception("scheduler extender failed", verb=verb, namespace=args.namespace, pod=args.pod_name)
            return Judged(_neutral(verb, args), "failed")

    def _assumed_by(self, caller: str) -> ExtenderPods:
        """Return the assumed pods of `caller`, and mark them as most recently used."""
        found = self._assumed.pop(caller, None)
        while len(self._assumed) >= _MOST_CALLERS:
            del self._assumed[next(iter(self._assumed))]
        self._assumed[caller] = pods = ExtenderPods(self._monotonic_seconds) if found is None else found
        bound = tuple(self._bound.taken()) if self._bound else ()
        for each in self._assumed.values() if bound else ():
            each.note_bound(bound)
        return pods

    def _finish(self, verb: str, judged: Judged | Answer, arrived_seconds: float) -> Answer:
        if isinstance(judged, Answer):
            self._refused.labels(str(judged.status)).inc()
            return judged
        self._requests.labels(verb, judged.result).inc()
        self._seconds.observe(self._monotonic_seconds() - arrived_seconds)
        return Answer(200, judged.body)


class _Call(NamedTuple):
    """A call: the pod to schedule, the assumed pods of the caller, and the inputs to evaluate nodes."""

    args: ExtenderArgs
    pod: PodSignature
    assumed: ExtenderPods
    profile: Profile
    view: Snapshot
    expired: Expired

    def assume(self, node: str) -> None:
        """Assume the pod on `node`, because kube-scheduler picks the node with the highest priority."""
        if node in self.view.rows:
            raw = self.args.pod
            pod = RunningPod.of({**raw, "spec": {**(raw.get("spec") or {}), "nodeName": node}})
            self.assumed.assume(pod.assumed_on(node, 0), self.pod.size_bytes, self.view)


def _filtered(call: _Call) -> bytes:
    args, view = call.args, call.view
    candidates = np.unique(_known(_rows(args, view)))
    found = permanent_rejections(call.profile, call.pod, view, candidates, call.expired)
    rejected = {view.nodes[row].node.name: reason for row, reason in found.items()}
    passing = set(args.node_names) - rejected.keys()
    if len(passing) == 1:
        # kube-scheduler does not ask for the priority of a single node.
        call.assume(passing.pop())
    return filter_result(args, rejected)


def _prioritized(call: _Call) -> bytes:
    args, view = call.args, call.view
    rows = _rows(args, view)
    candidates = np.unique(_known(rows))
    # The last one is that of nodes which the view does not have.
    by_row = np.zeros(len(view.nodes) + 1, dtype=np.int64)
    if len(candidates):
        snapshot = call.assumed.on(view, PodKey(args.namespace, args.pod_name))
        by_row[candidates] = priorities(call.profile, call.pod, snapshot, candidates, call.expired)
        call.assume(view.nodes[int(by_row.argmax())].node.name)
    return host_priority_list(args.node_names, by_row[rows].tolist())


def _rows(args: ExtenderArgs, view: Snapshot) -> Rows:
    """Return the row of each candidate node in `view`, or -1 for a node that is not in the view."""
    rows = map(view.rows.get, args.node_names, repeat(-1))
    return np.fromiter(rows, dtype=np.intp, count=len(args.node_names))


def _known(rows: Rows) -> Rows:
    return rows[rows >= 0]


def _neutral(verb: str, args: ExtenderArgs) -> bytes:
    if verb == "filter":
        return filter_result(args, {})
    return host_priority_list(args.node_names, repeat(0))
