"""The permissions that the service accounts of the webhook need, by the arguments of the processes. Pure."""

import itertools
from collections.abc import Collection, Iterable, Iterator
from functools import partial

from certs.registration import Target
from placement_doctor.cluster import Cluster, Right, Role
from placement_doctor.workloads import controller_of, has_flag, secret_of
from webhook.cli.inputs.installed_servers import containers_of, follows_objects, option, options
from webhook.cluster.cache.resources import RESOURCES
from webhook.documents.documents import JsonObject, field
from webhook.kube.api.admission_policy import EXPORT_LEASE, EXPORT_OWNER, PLURALS
from webhook.kube.names import (
    KUEUE_CONFIGURATION,
    KUEUE_GROUP,
    KUEUE_NAMESPACE,
    VOLCANO_API_GROUP,
    VOLCANO_CONFIGURATION,
    VOLCANO_NAMESPACE,
)
from webhook.mutation.exported.export import name_of
from webhook.policy.spec.document import API_VERSION

_WRITES = ("on", "remove")
_ADMISSION, _CONFIGURATIONS = "admissionregistration.k8s.io", "mutatingwebhookconfigurations"


def rights_of(cluster: Cluster, groups: Collection[str]) -> Iterator[Right]:
    """Yield the permissions that servers and certs controller need in a cluster with these API groups.

    Servers need none if they do not read the cluster or do not use a service account.
    """
    servers, controller = cluster.deployment or {}, controller_of(cluster) or {}
    if has_flag(servers, "--in-cluster"):
        configuration = option(servers, "--webhook-configuration") or Target().configuration
        rights = [*needed_rights(groups, configuration, writes_events=not has_flag(servers, "--no-events"))]
        if follows_objects(servers):
            group = API_VERSION.partition("/")[0]
            rights += _rights(Role.POLICIES, group, "placementpolicies", "list watch")
            rights += _rights(Role.POLICIES, group, "placementpolicies/status", "patch", is_required=False)
        if option(servers, "--export-policy") in _WRITES:
            rights += _export_rights(cluster)
        yield from _of_account(cluster, servers, rights)
    if has_flag(controller, "--in-cluster"):
        yield from _of_account(cluster, controller, _controller_rights(cluster, controller))


def needed_rights(
    groups: Collection[str], configuration: str = Target().configuration, *, writes_events: bool = True
) -> Iterator[Right]:
    """Yield the permissions for the view. For CRDs, this requires that `groups` contains their API group.

    `configuration` is the MutatingWebhookConfiguration that the server reads.
    """
    # The pods are watched twice.
    resources = {(each.api_version.rpartition("/")[0], each.plural): each for each in RESOURCES}
    for (group, plural), each in resources.items():
        if group in groups or not each.is_extension:
            yield from _rights(Role.SERVER, group, plural, "list watch", is_required=each.is_required)
    optional = partial(_rights, Role.SERVER, is_required=False)
    yield from optional("coordination.k8s.io", "leases", "list")
    if KUEUE_GROUP in groups:
        yield from optional("", "configmaps", "get", KUEUE_CONFIGURATION, namespace=KUEUE_NAMESPACE)
    if VOLCANO_API_GROUP in groups:
        yield from optional("", "configmaps", "get", VOLCANO_CONFIGURATION, namespace=VOLCANO_NAMESPACE)
    yield from optional(_ADMISSION, _CONFIGURATIONS, "get", configuration)
    if writes_events:
        yield from optional("", "events", "create patch")
        yield from optional("apps", "replicasets", "get")


def _export_rights(cluster: Cluster) -> Iterator[Right]:
    """Yield the permissions of a server that keeps the exported policy up to date."""
    for plural in PLURALS.values():
        yield from _rights(Role.EXPORTED, _ADMISSION, plural, "list watch")
        yield from _rights(Role.EXPORTED, _ADMISSION, plural, "create patch delete", *map(name_of, cluster.policies))
    yield from _rights(Role.EXPORTED, "rbac.authorization.k8s.io", "clusterroles", "get", EXPORT_OWNER)
    lease = ("coordination.k8s.io", "leases", "get create patch", EXPORT_LEASE)
    yield from _rights(Role.EXPORTED, *lease, namespace=cluster.target.namespace)


def _controller_rights(cluster: Cluster, controller: JsonObject) -> Iterator[Right]:
    namespace = option(controller, "--namespace") or cluster.target.namespace
    yield from _rights(Role.CERTS, "", "secrets", "get watch create patch", secret_of(cluster), namespace=namespace)
    others = [name for each in containers_of(controller) for name in options(each, "--also-configuration")]
    verbs = "get watch patch create" if has_flag(controller, "--create-configuration") else "get watch patch"
    yield from _rights(Role.CERTS, _ADMISSION, _CONFIGURATIONS, verbs, cluster.target.configuration, *others)


def _rights(
    role: Role, group: str, resource: str, verbs: str, *names: str, is_required: bool = True, namespace: str = ""
) -> Iterator[Right]:
    """Yield a permission for each of `verbs`, separated by blanks, on each of `names`, or without names on all."""
    for name, verb in itertools.product(names or ("",), verbs.split()):
        yield Right(group, resource, verb, is_required, role=role, name=name, namespace=namespace)


def _of_account(cluster: Cluster, workload: JsonObject, rights: Iterable[Right]) -> Iterator[Right]:
    name = field(workload, "spec", "template", "spec", "serviceAccountName") or "default"
    namespace = field(workload, "metadata", "namespace") or cluster.target.namespace
    return (each._replace(account=f"{namespace}/{name}") for each in rights)


def access_review(right: Right) -> JsonObject:
    """Return the SubjectAccessReview for `right` and its service account."""
    namespace, _, account = right.account.partition("/")
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
