"""The policies in force and exported are the intended ones, and the servers and the API server can apply them."""

from collections import defaultdict
from collections.abc import Iterator

from placement_doctor import commands
from placement_doctor.check import Finding, check, error, info, named, warning
from placement_doctor.cluster import Cluster, Role, name_of
from placement_doctor.source import Source
from webhook.admission.exported_policy import exported_policy as exported
from webhook.admission.exported_policy import identity_of
from webhook.cli.inputs.installed_servers import follows_objects, option
from webhook.documents.documents import JsonObject, field
from webhook.documents.parts import listed
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
from webhook.policy.policy_set import PolicySet, set_of

_GATES = "--feature-gates=MutatingAdmissionPolicy=true --runtime-config=admissionregistration.k8s.io/v1beta1=true"
# The release in which matchConditions are stable. Source: k8s.io/apiserver, AdmissionWebhookMatchConditions
_OLDEST_SUPPORTED = 30


@check(
    "`placement-webhook policy check FILE`; apply the ConfigMap, and look at the log of the server",
    needs={Source.DEPLOYMENTS, Source.POLICY, Source.TRIAL},
)
def policy(cluster: Cluster) -> Iterator[Finding]:
    """The policy in force is not the one of the ConfigMap or of `--policy`, or the ConfigMap has no valid policy."""
    stored, given = cluster.stored, cluster.given
    where = f"ConfigMap {cluster.target.namespace}/{stored.name}" if stored is not None else ""
    if stored is not None and stored.policies is None:
        judged = f"{cluster.in_force.identity} of a replica" if cluster.in_force else f"{cluster.file.default.identity}"
        what = f"holds no valid policy, so the last valid one stays in force: {'; '.join(stored.errors[:3])}"
        what += f"; all checks judge by {judged}"
        yield error(where, what, "`placement-webhook policy check FILE` has all errors")
    in_shadow = [each for each in cluster.policies if each.spec.mode == "shadow"]
    for each in in_shadow:
        place = f"{cluster.place_of(each)}: spec.mode"
        yield info(place, "shadow: no pod is changed or denied", "set mode: enforce to apply the policy")
    is_known = given is not None or stored is not None or cluster.policy in (*cluster.accepted, cluster.in_force)
    if not (in_shadow or is_known) and cluster.configuration and cluster.mark != cluster.policy.identity:
        what = "not found in a workload, so all checks judge by the built-in policy"
        yield info("the policy in force", what, "give the policy of the server with --policy")
    held = stored.policies if stored is not None else None
    # A PlacementPolicy object comes before the ConfigMap.
    is_from_object = cluster.trial is not None and cluster.policy_of(cluster.trial.namespace) in cluster.accepted
    in_force = "" if is_from_object else cluster.mark
    meant = _of_trial(held, cluster) if held is not None else ""
    if in_force and meant and in_force != meant:
        what = f"holds {meant}, but a replica that answered has {in_force}: it has not read it, or rejected it"
        restarted = commands.servers(cluster, "rollout", "restart")
        yield warning(where, what, f"{commands.servers(cluster, 'logs')} has the reason, {restarted} reads it")
    if given is not None:
        known = in_force if held is None else _identities(held)
        wanted = _of_trial(set_of(given), cluster) if held is None else _identities(set_of(given))
        if known and known != wanted:
            what = f"the cluster has {known}, and the given file is {wanted}"
            yield warning(where or cluster.place, what, "apply the file, or give doctor the one that is in force")


def _of_trial(policies: PolicySet, cluster: Cluster) -> str:
    """Return the identity of the policy for the dry-run pod, or of the default policy if there is no such pod."""
    if cluster.trial is None:
        return policies.default.identity
    namespace = cluster.trial.namespace
    return policies.of_namespace(namespace, cluster.labels_by_namespace.get(namespace)).identity


def _identities(policies: PolicySet) -> str:
    return ", ".join(each.identity for each in policies)


@check(
    "`kubectl get placementpolicies` shows them; `placement-webhook policy check FILE` has all errors",
    needs={Source.DEPLOYMENTS, Source.POLICY},
)
def policy_objects(cluster: Cluster) -> Iterator[Finding]:
    """A PlacementPolicy object is rejected, not judged or never in force, or its CustomResourceDefinition is missing.

    If servers do not follow the objects, they have no effect and are not checked.
    """
    if not follows_objects(cluster.deployment or {}) or Source.POLICY in cluster.refusals:
        return
    if cluster.policy_objects is None:
        what = "is not served, but servers run with --policy-source=crd"
        applied = commands.command("kubectl", "apply", "-k", "deploy/crd")
        remedy = applied if commands.release_of(cluster) is None else commands.upgraded(cluster)
        yield error("CustomResourceDefinition placementpolicies.placement.maip.mxsf.io", what, f"{remedy} installs it")
    for each in cluster.policy_objects or ():
        yield from _of_object(cluster, f"PlacementPolicy {name_of(each)}", each)


def _of_object(cluster: Cluster, where: str, content: JsonObject) -> Iterator[Finding]:
    generation = field(content, "metadata", "generation")
    conditions = {
        each.get("type"): each
        for each in listed(content, "status", "conditions")
        if each.get("observedGeneration") == generation
    }
    accepted, in_force = conditions.get("Accepted"), conditions.get("InForce")
    edited = commands.command("kubectl", "edit", "placementpolicy", name_of(content))
    if accepted is None:
        what = f"no server has judged generation {generation}, so it is not in force"
        yield warning(f"{where}: status", what, f"{commands.servers(cluster, 'logs')} has the reason")
    elif accepted.get("status") != "True":
        what = f"rejected, so the generation before it stays in force, if there is one: {accepted.get('message')}"
        yield error(f"{where}: spec", what, f"{edited}; `placement-webhook policy check FILE` has all errors")
    elif in_force is not None and in_force.get("status") != "True":
        yield warning(f"{where}: spec", f"never in force: {in_force.get('message')}", edited)


@check(
    "`kubectl apply -f deploy/base/rbac.yaml`; the finding names the file of an optional part",
    needs={Source.DEPLOYMENTS, Source.GROUPS, Source.RIGHTS},
)
def rights(cluster: Cluster) -> Iterator[Finding]:
    """The service account of the servers or of the certs controller lacks a right of its manifest.

    It is an error if the server has no view of the cluster without the permission.
    """
    lacking: dict[tuple[str, Role, bool, str], list[str]] = defaultdict(list)
    for each in cluster.rights:
        if not each.is_held:
            resource = f"{each.resource}.{each.group}" if each.group else each.resource
            shown = f"{resource} {each.name}" if each.name else resource
            lacking[each.account, each.role, each.is_required, each.verb].append(shown)
    for (account, role, is_required, verb), resources in lacking.items():
        what = f"may not {verb} {named(resources)}: {role.effect if is_required else role.optional_effect}"
        if verb == "list" and "namespaces" in resources and cluster.policies.selects_by_labels:
            what += "; a replica that starts stays unready, as policies select namespaces by their labels"
        found = error if is_required and role is not Role.CERTS else warning
        yield found(f"ServiceAccount {account}", what, commands.granted(cluster, role))


@check("upgrade the cluster, or the webhook", needs={Source.VERSION})
def release(cluster: Cluster) -> Iterator[Finding]:
    """The API server is older than 1.30, which ignores matchConditions, or its release is not modelled."""
    found = cluster.release
    if found is None:
        return
    if found.minor < _OLDEST_SUPPORTED:
        what = f"{found.version}: matchConditions are not stable before 1.{_OLDEST_SUPPORTED}, so all pods may be sent"
        yield error("the API server", what, "upgrade the cluster")
    elif found.note and "that is modelled" in found.note:
        yield info("the API server", found.note, "predictions can differ in what changed between the releases")


@check(
    "the log of the servers; without `--export-policy=on`, `kubectl replace --force -f` what `policy export` prints",
    needs={Source.DEPLOYMENTS, Source.POLICY, Source.VERSION, Source.EXPORTED},
)
def exported_policy(cluster: Cluster) -> Iterator[Finding]:
    """The exported policy is not the one in force, lacks an object, was edited, or the API server has no kind for it.

    Without `--export-policy=on`, objects that were applied by hand are checked in the same way.
    """
    release = cluster.release
    stored = {ObjectId.of(each): each for each in cluster.of(Source.EXPORTED) if is_exported(each)}
    if release is None or not cluster.knows(Source.EXPORTED) or not (stored or _is_kept(cluster)):
        return
    if cluster.unserved_kinds:
        yield _unserved(cluster, release)
        return
    objects = exported(cluster.policies, release.minor, cluster.target.namespace, cluster.configuration).objects
    wanted = {ObjectId.of(each): each for each in objects}
    remedy = _rewritten(cluster)
    for name, content in wanted.items():
        if name not in stored:
            without = "its policy has no effect" if name.kind.endswith("Binding") else "pods are not injected by it"
            yield error(str(name), f"missing: {without}", remedy)
        else:
            yield from _of_exported(name, content, stored[name], remedy)
    for name in stored.keys() - wanted.keys():
        deleted = commands.command("kubectl", "delete", PLURALS[name.kind], name.name)
        yield warning(str(name), "the policy in force does not give it, and the API server still applies it", deleted)


def _is_kept(cluster: Cluster) -> bool:
    """Return whether the servers are configured to keep the exported policy up to date."""
    return option(cluster.deployment or {}, "--export-policy") == "on"


def _of_exported(name: ObjectId, wanted: JsonObject, stored: JsonObject, remedy: str) -> Iterator[Finding]:
    known, found = identity_of(wanted), identity_of(stored)
    if known != found:
        yield warning(str(name), f"is of {found or 'no policy'}, and {known} is in force", remedy)
    elif (part := difference(wanted, stored)) is not None:
        place = "spec" if part is Difference.SPEC else "metadata"
        entries = sorted(listed(stored, "metadata", "managedFields"), key=lambda each: str(each.get("time")))
        last = f"; the last to write it was {entries[-1].get('manager')}" if entries else ""
        what = f"edited, or written by another version: differs from what {known} gives{last}"
        yield error(f"{name}: {place}", what, remedy)


def _rewritten(cluster: Cluster) -> str:
    if _is_kept(cluster):
        return f"the leader corrects it within a minute: {commands.servers(cluster, 'logs')} has the reason why not"
    replace = commands.command("kubectl", "replace", "--force", "-f", "FILE")
    return f"{replace}, with what `policy export` of placement-webhook prints in FILE"


def _unserved(cluster: Cluster, release: Release) -> Finding:
    what = f"{release.version} does not serve {named(sorted(cluster.unserved_kinds))}: nothing is injected by it"
    if release.minor < FIRST_BETA_MINOR:
        remedy = "upgrade the cluster to 1.36, or leave out --export-policy: then only the webhook injects"
    elif mutating_version(release.minor) == "v1":
        remedy = "remove these kinds from --runtime-config of kube-apiserver"
    else:
        remedy = f"start kube-apiserver with {_GATES}, or upgrade the cluster to 1.36"
    return error("the API server", what, remedy)
