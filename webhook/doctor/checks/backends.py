"""The API groups of the backends that the policy names are served."""

from collections.abc import Iterator

from webhook.backends.kueue import Kueue
from webhook.backends.registry import api_groups_of
from webhook.cluster.scheduler_evidence import SchedulerEvidence
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, warning
from webhook.doctor.installation import Installation
from webhook.doctor.source import Source
from webhook.policy.policy import Policy


@check(
    "backends",
    "The API group of a backend that the policy names is not served, so queues and gangs have no effect",
    "install the CRDs of the backend, or change `schedulers` and `queueing`",
    Source.POLICY,
    Source.GROUPS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each scheduler that the policy chooses or describes, and for Kueue, without its API group."""
    if installation.evidence is None:
        return
    reported = set[str]()
    for policy in installation.policies:
        yield from _unserved(policy, installation.place_of(policy), installation.evidence, reported)


def _unserved(policy: Policy, place: str, evidence: SchedulerEvidence, reported: set[str]) -> Iterator[Fault]:
    """Yield the faults of one policy, without the backends in `reported`, to which it adds."""
    spec = policy.spec
    chosen = {f"workloadTypes.{name}.schedulerName": each.scheduler_name for name, each in spec.workload_types.items()}
    chosen |= {f"schedulers.{name}": name for name in spec.schedulers}
    for path, name in chosen.items():
        groups = api_groups_of(spec.schedulers, name) if name else ()
        if name and groups and name not in reported and evidence.groups.isdisjoint(groups):
            reported.add(name)
            what = f"{name}: no API group {' or '.join(groups)} is served, so its queues and gangs have no effect"
            yield warning(f"{place}: spec.{path}", what, "install the CRDs of the scheduler, or choose another one")
    if (
        spec.queueing == "kueue"
        and Kueue.api_groups[0] not in reported
        and evidence.groups.isdisjoint(Kueue.api_groups)
    ):
        what = f"kueue: no API group {' or '.join(Kueue.api_groups)} is served, so no pod waits for a queue"
        reported.add(Kueue.api_groups[0])
        yield warning(f"{place}: spec.queueing", what, "install Kueue, or set queueing: scheduler")
