"""Export policies as objects that the API server evaluates itself."""

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.documents.documents import JsonObject
from webhook.kube.api.admission_policy import GROUP, MANAGER, mutating_version
from webhook.kube.names import MANAGED_BY_LABEL, is_dns_subdomain
from webhook.mutation.exported.matching import condition, constraints
from webhook.mutation.exported.mutations import injection, mutations
from webhook.mutation.exported.scheduling import may_undo_packing
from webhook.mutation.exported.variables import NOT_EXPORTED
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

IDENTITY = "placement.maip.mxsf.io/policy"
"""The annotation of exported objects with name and revision of their policy."""

RELEASES = (37, 36, 35, 34)
"""The releases 1.N whose API server evaluates MutatingAdmissionPolicies, those before 1.36 as v1beta1."""
_STABLE = 36
_EXCLUDED = ("kube-system", "placement-webhook", "placement-webhook-certs")
_ALL = 100


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A field of a policy that only the webhook applies, and the reason."""

    policy: str
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.policy}: {self.field}: {self.reason}"


_LEFT = ", ".join(each.attribute.replace("_", "-") for each in NOT_EXPORTED)
LEFT_TO_WEBHOOK = (
    "the placement check, denials, warnings, audit records and Events",
    "Namespaces and objects that create pods, with the tolerations that are taken back from pod templates",
    "pods with gpu-product whose accelerator has several labels for it (accelerators.labels.product)",
    "the annotation spread: the pod gets the rest, but no bin-packing",
    "the preferred node pools of a pod that prefers some itself",
    f"pods with {_LEFT}, also by default of their namespace, or with annotations of KAI for shares",
    "pods for which an expression would exceed the cost limits of the API server, such as one with thousands of terms",
)
"""The features that no exported policy covers."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The exported objects, the fields that prevent the export of whole policies, and the fields without effect."""

    objects: list[JsonObject]
    left_out: list[LeftOut]
    without_effect: list[LeftOut]


def export(policies: PolicySet, release: int = _STABLE, excluded: tuple[str, ...] = _EXCLUDED) -> Exported:
    """Return the objects for the release 1.`release`. They do not apply to the namespaces in `excluded`.

    A policy in shadow mode has no objects. A policy that cannot be exported has none either, and its namespaces are
    left to the webhook.
    """
    objects: list[JsonObject] = []
    left_out: list[LeftOut] = []
    without_effect: list[LeftOut] = []
    # A policy is in force where none of those before it selects the namespace; the default policy comes last.
    twin = policies.with_name_of_default()
    for index, each in enumerate((*policies.others, policies.default)):
        reasons = list(_left_out(each))
        if each is policies.default and twin is not None:
            reasons.append(LeftOut(each.identity, "metadata.name", "another policy has the name of the default policy"))
        left_out += reasons
        if not reasons and each.spec.mode == "enforce" and each.spec.canary_percent > 0:
            objects += _objects(each, policies.others[:index], release, excluded)
            without_effect += [LeftOut(each.identity, *found) for found in _without_effect(each)]
    return Exported(objects, left_out, without_effect)


def _left_out(policy: Policy) -> Iterator[LeftOut]:
    if not is_dns_subdomain(name_of(policy)):
        yield LeftOut(policy.identity, "metadata.name", "is too long for the names of the exported objects")
    if policy.withheld is not None:
        yield LeftOut(policy.identity, "spec", policy.withheld.reason)
    if policy.spec.mode == "enforce" and 0 < policy.spec.canary_percent < _ALL:
        yield LeftOut(
            policy.identity, "spec.canaryPercent", "CEL has no hash, by which a canary selects the owners of pods"
        )


def _without_effect(policy: Policy) -> Iterator[tuple[str, str]]:
    spec = policy.spec
    for name, each in spec.workload_types.items():
        field = f"spec.workloadTypes.{name}"
        if each.spread.topology is not None:
            packing = ", nor bin-packing unless the pod asks for it"
            is_undone = each.bin_packing and may_undo_packing(policy, each)
            yield f"{field}.spread", f"no spreading is exported{packing if is_undone else ''}"
        if each.within.topology is not None:
            yield f"{field}.within", "nothing that keeps the pods of a gang together is exported"
        if each.priority_class_name is not None:
            yield f"{field}.priorityClassName", "no PriorityClass is exported"
        if each.qos.class_ is not None:
            yield f"{field}.qos", "no QoS class is exported"
    if spec.allowed_products:
        yield "spec.allowedProducts", "no product is exported: pods with gpu-product are left to the webhook"
    if spec.namespace_limits:
        names = ", ".join(dict.fromkeys(name for each in spec.namespace_limits for name in each.namespaces))
        yield "spec.namespaceLimits", f"no limit is exported: pods in {names} are left to the webhook"
    if spec.invalid_annotations == "deny":
        yield "spec.invalidAnnotations", "no denial is exported: an invalid annotation is ignored"
    if spec.require_type == "deny":
        yield "spec.requireType", "no denial is exported: a pod without a type is left to the webhook"


def _objects(
    policy: Policy, before: tuple[Policy, ...], release: int, excluded: tuple[str, ...]
) -> Iterator[JsonObject]:
    version = f"{GROUP}/{mutating_version(release)}"
    spec = {
        "matchConstraints": constraints(policy, before, excluded),
        "matchConditions": [{"name": "may-request-placement", "expression": condition(policy)}],
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "IfNeeded",
        "variables": [{"name": name, "expression": value} for name, value in injection(policy, before)],
        "mutations": mutations(policy),
    }
    yield _object(version, "MutatingAdmissionPolicy", policy, spec)
    yield _object(version, "MutatingAdmissionPolicyBinding", policy, {"policyName": name_of(policy)})


def name_of(policy: Policy) -> str:
    """Return the name of the objects of a policy."""
    return f"placement-webhook.{policy.name}"


def _object(api_version: str, kind: str, policy: Policy, spec: JsonObject) -> JsonObject:
    metadata = {
        "name": name_of(policy),
        "labels": {
            MANAGED_BY_LABEL: MANAGER,
            "app.kubernetes.io/part-of": "placement-webhook",
        },
        "annotations": {IDENTITY: policy.identity},
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
