"""The rights that the service accounts of the webhook need: those of the manifests, as far as arguments ask. Pure."""

import itertools
from collections.abc import Collection, Iterable, Iterator
from functools import partial

from certs.registration import Target
from webhook.cluster.cache.resources import RESOURCES
from webhook.doctor.cluster import Cluster, JsonObject, Right, Role
from webhook.doctor.workloads import containers_of, controller_of, follows_objects, has_flag, option, options, secret_of
from webhook.documents.documents import field
from webhook.kube.api.admission_policy import EXPORT_LEASE, PLURALS
from webhook.kube.names import KUEUE_CONFIGURATION, KUEUE_GROUP, KUEUE_NAMESPACE
from webhook.mutation.exported.export import name_of
from webhook.policy.spec.document import API_VERSION

_READ = ("list", "watch")
_WRITES = ("on", "remove")
_ADMISSION, _CONFIGURATIONS = "admissionregistration.k8s.io", "mutatingwebhookconfigurations"


def rights_of(cluster: Cluster, groups: Collection[str]) -> Iterator[Right]:
    """Yield the rights that servers and certs controller need in a cluster with these API groups.

    Servers need none if they do not read the cluster, or not with a service account.
    """
    servers, controller = cluster.deployment or {}, controller_of(cluster) or {}
    if has_flag(servers, "--in-cluster"):
        configuration = option(servers, "--webhook-configuration") or Target().configuration
        rights = [*needed_rights(groups, configuration, writes_events=not has_flag(servers, "--no-events"))]
        rights += policy_rights() if follows_objects(servers) else ()
        if option(servers, "--export-policy") in _WRITES:
            rights += _export_rights(cluster, option(servers, "--export-owner"))
        yield from _of_account(cluster, servers, rights)
    if has_flag(controller, "--in-cluster"):
        yield from _of_account(cluster, controller, _controller_rights(cluster, controller))


def needed_rights(
    groups: Collection[str], configuration: str = Target().configuration, *, writes_events: bool = True
) -> Iterator[Right]:
    """Yield the rights of the view, those on CRDs only if `groups`, the API groups of the cluster, have them.

    `configuration` is the MutatingWebhookConfiguration that the server reads.
    """
    seen = set()
    for each in RESOURCES:
        group = each.api_version.rpartition("/")[0]
        if (group, each.plural) in seen or (each.is_extension and group not in groups):
            continue
        seen.add((group, each.plural))
        yield from (Right(group, each.plural, verb, each.is_required) for verb in _READ)
    yield Right("coordination.k8s.io", "leases", "list", False)
    if KUEUE_GROUP in groups:
        yield Right("", "configmaps", "get", False, name=KUEUE_CONFIGURATION, namespace=KUEUE_NAMESPACE)
    yield Right(_ADMISSION, _CONFIGURATIONS, "get", False, name=configuration)
    if writes_events:
        yield from (Right("", "events", verb, False) for verb in ("create", "patch"))
        yield Right("apps", "replicasets", "get", False)


def policy_rights() -> Iterator[Right]:
    """Yield the rights of a server that follows PlacementPolicy objects."""
    group = API_VERSION.partition("/")[0]
    yield from (Right(group, "placementpolicies", verb, True, role=Role.POLICIES) for verb in _READ)
    yield Right(group, "placementpolicies/status", "patch", False, role=Role.POLICIES)


def _export_rights(cluster: Cluster, owner: str | None) -> Iterator[Right]:
    """Yield the rights of a server that keeps the exported policy in step."""
    required = partial(Right, is_required=True, role=Role.EXPORTED)
    for plural in PLURALS.values():
        yield from (required(_ADMISSION, plural, verb) for verb in _READ)
    names = [name_of(each) for each in cluster.policies]
    for plural, name, verb in itertools.product(PLURALS.values(), names, ("create", "patch", "delete")):
        yield required(_ADMISSION, plural, verb, name=name)
    if owner:
        yield required("rbac.authorization.k8s.io", "clusterroles", "get", name=owner)
    namespace = cluster.target.namespace
    for verb in ("get", "create", "patch"):
        yield required("coordination.k8s.io", "leases", verb, name=EXPORT_LEASE, namespace=namespace)


def _controller_rights(cluster: Cluster, controller: JsonObject) -> Iterator[Right]:
    creates = ("create",) if has_flag(controller, "--create-configuration") else ()
    namespace = option(controller, "--namespace") or cluster.target.namespace
    for verb in ("get", "watch", "create", "patch"):
        yield Right("", "secrets", verb, True, role=Role.CERTS, name=secret_of(cluster), namespace=namespace)
    others = [name for each in containers_of(controller) for name in options(each, "--also-configuration")]
    for name in (cluster.target.configuration, *others):
        for verb in ("get", "watch", "patch", *creates):
            yield Right(_ADMISSION, _CONFIGURATIONS, verb, True, role=Role.CERTS, name=name)


def _of_account(cluster: Cluster, workload: JsonObject, rights: Iterable[Right]) -> Iterator[Right]:
    name = field(workload, "spec", "template", "spec", "serviceAccountName") or "default"
    namespace = field(workload, "metadata", "namespace") or cluster.target.namespace
    return (each._replace(account=f"{namespace}/{name}") for each in rights)


def access_review(right: Right, namespace: str, account: str) -> JsonObject:
    """Return the SubjectAccessReview that asks for `right` of a service account."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    resource, _, subresource = right.resource.partition("/")
    wanted = {"group": right.group, "resource": resource, "verb": right.verb}
    of_one = {"subresource": subresource, "name": right.name, "namespace": right.namespace}
    attributes = wanted | {key: value for key, value in of_one.items() if value}
    user = f"system:serviceaccount:{namespace}:{account}"
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": attributes},
    }
