"""Evaluate the pods of a file: the replicas of each template one after the other, together with the pending pods."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from webhook.admission.api_server.optional_plugins import alternatives, doubtful
from webhook.backends.backend import Backend
from webhook.backends.references import strictest
from webhook.backends.registry import backend_of, batch_names_of, starts_whole
from webhook.cli.inputs.pending import Pending, PendingQueue
from webhook.cli.inputs.session import Session
from webhook.cli.inputs.workloads import Workload, with_claims_of
from webhook.cli.predictions.admission import Admissions
from webhook.cli.predictions.answer_parts import (
    in_gang_of_object,
    warn_of_ignored_domain,
    with_evictions,
    with_missing_kinds,
)
from webhook.cli.predictions.checked_replicas import Answer
from webhook.cluster.pods.pending_pods import PodKey
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import BETWEEN_ERRORS, InvalidInput, prefixed_errors
from webhook.kube.deadline import never
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.workloads.pod_set import PodSet
from webhook.mutation.workload.gathering import within_of
from webhook.objects.gangs import fit_of_object
from webhook.objects.object_gang import TemplateGang, gang_of_object, gang_of_pod
from webhook.objects.own_pods import (
    CANNOT_START,
    KEEPS_ALL,
    keeps_all_pods,
    without_own_pods,
    without_own_waiting,
    without_pod,
)
from webhook.placement.framework.result import Placement
from webhook.placement.gang.empty_cluster import within_cluster
from webhook.placement.gang.exclusive_domains import (
    LEADER_HAS_NO_NODE,
    Template,
    placement_of_followers,
)
from webhook.placement.gang.gang import gang_of, gang_placement
from webhook.placement.gang.gang_count import Gang
from webhook.placement.gang.group_suggestions import Group, group_of_gang
from webhook.placement.gang.object_domains import anywhere, without_count
from webhook.placement.profiles.node_templates import template_nodes
from webhook.placement.reasons.diagnosis import explain_in_detail
from webhook.placement.reasons.gang_request import group_named
from webhook.placement.reasons.missing_kinds import missing_kinds
from webhook.placement.reasons.pod_group_start import as_grouped
from webhook.placement.replicas.replica_prediction import ReplicaPrediction, predict_replicas
from webhook.placement.replicas.replicas import MOST_REPLICAS, Replicas
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature
from webhook.placement.waiting.pending_placement import WaitingPod, predict_placement


@dataclass(frozen=True, slots=True)
class Checks:
    """Evaluates pods together with the `pending` pods of the cluster."""

    pending: PendingQueue
    admissions: Admissions
    remedy: str = ""
    """The remedy that adds missing `{kinds}` to the view, or an empty text if the user cannot."""

    @classmethod
    def of(cls, session: Session) -> "Checks":
        """Return the checks of a command."""
        admissions = Admissions(session.with_policy, session.schedulers)
        remedy = "grant list and watch of {kinds}" if session.is_live else "add {kinds} to the cluster file"
        return cls(session.queue(session.snapshot), admissions, remedy)

    def answers(self, workloads: Iterable[Workload]) -> list[Answer]:
        """Return the answers for `workloads`; templates of one object are placed one after the other."""
        found: list[Answer] = []
        for _, templates in groupby(workloads, key=lambda workload: id(workload.source)):
            of_object = [*templates]
            before, replaced = self._without_own(of_object[0])
            assumed = before
            answers = []
            leaders = of_object[0], before
            for workload in of_object:
                with_leaders, (answer, assumed) = assumed, self._answer(workload, assumed)
                if workload.pods and workload.pods.exclusive:
                    answer = self._exclusive(answer, workload.pods, *leaders)
                leaders = workload, with_leaders
                answers.append(replace(answer, replaced=replaced))
            if replaced or len(before) < len(self.pending.assumed):
                answers[0] = self._rolling(answers[0])
            found += self._in_gangs(answers, before)
        self.admissions.print_hint()
        return found

    def _exclusive(self, answer: Answer, pods: PodSet, leaders: Workload, assumed: Pending) -> Answer:
        """Return the answer for pods whose groups have a topology domain of their own.

        `assumed` is the cluster before the first of `leaders`.
        """
        # Suggestions are verified without the terms of the controller.
        placement = replace(answer.placement, suggestions=(), remedies=())
        answer = replace(answer, placement=placement)
        if not (pods.follows and pods.replicas and leaders.pods and answer.first):
            return answer
        of_leaders, of_followers = self._template(leaders, leaders.pods), self._template(answer.workload, pods)
        first = next(of_leaders.pods_on(assumed.base), None)
        if not first or not (scheduler := self.admissions.schedulers(leaders.policy).scheduler_of(first)):
            return answer
        before = self.pending.before(first, assumed)[0].before_pod(PodSignature.of(first).info.preemption)
        can_grow = bool(answer.workload.policy.spec.node_templates)
        found = placement_of_followers(placement, of_leaders, of_followers, scheduler, before, never, can_grow=can_grow)
        return replace(answer, placement=found)

    def _template(self, workload: Workload, pods: PodSet) -> Template:
        return Template(pods, partial(self.admissions.created, workload))

    def _in_gangs(self, answers: list[Answer], assumed: Pending) -> list[Answer]:
        """Return the answers for an object with the count of its pods that must run together, placed on `assumed`."""
        counted = [(each, each.replicas, each.first) for each in answers if each.replicas and each.first]
        kind = next((each.workload.pods.kind for each, *_ in counted if each.workload.pods), None)
        if kind is None:
            return answers
        workload, base = counted[0][0].workload, assumed.base
        policy, schedulers = workload.policy, self.admissions.schedulers(workload.policy)
        found, roles = [], []
        for _, replicas, first in counted:
            names = batch_names_of(first, backend_of(policy.spec, schedulers.name_for(first)))
            request, within = gang_of_pod(first, policy, base), within_of(first, policy)
            found.append(TemplateGang(request, starts_whole(first, names), within, replicas.asked))
            chosen = schedulers.scheduler_of(first)
            roles.append((None if chosen is None else (chosen, PodSignature.of(first)), replicas))
        verdicts = {each.verdict for each, *_ in counted}
        scheduler = schedulers.name_for(counted[0][2])
        warn_of_ignored_domain(workload, kind, strictest(each.within for each in found), base)
        gang = gang_of_object(workload.source.content, kind, found, scheduler, policy, base)
        if gang is None or gang.within is None:
            kept = [PodSignature.of(first) for *_, first in counted]
            answers = [replace(each, placement=without_count(each.placement, kept, base)) for each in answers]
        if gang is not None:
            first = counted[0][2]
            before = self.pending.before(first, assumed)[0].before_pod(PodSignature.of(first).info.preemption)
            fit = fit_of_object(gang, roles, policy, before, never, verdicts)
            answers = [in_gang_of_object(each, gang, fit) for each in answers]
        size = max((each.size for each in (gang, *(each.request for each in found)) if each), default=0)
        as_group = partial(_as_grouped, backend=backend_of(policy.spec, scheduler), size=size, base=base)
        return [replace(each, placement=as_group(each.placement, each.first)) for each in answers]

    def _rolling(self, answer: Answer) -> Answer:
        """Return the answer for an existing object: it waits if its rolling update cannot start beside the old pods."""
        workload, first = answer.workload, answer.first
        kind = workload.pods.kind if workload.pods else None
        if first is None or kind is None or not keeps_all_pods(workload.source.content, kind):
            return answer
        scheduler = self.admissions.schedulers(workload.policy).scheduler_of(first)
        if scheduler is None:
            return answer
        beside = predict_placement(scheduler, PodSignature.of(first), self.pending.assumed, None, never)
        if beside.verdict != "Waiting":
            return answer
        placement = answer.placement
        if placement.verdict == "Feasible":
            placement = replace(beside, node=None, message=f"{CANNOT_START}{beside.message}", scores={}, suggestions=())
        return replace(answer, placement=replace(placement, suggestions=(*placement.suggestions, KEEPS_ALL)))

    def _without_own(self, workload: Workload) -> tuple[Pending, int]:
        """Return the cluster without the running pods of the object, which new pods replace, and their number."""
        pods, assumed, content = workload.pods, self.pending.assumed, workload.source.content
        if pods is None:
            return assumed, 0
        if pods.kind is None:
            namespace, _, name = workload.name.partition("/")
            itself = without_pod(assumed.base, namespace, name)
            return assumed.on(itself.snapshot) if itself.replaced else assumed, itself.replaced
        namespace = pods.names.namespace or DEFAULT_NAMESPACE
        own = without_own_pods(assumed.base, namespace, content, pods.kind, never)
        return without_own_waiting(assumed, namespace, content, pods.kind).on(own.snapshot), own.replaced

    def _answer(self, workload: Workload, assumed: Pending) -> tuple[Answer, Pending]:
        try:
            return self._evaluated(workload, assumed)
        except InvalidInput as error:
            place = f"{workload.document.place}: "
            message = BETWEEN_ERRORS.join(str(each).removeprefix(place) for each in error.errors)
            return Answer(workload, Placement.unknown(message), faults=error.errors), assumed

    def _evaluated(self, workload: Workload, assumed: Pending) -> tuple[Answer, Pending]:
        """Return the answer, and `assumed` with the replicas that were placed added to it."""
        pods = workload.pods
        if pods is None:
            return Answer(workload, Placement.unknown(workload.note)), assumed
        with_claims = assumed.on(with_claims_of(workload, assumed.base, MOST_REPLICAS))
        workload, of_server = self.admissions.with_completed_pod(workload, with_claims.base)
        refusal, bypass = self.admissions.answer(workload, with_claims.base)
        if refusal:
            return Answer(workload, Placement.unknown(refusal), refusal=refusal), assumed
        if unknown := workload.note or of_server.unknown:
            return Answer(workload, Placement.unknown(unknown)), assumed
        answer, assumed = self._placed(workload, pods, with_claims)
        answer = self._in_doubt(answer, pods, with_claims, of_server.doubts)
        return replace(answer, bypass=bypass, completed_by=of_server.sources), assumed

    def _in_doubt(self, answer: Answer, pods: PodSet, assumed: Pending, doubts: Sequence[str]) -> Answer:
        """Return the answer. The verdict becomes Unknown if plugins that the API server may run would change it."""
        for names, snapshot in alternatives(doubts, assumed.base):
            try:
                other: str = self._placed(answer.workload, pods, assumed.on(snapshot))[0].placement.verdict
            except InvalidInput:
                other = "Invalid"
            if other != answer.placement.verdict:
                namespace = field(answer.first or {}, "metadata", "namespace") or DEFAULT_NAMESPACE
                return replace(answer, placement=doubtful(answer.placement, other, names, namespace))
        return answer

    def _placed(self, workload: Workload, pods: PodSet, assumed: Pending) -> tuple[Answer, Pending]:
        policy, asked = workload.policy, 1 if pods.replicas is None else pods.replicas
        template = self._template(workload, pods)
        schedulers = self.admissions.schedulers(policy)
        with prefixed_errors(workload.document.place):
            first = next(template.pods_on(assumed.base), None)
            if first is None:
                return Answer(workload, Placement.unknown(LEADER_HAS_NO_NODE)), assumed
            self.admissions.check_storable(first)
            assumed, reserved = self.pending.before(first, assumed)
            scheduler, signature = schedulers.scheduler_of(first), PodSignature.of(first)
            self.admissions.check_admitted(first, assumed.base)
            if scheduler is None:
                self.admissions.note(workload, assumed.base)
                unknown = schedulers.place(first, assumed.base)
                found = Replicas(asked, 0, {}, unknown, unknown, is_complete=False, snapshot=assumed.base)
                return Answer(workload, unknown, found, reserved=reserved, first=first), assumed
            read = PodSignature.of if pods.kind is None else anywhere
            among = predict_replicas(scheduler, assumed, template.pods_on(assumed.base), asked, read=read)
        found = among.found
        then = found.snapshot if found.stopped else among.before
        waiting = WaitingPod.of(first)
        request = gang_of_pod(first, policy, assumed.base) if pods.kind is None else None
        gang = request and gang_of(request, waiting, policy.spec)
        # An annotation can select another scheduler.
        group = _group(gang, waiting, among, assumed, partial(schedulers.scheduler_of_signature, otherwise=scheduler))
        placement = group.verified(found.placement)
        if self.admissions.with_policy:
            placement = self.admissions.with_suggestions(workload, placement, group.snapshot, group.place)
        else:
            is_first = found.placement is found.first
            hinted = self.admissions.with_hint(workload, placement if is_first else found.first, among.before)
            placement = hinted if is_first else placement
            if field(workload.document.content, "spec", "nodeName"):
                placement = replace(placement, suggestions=())
        if pods.kind is not None:
            base = assumed.base
            placement = within_cluster(placement, signature, asked, pods.kind, policy, scheduler, base, never)
        if gang is not None:
            templates, temporary = template_nodes(policy.spec.node_templates), scheduler.temporary_taints
            alone = Scheduler(scheduler.profile, temporary_taints=temporary, is_listed=scheduler.is_listed)
            placement = gang_placement(alone, gang, waiting, placement, assumed, templates=templates)
        backend = backend_of(policy.spec, schedulers.name_for(first))
        if pods.kind is None:
            placement = _as_grouped(placement, first, backend, request.size if request else 0, assumed.base)
        info = signature.info.normalized_for(then)
        if self.remedy and placement.verdict == "Unknown" and placement.feasible:
            missing = missing_kinds(info, then)
            placement = with_missing_kinds(placement, missing, self.remedy)
        reasons = explain_in_detail(scheduler.profile, info, then)
        answer = Answer(workload, placement, found, reasons, reserved=reserved, gang=request, first=first)
        answer = with_evictions(answer, scheduler, signature, then, backend.name)
        if placement.waiting_before:
            base = among.assumed.base
            fitting = tuple(base.nodes[row].node.name for row in scheduler.feasible_rows(signature, base))
            answer = replace(answer, without_pods=(), without_pending=fitting)
        return answer, among.assumed


def _as_grouped(
    placement: Placement, pod: JsonObject | None, backend: type[Backend], size: int, base: Snapshot
) -> Placement:
    """Return `placement` of `pod`, of a gang of `size` or 0 if it is not known, adjusted to the PodGroup of the pod."""
    if pod is None:
        return placement
    info = PodSignature.of(pod).info
    group = group_named(batch_names_of(pod, backend), info.inter_pod.namespace, base)
    return placement if group is None else as_grouped(placement, group, info, size, base)


def _group(
    gang: Gang | None,
    pod: WaitingPod,
    among: ReplicaPrediction[PodKey],
    assumed: Pending,
    scheduler_of: Callable[[PodSignature], Scheduler],
) -> Group:
    """Return the group of pods that a suggestion must make fit: the gang of `pod`, or the replicas of its template."""
    if gang is not None:
        return group_of_gang(gang, pod, scheduler_of, assumed, never)
    return Group(scheduler_of, pod, among.found.asked, among.before, (), never)
