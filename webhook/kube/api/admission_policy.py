"""MutatingAdmissionPolicies and their bindings, as the API server stores them. Pure."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from webhook.documents.documents import JsonObject, field
from webhook.kube.names import MANAGED_BY_LABEL

GROUP = "admissionregistration.k8s.io"
PLURALS: Mapping[str, str] = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
"""The kinds, in the order in which they are created: a policy has no effect without its binding."""

EXPORT_LEASE = "placement-webhook-export"
"""The Lease of the replica that keeps the exported policy in step."""
EXPORT_OWNER = "placement-webhook-exported"
"""The ClusterRole that owns what the exported policy consists of."""

MANAGER = "placement-webhook"
"""The value of the label `app.kubernetes.io/managed-by`, by which the exported objects are found."""

FIRST_BETA_MINOR = 34
"""The first release 1.N with MutatingAdmissionPolicies that are exported."""
_FIRST_STABLE_MINOR = 36


def mutating_version(minor: int) -> str:
    """Return the version of MutatingAdmissionPolicies in the release 1.`minor`.

    The API server of 1.34 and 1.35 serves v1beta1 only with its feature gate and `--runtime-config`.
    Source: KEP-3962
    """
    return "v1" if minor >= _FIRST_STABLE_MINOR else "v1beta1"


class ObjectId(NamedTuple):
    """The kind and name of a cluster-scoped object."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @classmethod
    def of(cls, content: JsonObject) -> "ObjectId":
        """Return the kind and name of `content`."""
        return cls(str(content["kind"]), str(content["metadata"]["name"]))


def path_of(content: JsonObject) -> str:
    """Return the path of the object on the API server."""
    return f"/apis/{content['apiVersion']}/{PLURALS[content['kind']]}/{content['metadata']['name']}"


def is_exported(content: JsonObject) -> bool:
    """Return whether the object has the label of the exporter."""
    return bool(field(content, "metadata", "labels", MANAGED_BY_LABEL) == MANAGER)


class Difference(Enum):
    """The part of a stored object that differs from the wanted one."""

    METADATA = "metadata"
    SPEC = "spec"


def difference(wanted: JsonObject, stored: JsonObject) -> Difference | None:
    """Return the part of `stored` that differs from `wanted`, or None if they are equal.

    Additional labels, annotations and owners are ignored. In the spec, only the defaults of the API server are ignored,
    so an additional field counts as a difference.
    """
    if _with_defaults(wanted["spec"]) != _without_empty(stored.get("spec") or {}):
        return Difference.SPEC
    metadata = wanted["metadata"]
    for key in ("labels", "annotations"):
        found = field(stored, "metadata", key) or {}
        if any(found.get(name) != value for name, value in (metadata.get(key) or {}).items()):
            return Difference.METADATA
    owners = field(stored, "metadata", "ownerReferences") or []
    return None if all(each in owners for each in metadata.get("ownerReferences") or ()) else Difference.METADATA


def _with_defaults(spec: JsonObject) -> JsonObject:
    """Return `spec` as the API server stores it.

    Source: k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go
    """
    found = dict(spec)
    # Only bindings name a policy, and only policies fail.
    if "policyName" not in spec:
        found.setdefault("failurePolicy", "Fail")
    for key in ("matchConstraints", "matchResources"):
        if key in spec:
            match = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}, **spec[key]}
            names = [each for each in ("resourceRules", "excludeResourceRules") if each in match]
            found[key] = match | {each: [{"scope": "*", **rule} for rule in match[each]] for each in names}
    kept: JsonObject = _without_empty(found)
    return kept


def _without_empty(value: Any) -> Any:
    """Return `value` without empty lists and nulls, which the API server does not store."""
    if isinstance(value, dict):
        return {key: _without_empty(each) for key, each in value.items() if each is not None and each != []}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


class Changes(NamedTuple):
    """The changes that make the stored objects equal to the wanted ones, in order: objects to write, then to remove."""

    written: tuple[tuple[JsonObject, JsonObject | None], ...]
    removed: tuple[JsonObject, ...]

    def __bool__(self) -> bool:
        return bool(self.written or self.removed)


def changes(wanted: Iterable[JsonObject], stored: Mapping[ObjectId, JsonObject]) -> Changes:
    """Return wanted objects with the differing stored one or None, and objects of the exporter to remove."""
    order = list(PLURALS)
    by_id = {ObjectId.of(each): each for each in sorted(wanted, key=lambda each: order.index(each["kind"]))}
    written = [
        (content, stored.get(name))
        for name, content in by_id.items()
        if name not in stored or difference(content, stored[name]) is not None
    ]
    # Bindings first: a policy without one has no effect.
    superfluous = sorted(stored.keys() - by_id.keys(), key=lambda each: (-order.index(each.kind), each.name))
    return Changes(tuple(written), tuple(stored[each] for each in superfluous))
