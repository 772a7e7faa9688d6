"""The advice on a workload object if the API server may run admission plugins that no object of the cluster shows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from webhook.admission.api_server.optional_plugins import alternatives, doubtful
from webhook.objects.advice import advise
from webhook.objects.completed_role import completed_role
from webhook.objects.gangs import Advice, Role, WorkloadAdmission


def advise_in_doubt(roles: Sequence[Role], workload: WorkloadAdmission, defaults: Mapping[str, str]) -> Advice | None:
    """Return the advice or None; it is Unknown if it depends on whether an uncertain plugin runs."""
    advice = advise(roles, workload)
    if advice is None:
        return None
    for names, other in _others(roles, workload):
        those = [completed_role(each.pods, each.result, other, defaults) for each in roles]
        found = advise(those, other)
        verdict = "Invalid" if any(each.refusal for each in those) else found.placement.verdict if found else ""
        if verdict != advice.placement.verdict:
            placement = doubtful(advice.placement, verdict, names, workload.request.namespace)
            return Advice(placement, (f"placement check: Unknown: {placement.message}",))
    return advice


def _others(roles: Sequence[Role], workload: WorkloadAdmission) -> Iterator[tuple[str, WorkloadAdmission]]:
    """Yield the names of uncertain plugins, with the admission in a cluster whose API server runs them."""
    cluster, doubts = workload.cluster, tuple(dict.fromkeys(each for role in roles for each in role.doubts))
    if cluster is not None and doubts:
        for names, snapshot in alternatives(doubts, cluster.snapshot):
            assumed = None if cluster.assumed is None else cluster.assumed.on(snapshot)
            yield names, replace(workload, cluster=replace(cluster, snapshot=snapshot, assumed=assumed))
