"""Evaluate the pods of a file: the replicas of each template one after the other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from webhook.cli.admission import admit_document, in_annotations_of, print_verdict
from webhook.cli.mutate_hint import MutateHint
from webhook.cli.profiles import Schedulers
from webhook.cli.workloads import Workload, with_claims_of
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import never
from webhook.kube.documents import Document, JsonObject
from webhook.kube.field import InvalidInput
from webhook.kube.shape import check_pod
from webhook.kube.wellknown import DEFAULT_NAMESPACE
from webhook.objects.own_pods import WithoutOwnPods, without_own_pods
from webhook.pipeline import ClusterView
from webhook.placement.diagnosis import NodeToStatus
from webhook.placement.framework.result import Placement, to_check_json
from webhook.placement.replicas import MOST_REPLICAS, Replicas
from webhook.policy.policy import Policy
from webhook.verdict import Bypassed, Denied

_MOST_NODES = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """The result for the pods of one template: of the first pod that does not fit, or of the first one.

    `refusal` is the message of a denied pod. `replicas` is None for a pod that was not evaluated. `reasons` are those
    of each node that cannot take the pod. `without_pods` are the nodes that could take a waiting pod if no pod was
    running. `replaced` is the number of running pods of the object, which count as gone.
    """

    workload: Workload
    placement: Placement
    replicas: Replicas | None = None
    reasons: NodeToStatus = field(default_factory=dict)
    without_pods: tuple[str, ...] = ()
    refusal: str = ""
    replaced: int = 0

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

    def to_json(self) -> dict[str, Any]:
        """Return the line of the pods in `check -o json`; for an object with its name and the count of replicas."""
        line = to_check_json(self.workload.name, self.placement) | {"verdict": self.verdict}
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
class Checks:
    """Evaluates pods as written, with a hint where `--mutate` changes them, or as the webhook admits them."""

    policy: Policy
    snapshot: Snapshot
    schedulers: Schedulers
    with_policy: bool

    def answers(self, workloads: Iterable[Workload]) -> list[Answer]:
        """Return the answers for `workloads`; templates of one object are placed one after the other.

        Raises:
            InvalidInput: a pod is malformed; the errors name file, document and field.
        """
        hint = MutateHint(self.policy, self.schedulers)
        found: list[Answer] = []
        source: Document | None = None
        snapshot, own = self.snapshot, WithoutOwnPods(self.snapshot)
        for workload in workloads:
            if workload.source is not source:
                source, own = workload.source, self._without_own_pods(workload)
                snapshot = own.snapshot
            answer = replace(self._answer(workload, snapshot, hint), replaced=own.replaced)
            snapshot = answer.replicas.snapshot if answer.replicas else snapshot
            found.append(answer)
        hint.print_rest()
        return found

    def _without_own_pods(self, workload: Workload) -> WithoutOwnPods:
        """Return the cluster without the running pods of the object, which its new ones replace."""
        pods = workload.pods
        if pods is None or pods.kind is None:
            return WithoutOwnPods(self.snapshot)
        namespace = pods.names.namespace or DEFAULT_NAMESPACE
        return without_own_pods(self.snapshot, namespace, workload.source.content, pods.kind, never)

    def _answer(self, workload: Workload, snapshot: Snapshot, hint: MutateHint) -> Answer:
        if workload.pods is None:
            return Answer(workload, Placement.unknown(workload.note))
        document = workload.document
        snapshot = with_claims_of(workload, snapshot, MOST_REPLICAS)
        if self.with_policy:
            verdict = admit_document(document, self.policy, ClusterView(snapshot, scorer=None))
            print_verdict(document, verdict, workload.located)
            if isinstance(verdict, Denied):
                message = workload.located(verdict.denial.message)
                return Answer(workload, Placement.unknown(message), refusal=message)
        if workload.note:
            return Answer(workload, Placement.unknown(workload.note))
        asked = 1 if workload.pods.replicas is None else workload.pods.replicas
        try:
            check_pod(document.content)
            replicas = self.schedulers.place_replicas(self._pods(workload), asked, snapshot)
        except InvalidInput as error:
            raise InvalidInput(each.prefixed(document.place) for each in error.errors) from error
        placement, first = replicas.placement, next(self._pods(workload))
        then = replicas.snapshot if replicas.stopped else snapshot
        if self.with_policy:
            place = partial(self.schedulers.answer, pod=first, snapshot=then)
            placement = in_annotations_of(document, self.policy, placement, then, place)
        else:
            hinted = hint.suggested_first(document, replicas.first, snapshot)
            placement = hinted if placement is replicas.first else placement
        is_waiting = placement.verdict == "Waiting"
        without_pods = self.schedulers.nodes_without_pods(first, then) if is_waiting else ()
        return Answer(workload, placement, replicas, self.schedulers.explain(first, then), without_pods)

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
                verdict = admit_document(document, self.policy, ClusterView(self.snapshot, scorer=None))
                pod_read, admitted = pod, pod if isinstance(verdict, Bypassed | Denied) else verdict.pod
            yield admitted
