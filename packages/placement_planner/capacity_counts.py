"""Count the further pods of files, for each template by itself or for all templates in proportion."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from placement_planner.capacity.counting import Count, count_each, count_together
from placement_planner.capacity.simulation import FurtherPods, OnPlaced
from placement_planner.domain_cards import DomainRoom, room_by_domain, topology_key
from webhook.admission.api_server.optional_plugins import alternatives, in_doubt
from webhook.cli.inputs.pending import NOTHING_RESERVED, PendingQueue, Reserved
from webhook.cli.inputs.workloads import Workload, with_claims_of_pods
from webhook.cli.predictions.admission import Admissions
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject
from webhook.documents.field import FieldError, InvalidInput, prefixed_errors
from webhook.kube.workloads.pod_set import PodSet
from webhook.placement.scorer import PodSignature

# The most pods with claims of their own that are counted.
_MOST_CLAIMANTS = 1000

Pod = Mapping[str, Any]
# Returns what to call after each placed pod of `name`.
ProgressOf = Callable[[str], OnPlaced]
# Prints the errors of a pod; raises them if the command stops there.
Report = Callable[[Sequence[FieldError]], None]
_EXCLUSIVE = "each group of its pods has a topology domain of its own: use check for the groups that the object has"


@dataclass(frozen=True, slots=True)
class Counted:
    """The count of the pods of one template. `is_refused` is true if the pods are denied.

    `bypass` is the reason why the webhook leaves the pods alone, or empty.
    With several templates in proportion, `share` of the pods are placed in a turn, and `turns` whole turns fit.
    `reserved` are the pending pods of the cluster that take their places before the pods. `domains` is the room of each
    domain for a gang of the pods, or None if it is not requested or not known.
    """

    workload: Workload
    count: Count
    is_refused: bool = False
    bypass: str = ""
    share: int = 1
    turns: int | None = None
    reserved: Reserved = NOTHING_RESERVED
    domains: Sequence[DomainRoom] | None = None


@dataclass(frozen=True, slots=True)
class _Template:
    """The further pods of a template, or the reason why they cannot be counted."""

    workload: Workload
    pods: FurtherPods | None = None
    message: str = ""
    is_refused: bool = False
    bypass: str = ""

    @property
    def share(self) -> int:
        """Return the number of these pods in the object."""
        return max(1, (self.workload.pods.replicas if self.workload.pods else None) or 1)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts further pods as the controllers create them.

    The pods are new, so they come after the `pending` pods of the same or a higher priority. `until` is the maximum
    number of pods of each template, or of turns, to count, or None for no limit. `by` is the topology alias or label
    whose domains are counted, or empty.
    """

    pending: PendingQueue
    admissions: Admissions
    until: int | None
    progress_of: ProgressOf
    report: Report
    by: str = ""

    @property
    def snapshot(self) -> Snapshot:
        """Return the current cluster without the pending pods."""
        return self.pending.assumed.base

    def each(self, workloads: Sequence[Workload]) -> Iterator[Counted]:
        """Yield the count of each template by itself on the current cluster.

        Raises:
            InvalidInput: a pod is malformed, and `report` raises its errors, or a claim is.
        """
        for template in self._templates(workloads):
            if template.pods is None:
                yield Counted(template.workload, Count.unknown(template.message), template.is_refused, template.bypass)
                continue
            snapshot, reserved = self._before((template.pods,), self._with_claims((template,)))
            count = count_each(template.pods, snapshot, self.until, self.progress_of(template.workload.name))
            policy, domains = template.workload.policy, None
            if self.by and not (count.ended_early and not count.fits):
                domains = room_by_domain(template.pods, snapshot, topology_key(policy, self.by), policy)
            yield Counted(template.workload, count, bypass=template.bypass, reserved=reserved, domains=domains)

    def together(self, workloads: Sequence[Workload]) -> Iterator[Counted]:
        """Yield the counts of all templates in proportion. A turn has the pods that the objects have.

        If one template cannot be counted, none is counted. The pending pods before any of the pods are placed first.

        Raises:
            InvalidInput: a pod is malformed, and `report` raises its errors, or a claim is.
        """
        templates = self._templates(workloads)
        left_out = [template for template in templates if template.pods is None]
        pods = [] if left_out else [template.pods for template in templates if template.pods is not None]
        snapshot, reserved = self._before(pods, self._with_claims(templates))
        if left_out:
            counts: Sequence[Count] = [Count.unknown(left_out[0].message)] * len(templates)
        else:
            names = ", ".join(template.workload.name for template in templates)
            counts = count_together(pods, snapshot, self.until, self.progress_of(names))
        turns = min(count.fits // template.share for template, count in zip(templates, counts, strict=True))
        for template, count in zip(templates, counts, strict=True):
            of_template = (template.is_refused, template.bypass, template.share)
            yield Counted(template.workload, count, *of_template, turns, reserved)

    def next_pod(self, counted: Counted) -> tuple[Pod, Snapshot]:
        """Return the first further pod of a template as it is created, and the cluster before it, with its claims.

        For a pod that does not fit now, all pending pods with room are shown as placed, because they are bound before
        another pod is moved, whatever their priority.

        Raises:
            InvalidInput: a claim is malformed.
        """
        workload, snapshot = _without_end(counted.workload), self.snapshot
        content = workload.document.content
        if workload.pods is not None and workload.pods.claims:
            begin = workload.pods.replicas or 0
            snapshot = with_claims_of_pods(workload, snapshot, range(begin, begin + 1))
            content = workload.pods.pod_at(begin)
        pod = self._stored(workload, content)
        assumed = self.pending.assumed.on(snapshot)
        if counted.count.fits:
            return pod, assumed.before_pod(PodSignature.of(pod).info.preemption)
        return pod, assumed.all_shown

    def _templates(self, workloads: Sequence[Workload]) -> list[_Template]:
        templates = []
        for workload in workloads:
            try:
                templates.append(self._template(workload))
            except InvalidInput as error:
                self.report(error.errors)
                templates.append(_Template(workload, message="; ".join(map(str, error.errors))))
        self.admissions.print_hint()
        return templates

    def _template(self, workload: Workload) -> _Template:
        workload = _without_end(workload)
        pods = workload.pods
        if pods is None:
            return _Template(workload, message=workload.note)
        workload, of_server = self.admissions.with_completed_pod(workload, self.snapshot)
        refusal, bypass = self.admissions.answer(workload, self.snapshot)
        self.admissions.note(workload, self.snapshot)
        if reason := refusal or workload.note or (_EXCLUSIVE if pods.exclusive else "") or of_server.unknown:
            return _Template(workload, message=reason, is_refused=bool(refusal))
        template = replace(self._further(workload, pods), bypass=bypass)
        return _Template(workload, message=doubt) if (doubt := self._doubt(template, of_server.doubts)) else template

    def _doubt(self, template: _Template, doubts: Sequence[str]) -> str:
        """Return the reason why the count is not known, because the API server may run the plugins `doubts`, or ""."""
        for names, snapshot in alternatives(doubts, self.snapshot):
            other = replace(self, pending=replace(self.pending, assumed=self.pending.assumed.on(snapshot)))
            fits, fits_there = self.fits_of(template), other.fits_of(template)
            if fits != fits_there:
                namespace = template.workload.name.partition("/")[0]
                return in_doubt(f"{fits} fit", f"{fits_there} fit", names, namespace)
        return ""

    def fits_of(self, template: _Template) -> int:
        """Return the number of pods that fit by themselves, or 0 if the API server rejects them."""
        workload, pods = template.workload, template.workload.pods
        try:
            further = self._further(workload, pods).pods if pods else None
        except InvalidInput:
            return 0
        return count_each(further, self.snapshot, self.until, self.progress_of(workload.name)).fits if further else 0

    def _further(self, workload: Workload, pods: PodSet) -> _Template:
        """Return the further pods of `workload`, whose document must be completed."""
        first = self._stored(workload, workload.document.content)
        schedulers = self.admissions.schedulers(workload.policy)
        scheduler = schedulers.scheduler_of(first)
        if scheduler is None:
            return _Template(workload, message=schedulers.place(first, self.snapshot).message)
        share, begin = _Template(workload).share, pods.replicas or 0
        further = FurtherPods(scheduler, lambda _: first, share)
        if pods.claims:
            # Each pod has claims of its own. The object has created those of its replicas.
            further = FurtherPods(
                scheduler, lambda index: self._stored(workload, pods.pod_at(begin + index)), share, _MOST_CLAIMANTS
            )
        with prefixed_errors(workload.document.place):
            self.admissions.check_storable(first)
            further.read(0)
            self.admissions.check_admitted(first, self.snapshot)
        return _Template(workload, further)

    def _stored(self, workload: Workload, pod: JsonObject) -> Pod:
        """Return `pod`, which a controller creates, as the API server stores it."""
        return self.admissions.created(workload, pod, self.snapshot)

    def _before(self, pods: Sequence[FurtherPods], snapshot: Snapshot) -> tuple[Snapshot, Reserved]:
        """Return `snapshot` with the pending pods that come before any of `pods`, and their count."""
        if not pods:
            return snapshot, NOTHING_RESERVED
        assumed = self.pending.assumed.on(snapshot)
        priority = min(assumed.priority_of(each.read(0)[0].info.preemption) for each in pods)
        return assumed.before(priority), self.pending.reserved_before_new(priority)

    def _with_claims(self, templates: Sequence[_Template]) -> Snapshot:
        """Return the cluster with the claims of the further pods."""
        snapshot = self.snapshot
        for template in templates:
            pods = template.workload.pods
            if template.pods is not None and pods is not None:
                begin = pods.replicas or 0
                snapshot = with_claims_of_pods(template.workload, snapshot, range(begin, begin + _MOST_CLAIMANTS))
        return snapshot


def _without_end(workload: Workload) -> Workload:
    """Return the workload with enough replicas for further pods with claims, whose indices follow the existing ones."""
    pods = workload.pods
    if pods is None or not pods.claims:
        return workload
    first = [replace(each, number=max(1, each.number) + _MOST_CLAIMANTS) for each in pods.dimensions[:1]]
    return replace(workload, pods=replace(pods, dimensions=(*first, *pods.dimensions[1:])))
