"""Pods that `check` evaluates as written although the webhook would change them."""

from dataclasses import dataclass, field, replace

from webhook.cli.admission import admit_document
from webhook.cli.profiles import PolicySchedulers
from webhook.cli.terminal import echo
from webhook.cluster.snapshot import Snapshot
from webhook.kube.documents import Document
from webhook.kube.pod_set import pod_name
from webhook.pipeline import ClusterView
from webhook.placement.framework.result import Placement
from webhook.policy.policy import Policy
from webhook.verdict import Denied, Patched, Verdict

_MOST_NAMES = 3
_WORSE_THAN = {"Feasible": ("Waiting", "Infeasible"), "Waiting": ("Infeasible",)}


@dataclass
class MutateHint:
    """Suggests `--mutate` for each pod that it makes fit, and once for all others that the webhook would change."""

    schedulers: PolicySchedulers
    _changed: list[str] = field(default_factory=list)

    def suggested_first(
        self, document: Document, policy: Policy, placement: Placement, snapshot: Snapshot
    ) -> Placement:
        """Return the placement on `snapshot` of a pod with `--mutate` as its first suggestion, if that helps."""
        verdict = admit_document(document, policy, ClusterView(snapshot, scorer=None))
        if isinstance(verdict, Patched):
            admitted = self.schedulers.of(policy).place(verdict.pod, snapshot)
            if placement.verdict in _WORSE_THAN.get(admitted.verdict, ()):
                text = _suggestion(verdict.workload_type, admitted)
                return replace(placement, suggestions=(text, *placement.suggestions))
        self._note(document, verdict)
        return placement

    def note(self, document: Document, policy: Policy, snapshot: Snapshot) -> None:
        """Add the pod to those that the webhook would change, if it would."""
        self._note(document, admit_document(document, policy, ClusterView(snapshot, scorer=None)))

    def _note(self, document: Document, verdict: Verdict) -> None:
        if isinstance(verdict, Patched | Denied):
            self._changed.append(pod_name(document.content))

    def print_rest(self) -> None:
        """Print the pods that have no suggestion although the webhook would change or refuse them to standard error."""
        if not self._changed:
            return
        names = ", ".join([*dict.fromkeys(self._changed)][:_MOST_NAMES])
        more = len(self._changed) - _MOST_NAMES
        others = f" and {more} more" if more > 0 else ""
        echo(
            f"Hint: checked as written, but the webhook would change or refuse {names}{others}: add --mutate", err=True
        )


def _suggestion(workload_type: str, admitted: Placement) -> str:
    found = f"{admitted.feasible} of {admitted.total} nodes can take it"
    if admitted.verdict == "Waiting":
        found = "it is Waiting, not Infeasible"
    return f"add --mutate: as the webhook admits the pod (workload type {workload_type}), {found}"
