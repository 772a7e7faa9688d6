"""No ResourceQuota refuses packed pods because of their affinity across namespaces."""

from collections.abc import Iterator

from webhook.cluster.resource_quota import CROSS_NAMESPACE_SCOPE
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, named, warning
from webhook.doctor.installation import Installation, JsonObject, listed, name_of, texts
from webhook.doctor.sample_pods import types_of
from webhook.doctor.source import Source
from webhook.kube import quantity
from webhook.kube.documents import field

_COUNTS = ("pods", "count/pods")


@check(
    "cross-namespace-quotas",
    "A ResourceQuota of scope CrossNamespacePodAffinity refuses packed pods",
    "`binPacking.namespaces: same` in the policy, or a higher quota",
    Source.QUOTAS,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each quota without room whose namespace may use a type that packs pods of all namespaces.

    Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core/pods.go, usesCrossNamespacePodAffinity
    """
    for quota in installation.of(Source.QUOTAS):
        namespace = str(field(quota, "metadata", "namespace"))
        policy = installation.policy_of(namespace)
        if policy.spec.bin_packing.namespaces != "all":
            continue
        types = policy.spec.workload_types
        packing = [each for each in types_of(policy, namespace) if types[each].bin_packing]
        if packing and _scopes(quota) == {CROSS_NAMESPACE_SCOPE} and _is_full(quota):
            what = (
                f"has no room: pods of {named(packing)} are refused, because their packing hint selects all namespaces"
            )
            remedy = "set binPacking.namespaces: same in the policy, or raise the quota"
            yield warning(f"ResourceQuota {name_of(quota)}: spec.hard", what, remedy)


def _scopes(quota: JsonObject) -> set[str]:
    scopes = field(quota, "spec", "scopes")
    expressions = listed(quota, "spec", "scopeSelector", "matchExpressions")
    return {
        *(map(str, scopes) if isinstance(scopes, list) else ()),
        *(str(each.get("scopeName")) for each in expressions),
    }


def _is_full(quota: JsonObject) -> bool:
    """Return whether the quota has no room for one pod. Before its controller has seen it, the status is empty."""
    hard = texts(quota, "status", "hard") or texts(quota, "spec", "hard")
    used = texts(quota, "status", "used")
    return any(_number(hard[each]) <= _number(used.get(each, "0")) for each in _COUNTS if each in hard)


def _number(text: str) -> float:
    try:
        return quantity.value(text)
    except ValueError:
        return float("inf")
