"""Export policies as objects that the API server itself evaluates."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from webhook.mutation.exported import denials
from webhook.mutation.exported.matching import condition, constraints
from webhook.mutation.exported.policy_objects import injection, mutations, reading
from webhook.mutation.exported.variables import Variable
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

JsonObject = dict[str, Any]
MANAGED_BY = "placement-webhook"
_GROUP = "admissionregistration.k8s.io"
# The first release 1.N with MutatingAdmissionPolicies, and the first that has them as v1.
OLDEST, _STABLE = 34, 36
_EXCLUDED = ("kube-system", "placement-webhook", "placement-webhook-certs")
_ALL = 100


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A field of a policy that is left to the webhook, and why."""

    policy: str
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.policy}: {self.field}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Exported:
    """The objects of policies, and what they leave to the webhook."""

    objects: list[JsonObject]
    left_out: list[LeftOut]


def export(policies: PolicySet, release: int = _STABLE, excluded: tuple[str, ...] = _EXCLUDED) -> Exported:
    """Return the objects for the release 1.`release`; the namespaces in `excluded` are left alone.

    A policy in shadow mode has none. One that cannot be exported has none either, and its namespaces are left to the
    webhook.
    """
    objects: list[JsonObject] = []
    left_out: list[LeftOut] = []
    # A policy is in force where none of those before it selects the namespace; the default policy comes last.
    for index, each in enumerate((*policies.others, policies.default)):
        reasons = list(_left_out(each))
        left_out += reasons
        if not reasons and _is_enforced(each):
            objects += _objects(each, policies.others[:index], release, excluded)
    return Exported(objects, left_out)


def _is_enforced(policy: Policy) -> bool:
    return policy.spec.mode == "enforce" and policy.spec.canary_percent > 0


def _left_out(policy: Policy) -> Iterator[LeftOut]:
    """Yield the fields for which nothing of the policy can be exported."""
    if policy.spec.mode == "enforce" and 0 < policy.spec.canary_percent < _ALL:
        yield LeftOut(policy.identity, "spec.canaryPercent", "CEL has no hash, which selects the owners of pods")


def _objects(
    policy: Policy, before: tuple[Policy, ...], release: int, excluded: tuple[str, ...]
) -> Iterator[JsonObject]:
    version = "v1" if release >= _STABLE else "v1beta1"
    name, read = name_of(policy), [*reading(policy, before)]
    spec = {
        "matchConstraints": constraints(policy, before, excluded),
        "matchConditions": [{"name": "may-request-placement", "expression": condition(policy)}],
        "failurePolicy": "Ignore",
    }
    mutating = {
        **spec,
        "reinvocationPolicy": "IfNeeded",
        "variables": _listed((*read, *injection(policy))),
        "mutations": mutations(policy),
    }
    yield _object(f"{_GROUP}/{version}", "MutatingAdmissionPolicy", policy, mutating)
    yield _object(f"{_GROUP}/{version}", "MutatingAdmissionPolicyBinding", policy, {"policyName": name})
    if policy.spec.invalid_annotations == "deny":
        validating = {**spec, "variables": _listed((*read, *denials.variables(policy))), "validations": denials.validations()}
        yield _object(f"{_GROUP}/v1", "ValidatingAdmissionPolicy", policy, validating)
        binding = {"policyName": name, "validationActions": ["Deny"]}
        yield _object(f"{_GROUP}/v1", "ValidatingAdmissionPolicyBinding", policy, binding)


def _listed(variables: Iterable[Variable]) -> list[JsonObject]:
    return [{"name": name, "expression": expression} for name, expression in variables]


def name_of(policy: Policy) -> str:
    """Return the name of the objects of a policy."""
    return f"placement-webhook.{policy.name}"


def _object(api_version: str, kind: str, policy: Policy, spec: JsonObject) -> JsonObject:
    metadata = {
        "name": name_of(policy),
        "labels": {
            "app.kubernetes.io/managed-by": MANAGED_BY,
            "app.kubernetes.io/part-of": "placement-webhook",
        },
        "annotations": {"placement.maip.mxsf.io/policy": policy.identity},
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
