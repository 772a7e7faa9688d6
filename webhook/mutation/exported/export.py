"""Export policies as objects that the API server itself evaluates."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from webhook.backends.kube_scheduler import Native
from webhook.kube.api.admission_policy import GROUP, MANAGER, mutating_version
from webhook.kube.names import MANAGED_BY_LABEL, is_dns_subdomain
from webhook.mutation.exported import denials
from webhook.mutation.exported.matching import condition, condition_of_denials, constraints
from webhook.mutation.exported.policy_objects import injection, mutations, reading
from webhook.mutation.exported.variables import Variable
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

JsonObject = dict[str, Any]
IDENTITY = "placement.maip.mxsf.io/policy"
"""The annotation of exported objects with name and revision of their policy."""

RELEASES = (37, 36, 35, 34)
"""The releases 1.N whose API server evaluates MutatingAdmissionPolicies, those before 1.36 as v1beta1."""
_STABLE = 36
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


LEFT_TO_WEBHOOK = (
    "the placement check, warnings, audit records and Events",
    "Namespaces and objects that create pods: only pods are mutated and denied",
    "the spreading of a pod whose owner has a KIND.NAME that is no label value, such as one of more than 63 characters",
    "the tolerations that are taken back from a pod template whose namespace has lost the right to them",
    "pods for which an expression would exceed the cost limits of the API server, such as one with thousands of terms",
    "under maxCardsPerPod, pods that request shares of several cards of KAI",
    "a gpu-memory of more than 8Pi that is no whole number of bytes",
)
"""The features that no exported policy covers."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The objects of policies, and the fields that they leave to the webhook."""

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
    twin = policies.with_name_of_default()
    for index, each in enumerate((*policies.others, policies.default)):
        reasons = list(_left_out(each, release))
        if each is policies.default and twin is not None:
            reasons.append(LeftOut(each.identity, "metadata.name", "another policy has the name of the default policy"))
        left_out += reasons
        if not reasons and each.spec.mode == "enforce" and each.spec.canary_percent > 0:
            objects += _objects(each, policies.others[:index], release, excluded)
    return Exported(objects, left_out)


def _left_out(policy: Policy, release: int) -> Iterator[LeftOut]:
    """Yield the fields that keep the whole policy from being exported."""
    if not is_dns_subdomain(name_of(policy)):
        yield LeftOut(policy.identity, "metadata.name", "is too long for the names of the exported objects")
    if policy.withheld is not None:
        yield LeftOut(policy.identity, "spec", policy.withheld.reason)
    if policy.spec.mode == "enforce" and 0 < policy.spec.canary_percent < _ALL:
        yield LeftOut(
            policy.identity, "spec.canaryPercent", "CEL has no hash, by which a canary selects the owners of pods"
        )
    labels = [f"{each.card}.{name}" for each in policy.spec.accelerators for name in ("product", "memory", "count")]
    for index, each in enumerate(policy.spec.accelerators):
        if each.driver_label in (policy.node_usage_key, *labels):
            reason = f"{each.driver_label} is a label of another requirement, too"
            yield LeftOut(policy.identity, f"spec.accelerators[{index}].driverLabel", reason)
    for name, settings in policy.spec.schedulers.items():
        if settings.backend == Native.name and release < _STABLE:
            reason = f"pods of release 1.{release} have no spec.schedulingGroup, which names the gang"
            yield LeftOut(policy.identity, f"spec.schedulers.{name}.backend", reason)


def _objects(
    policy: Policy, before: tuple[Policy, ...], release: int, excluded: tuple[str, ...]
) -> Iterator[JsonObject]:
    version = f"{GROUP}/{mutating_version(release)}"
    name, read = name_of(policy), [*reading(policy, before)]
    spec = {
        "matchConstraints": constraints(policy, before, excluded),
        "failurePolicy": "Ignore",
    }
    mutating = {
        **spec,
        "matchConditions": _match_conditions(condition(policy)),
        "reinvocationPolicy": "IfNeeded",
        "variables": _listed((*read, *injection(policy))),
        "mutations": mutations(policy),
    }
    yield _object(version, "MutatingAdmissionPolicy", policy, mutating)
    yield _object(version, "MutatingAdmissionPolicyBinding", policy, {"policyName": name})
    if policy.spec.invalid_annotations == "deny":
        validating = {
            **spec,
            "matchConditions": _match_conditions(condition_of_denials(policy)),
            "variables": _listed((*read, *denials.variables(policy))),
            "validations": denials.validations(),
        }
        yield _object(f"{GROUP}/v1", "ValidatingAdmissionPolicy", policy, validating)
        binding = {"policyName": name, "validationActions": ["Deny"]}
        yield _object(f"{GROUP}/v1", "ValidatingAdmissionPolicyBinding", policy, binding)


def _match_conditions(expression: str) -> list[JsonObject]:
    return [{"name": "may-request-placement", "expression": expression}]


def _listed(variables: Iterable[Variable]) -> list[JsonObject]:
    return [{"name": name, "expression": expression} for name, expression in variables]


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
