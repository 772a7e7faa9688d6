"""The rights that the service account of the webhook needs: those of deploy/base/rbac.yaml. Pure."""

from collections.abc import Collection, Iterator

from webhook.cluster.cache.resources import RESOURCES
from webhook.doctor.installation import JsonObject, Right

_READ = ("list", "watch")


def needed_rights(groups: Collection[str]) -> Iterator[Right]:
    """Yield the rights, those on CRDs only if `groups`, the API groups of the cluster, have them."""
    seen = set()
    for each in RESOURCES:
        group = each.api_version.rpartition("/")[0]
        if (group, each.plural) in seen or (each.is_extension and group not in groups):
            continue
        seen.add((group, each.plural))
        yield from (Right(group, each.plural, verb, each.is_required) for verb in _READ)
    yield Right("coordination.k8s.io", "leases", "list", False)
    yield from (Right("", "events", verb, False) for verb in ("create", "patch"))
    yield Right("apps", "replicasets", "get", False)


def access_review(right: Right, namespace: str, account: str) -> JsonObject:
    """Return the SubjectAccessReview that asks for `right` of a service account in the whole cluster."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    wanted = {"group": right.group, "resource": right.resource, "verb": right.verb}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{account}",
            "groups": groups,
            "resourceAttributes": wanted,
        },
    }
