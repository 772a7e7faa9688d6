"""The exported policy in the cluster is the one in force, and the API server can apply it."""

from collections.abc import Iterator

from webhook.admission.exported_policy import exported_policy as exported
from webhook.admission.exported_policy import identity_of
from webhook.doctor import commands
from webhook.doctor.check import Finding, check, error, named, warning
from webhook.doctor.cluster import Cluster, JsonObject, listed
from webhook.doctor.source import Source
from webhook.doctor.workloads import option
from webhook.kube.api.admission_policy import (
    FIRST_BETA_MINOR,
    PLURALS,
    Difference,
    ObjectId,
    difference,
    is_exported,
    mutating_version,
)
from webhook.kube.release import Release

_GATES = "--feature-gates=MutatingAdmissionPolicy=true --runtime-config=admissionregistration.k8s.io/v1beta1=true"


@check(
    "exported-policy",
    "the log of the servers; without `--export-policy=on`, `kubectl replace --force -f` what `policy export` prints",
    needs={Source.DEPLOYMENTS, Source.POLICY, Source.VERSION, Source.EXPORTED},
)
def exported_policy(cluster: Cluster) -> Iterator[Finding]:
    """The exported policy is not the one in force, lacks an object, was edited, or the API server has no kind for it.

    Without `--export-policy=on`, objects that were applied by hand are judged in the same way.
    """
    release = cluster.release
    stored = {ObjectId.of(each): each for each in cluster.of(Source.EXPORTED) if is_exported(each)}
    if release is None or not cluster.knows(Source.EXPORTED) or not (stored or is_kept(cluster)):
        return
    if cluster.unserved_kinds:
        yield _unserved(cluster, release)
        return
    objects = exported(cluster.policies, release.minor, cluster.target.namespace, cluster.configuration).objects
    wanted = {ObjectId.of(each): each for each in objects}
    remedy = _remedy(cluster)
    for name, content in wanted.items():
        if name not in stored:
            without = "its policy has no effect" if name.kind.endswith("Binding") else "pods are not injected by it"
            yield error(str(name), f"missing: {without}", remedy)
        else:
            yield from _of_object(name, content, stored[name], remedy)
    for name in stored.keys() - wanted.keys():
        deleted = commands.command("kubectl", "delete", PLURALS[name.kind], name.name)
        yield warning(str(name), "the policy in force does not give it, and the API server still applies it", deleted)


def is_kept(cluster: Cluster) -> bool:
    """Return whether the servers are to keep the exported policy in step."""
    return option(cluster.deployment or {}, "--export-policy") == "on"


def _of_object(name: ObjectId, wanted: JsonObject, stored: JsonObject, remedy: str) -> Iterator[Finding]:
    known, found = identity_of(wanted), identity_of(stored)
    if known != found:
        yield warning(str(name), f"is of {found or 'no policy'}, and {known} is in force", remedy)
    elif (part := difference(wanted, stored)) is not None:
        place = "spec" if part is Difference.SPEC else "metadata"
        entries = sorted(listed(stored, "metadata", "managedFields"), key=lambda each: str(each.get("time")))
        last = f"; the last to write it was {entries[-1].get('manager')}" if entries else ""
        what = f"edited, or written by another version: differs from what {known} gives{last}"
        yield error(f"{name}: {place}", what, remedy)


def _remedy(cluster: Cluster) -> str:
    if is_kept(cluster):
        return f"the leader corrects it within a minute: {commands.servers(cluster, 'logs')} has the reason why not"
    replace = commands.command("kubectl", "replace", "--force", "-f", "FILE")
    return f"{replace}, with what `policy export` of placement-webhook prints in FILE"


def _unserved(cluster: Cluster, release: Release) -> Finding:
    what = f"{release.version} does not serve {named(sorted(cluster.unserved_kinds))}: nothing is injected by it"
    if release.minor < FIRST_BETA_MINOR:
        remedy = "upgrade the cluster to 1.36, or leave out --export-policy: then the webhook alone injects"
    elif mutating_version(release.minor) == "v1":
        remedy = "remove these kinds from --runtime-config of kube-apiserver"
    else:
        remedy = f"start kube-apiserver with {_GATES}, or upgrade the cluster to 1.36"
    return error("the API server", what, remedy)
