"""Evaluate the pods of a file: the replicas of each template one after the other, beside pending pods."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

from webhook.backends.registry import starts_whole
from webhook.cli.admission import admit_document, in_annotations_of, print_verdict
from webhook.cli.check_text import Section
from webhook.cli.mutate_hint import MutateHint
from webhook.cli.pending import NOTHING_RESERVED, Pending, PendingQueue, Reserved
from webhook.cli.profiles import PolicySchedulers, Schedulers
from webhook.cli.workloads import Workload, print_policy, with_claims_of
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.documents import Document, JsonObject
from webhook.kube.field import InvalidInput
from webhook.kube.qos import qos_class
from webhook.kube.shape import check_pod
from webhook.kube.wellknown import DEFAULT_NAMESPACE
from webhook.objects.gangs import (
    fit_of_object,
    gang_of_object,
    gang_of_pod,
    object_starts_whole,
    partial_start_of_object,
)
from webhook.objects.own_pods import without_own_pods, without_own_waiting
from webhook.pipeline import ClusterView
from webhook.placement.diagnosis import NodeToStatus
from webhook.placement.framework.result import Placement, to_check_json
from webhook.placement.gang import GangRequest, partial_start
from webhook.placement.replicas import MOST_REPLICAS, Replicas
from webhook.verdict import Bypassed, Denied

_MOST_NODES = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """The result for the pods of one template: of the first pod that does not fit, or of the first one.

    `refusal` is the message of a denied pod. `replicas` is None for a pod that was not evaluated. `reasons` are those
    of each node that cannot take the pod. `without_pods` are the nodes that could take a waiting pod if no pod was
    running, `without_pending` those that could take it without the pending pods before it, which are `reserved`.
    `replaced` is the number of running pods of the object, which count as gone. `gang` are the pods that must run
    together. `first` is the first pod as it was placed.
    """

    workload: Workload
    placement: Placement
    replicas: Replicas | None = None
    reasons: NodeToStatus = field(default_factory=dict)
    without_pods: tuple[str, ...] = ()
    without_pending: tuple[str, ...] = ()
    reserved: Reserved = NOTHING_RESERVED
    refusal: str = ""
    replaced: int = 0
    gang: GangRequest | None = None
    first: JsonObject | None = None

    @property
    def verdict(self) -> str:
        """Return the verdict, or Refused."""
        return "Refused" if self.refusal else self.placement.verdict

    @property
    def replicas_text(self) -> str:
        """Return the object, and how many of its pods fit on which nodes; empty for a Pod."""
        title, pods, found = self.workload.title, self.workload.pods, self.replicas
        if not title or found is None:
            return title
        if pods and pods.replicas is None:
            return f"{title}: a pod on each node"
        nodes = sorted(found.nodes.items(), key=lambda item: (-item[1], item[0]))
        shown = [f"{count} on {node}" for node, count in nodes[:_MOST_NODES]]
        shown += [f"{len(nodes) - _MOST_NODES} more nodes"] if len(nodes) > _MOST_NODES else []
        remarks = [f"no pods are created while {pods.suspended} is set"] if pods and pods.suspended else []
        if self.replaced:
            noun = "pod of the object counts" if self.replaced == 1 else "pods of the object count"
            remarks.append(f"the {self.replaced} running {noun} as gone")
        return "; ".join([f"{title}: {found.text}" + (f" ({', '.join(shown)})" if shown else ""), *remarks])

    @property
    def section(self) -> Section:
        """Return what the text has of the pods."""
        return Section(
            self.workload.name,
            self.placement,
            self.reasons,
            self.replicas_text,
            self.without_pods,
            self.without_pending,
            self.reserved.text,
            self._gang_lines(),
            self._qos_class,
            self.workload.chosen_policy,
        )

    @property
    def _qos_class(self) -> str | None:
        return None if self.first is None else qos_class(self.first)

    def _gang_lines(self) -> list[str]:
        """Return the count of the pods that must run together, if the message does not have it, and its consequence."""
        gang, fit = self.gang, self.placement.gang
        if gang is None or fit is None:
            return []
        is_object = bool(self.workload.owner)
        partial = partial_start_of_object(gang, fit) if is_object else "".join(partial_start(gang, self.placement))
        count = [] if fit.next_message else [f"{fit.text[:1].upper()}{fit.text[1:]}"]
        return [*count, partial] if partial else count

    def to_json(self) -> dict[str, Any]:
        """Return the line of the pods in `check -o json`; for an object with its name and the count of replicas."""
        line = to_check_json(self.workload.name, self.placement)
        line |= {"verdict": self.verdict, "qosClass": self._qos_class, **self.workload.policy_json}
        if self.reserved:
            line |= {"reserved": self.reserved.to_json()}
        if not self.workload.owner:
            return line
        pods, found = self.workload.pods, self.replicas
        return line | {
            "object": self.workload.owner,
            "role": pods.role if pods else "",
            "replicas": pods.replicas if pods else None,
            "fits": found.placed if found and pods and pods.replicas is not None else None,
            "isComplete": found is not None and found.is_complete,
            "suspended": pods is not None and bool(pods.suspended),
            "replaced": self.replaced,
            "replicasByNode": dict(found.nodes) if found else {},
        }


@dataclass(frozen=True, slots=True)
class _Start:
    """The cluster that the pods of an object find; `replaced` of its running pods count as gone."""

    assumed: Pending
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class Checks:
    """Evaluates pods as written, with a hint where `--mutate` changes them, or as the webhook admits them."""

    snapshot: Snapshot
    schedulers: PolicySchedulers
    with_policy: bool
    pending: PendingQueue

    def answers(self, workloads: Iterable[Workload]) -> list[Answer]:
        """Return the answers for `workloads`; templates of one object are placed one after the other.

        Raises:
            InvalidInput: a pod is malformed; the errors name file, document and field.
        """
        hint = MutateHint(self.schedulers)
        found: list[Answer] = []
        source: Document | None = None
        start = _Start(self.pending.assumed)
        for workload in workloads:
            if workload.source is not source:
                source, start = workload.source, self._start(workload)
            answer, assumed = self._answer(workload, start.assumed, hint)
            found.append(replace(answer, replaced=start.replaced))
            start = replace(start, assumed=assumed)
        hint.print_rest()
        groups = groupby(found, key=lambda answer: id(answer.workload.source))
        return [answer for _, of_object in groups for answer in self._in_gangs([*of_object])]

    def _in_gangs(self, answers: list[Answer]) -> list[Answer]:
        """Return the answers for the templates of one object, with the count of its pods that must run together."""
        counted = [(each, each.replicas, each.first) for each in answers if each.replicas and each.first]
        kind = next((each.workload.pods.kind for each, *_ in counted if each.workload.pods), None)
        if kind is None:
            return answers
        workload = counted[0][0].workload
        content, policy, schedulers = workload.source.content, workload.policy, self._schedulers(workload)
        requests = [gang_of_pod(first, policy) for *_, first in counted]
        found = [replicas for _, replicas, _ in counted]
        scheduler, pods = schedulers.name_for(counted[0][2]), sum(each.asked for each in found)
        wholes = [starts_whole(first, policy.spec, schedulers.name_for(first)) for *_, first in counted]
        is_whole = object_starts_whole(content, kind, wholes, scheduler, policy)
        gang = gang_of_object(content, kind, requests, pods, scheduler, is_whole)
        if gang is None:
            return answers
        fit = fit_of_object(gang, found)
        return [replace(each, gang=gang, placement=replace(each.placement, gang=fit)) for each in answers]

    def _start(self, workload: Workload) -> _Start:
        """Return the cluster without the pods of the object, which its new ones replace."""
        pods, assumed = workload.pods, self.pending.assumed
        if pods is None or pods.kind is None:
            return _Start(assumed)
        namespace, content = pods.names.namespace or DEFAULT_NAMESPACE, workload.source.content
        own = without_own_pods(self.snapshot, namespace, content, pods.kind, never)
        return _Start(without_own_waiting(assumed, namespace, content, pods.kind).on(own.snapshot), own.replaced)

    def _answer(self, workload: Workload, assumed: Pending, hint: MutateHint) -> tuple[Answer, Pending]:
        """Return the answer, and the assumed on the cluster with the replicas that were placed."""
        if workload.pods is None:
            return Answer(workload, Placement.unknown(workload.note)), assumed
        document = workload.document
        with_claims = assumed.on(with_claims_of(workload, assumed.base, MOST_REPLICAS))
        if self.with_policy:
            verdict = admit_document(document, workload.policy, ClusterView(with_claims.base, scorer=None))
            print_verdict(document, verdict, workload.located)
            if isinstance(verdict, Denied):
                print_policy(workload)
                message = workload.located(verdict.denial.message)
                return Answer(workload, Placement.unknown(message), refusal=message), assumed
        if workload.note:
            return Answer(workload, Placement.unknown(workload.note)), assumed
        return self._placed(workload, with_claims, hint)

    def _placed(self, workload: Workload, assumed: Pending, hint: MutateHint) -> tuple[Answer, Pending]:
        assert workload.pods is not None  # noqa: S101
        document, policy, schedulers = workload.document, workload.policy, self._schedulers(workload)
        asked = 1 if workload.pods.replicas is None else workload.pods.replicas
        try:
            check_pod(document.content)
            first = next(self._pods(workload))
            assumed = self.pending.before(first, assumed)
            among = schedulers.place_replicas(self._pods(workload), asked, assumed)
        except InvalidInput as error:
            raise InvalidInput(each.prefixed(document.place) for each in error.errors) from error
        replicas = among.found
        placement = replicas.placement
        then = replicas.snapshot if replicas.stopped else among.before
        if self.with_policy:
            place = partial(schedulers.answer, pod=first, snapshot=then)
            placement = in_annotations_of(document, policy, placement, then, place)
        else:
            hinted = hint.suggested_first(document, policy, replicas.first, among.before)
            placement = hinted if placement is replicas.first else placement
        gang = gang_of_pod(first, policy) if workload.pods.kind is None else None
        if gang is not None:
            placement = schedulers.in_gang(gang, first, placement, assumed, policy)
        answer = Answer(
            workload,
            placement,
            replicas,
            schedulers.explain(first, then),
            reserved=self.pending.reserved_before(first, assumed),
            gang=gang,
            first=first,
        )
        if placement.waiting_before:
            return replace(answer, without_pending=schedulers.fitting_nodes(first, among.assumed.base)), (among.assumed)
        is_waiting = placement.verdict == "Waiting"
        without_pods = schedulers.nodes_without_pods(first, then) if is_waiting else ()
        return replace(answer, without_pods=without_pods), among.assumed

    def _schedulers(self, workload: Workload) -> Schedulers:
        return self.schedulers.of(workload.policy)

    def _pods(self, workload: Workload) -> Iterator[JsonObject]:
        """Yield the pods of a template as they are written, or as the webhook admits them; at least one."""
        assert workload.pods is not None  # noqa: S101
        pod_read, admitted = None, workload.document.content
        for index in range(max(1, workload.pods.replicas or 1)):
            pod = workload.pods.pod_at(index)
            if not self.with_policy:
                yield pod
                continue
            if pod != pod_read:
                document = replace(workload.document, content=pod)
                verdict = admit_document(document, workload.policy, ClusterView(self.snapshot, scorer=None))
                pod_read, admitted = pod, pod if isinstance(verdict, Bypassed | Denied) else verdict.pod
            yield admitted
