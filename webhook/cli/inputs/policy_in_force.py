"""The policies in force in a live cluster, found as `doctor` finds them."""

from functools import partial

from certs.registration import Target
from webhook.cli.inputs.live import ask_live
from webhook.cli.inputs.policies import PlacedPolicies
from webhook.cli.output.terminal import echo
from webhook.doctor.cluster import Cluster
from webhook.doctor.reader import Wanted, read_cluster
from webhook.doctor.source import Source
from webhook.doctor.workloads import option
from webhook.policy.policy import Policy
from webhook.watch.api_server import ClientConfig

_MOST_SECONDS = 30.0
_SOURCES = (Source.CONFIGURATIONS, Source.SERVICE, Source.DEPLOYMENTS, Source.POLICY)


def read_policies_in_force(source: ClientConfig) -> PlacedPolicies | None:
    """Return the policies in force in the cluster of `source`, or None if the API server does not answer.

    What cannot be read, so that the built-in policy is used in its place, is reported on standard error.
    """
    wanted = Wanted(Target().configuration, sources=frozenset(_SOURCES), within_seconds=_MOST_SECONDS)
    cluster = ask_live(source, "the policy in force", partial(read_cluster, wanted=wanted))
    if cluster is None:
        return None
    if problem := _problem(cluster):
        echo(f"not known: the policy in force: {problem}; the built-in policy is used", err=True)
    return PlacedPolicies(cluster.policies, {each.identity: _place(cluster, each) for each in cluster.policies})


def _problem(cluster: Cluster) -> str:
    """Return why the policy of the servers is not known, or an empty string if it is."""
    stored, servers = cluster.stored, cluster.deployment
    if stored is not None and stored.policies is None:
        where = f"ConfigMap {cluster.target.namespace}/{stored.name}"
        return f"{where} holds no valid policy, and the last valid one stays in force: {'; '.join(stored.errors[:3])}"
    # What leads to the file does not matter once it is known.
    needed = _SOURCES if stored is None else _SOURCES[-1:]
    refused = [cluster.refusals[each] for each in needed if each in cluster.refusals]
    if not refused and servers is not None and stored is None and (file := option(servers, "--policy")):
        return f"the servers read {file}, which is in no ConfigMap"
    return refused[0] if refused else ""


def _place(cluster: Cluster, policy: Policy) -> str:
    if policy in cluster.accepted:
        return "PlacementPolicy, in force"
    if cluster.stored is not None and cluster.stored.policies is not None:
        return f"ConfigMap {cluster.stored.name}, in force"
    if _problem(cluster):
        return "built in; that in force is not known"
    if cluster.deployment is None:
        return f"built in; no webhook in namespace {cluster.target.namespace}"
    return "built in, in force"
