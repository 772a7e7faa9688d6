"""Whitelists and quotas of namespaces do not refuse what is injected."""

from collections.abc import Iterator

import orjson

from webhook.cluster.objects.resource_quota import CROSS_NAMESPACE_SCOPE
from webhook.doctor import commands
from webhook.doctor.check import Finding, check, named, warning
from webhook.doctor.cluster import Cluster, JsonObject, listed, name_of, texts
from webhook.doctor.sample_pods import judge, named_resource, sample_pod, types_of
from webhook.doctor.source import Source
from webhook.documents.documents import field
from webhook.kube import quantity
from webhook.kube.pod.taints import covers

_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_COUNTS = ("pods", "count/pods")


@check(
    "tolerations-whitelist",
    "add the injected tolerations to the annotation `scheduler.alpha.kubernetes.io/tolerationsWhitelist`",
    needs={Source.NAMESPACES, Source.POLICY},
)
def tolerations_whitelist(cluster: Cluster) -> Iterator[Finding]:
    """The whitelist of a namespace (admission plugin PodTolerationRestriction) refuses the injected tolerations.

    The plugin is off by default, but the annotation has no other use. The whitelist of the cluster is in the
    configuration of API servers, which cannot be read.

    Source: k8s.io/kubernetes/plugin/pkg/admission/podtolerationrestriction/admission.go
    """
    for namespace in cluster.of(Source.NAMESPACES):
        text = texts(namespace, "metadata", "annotations").get(_WHITELIST)
        if not text:
            continue
        name = name_of(namespace)
        where = f"Namespace {name}: metadata.annotations[{_WHITELIST}]"
        allowed = _parsed(text)
        if allowed is None:
            removed = commands.command("kubectl", "annotate", "namespace", name, f"{_WHITELIST}-")
            what = "is no list of tolerations, so the plugin refuses all pods"
            yield warning(where, what, f"{removed}, or correct it")
        elif allowed and (refused := _refused(cluster, name, allowed)):
            missing = {_shown(each): each for tolerations in refused.values() for each in tolerations}
            what = f"refuses pods of {named(refused)} with 403: it does not cover {named(missing, 4)}"
            text = orjson.dumps([*allowed, *missing.values()]).decode()
            wider = commands.command("kubectl", "annotate", "--overwrite", "namespace", name, f"{_WHITELIST}={text}")
            yield warning(where, what, f"{wider} adds them")


def _parsed(text: str) -> list[JsonObject] | None:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, list) and all(isinstance(each, dict) for each in found) else None


def _refused(cluster: Cluster, namespace: str, allowed: list[JsonObject]) -> dict[str, list[JsonObject]]:
    """Return the tolerations that are not allowed, by workload type."""
    found: dict[str, list[JsonObject]] = {}
    policy = cluster.policy_of(namespace)
    for name in types_of(policy, namespace):
        judged = judge(sample_pod(policy, name, named_resource(policy)), namespace, policy)
        tolerations = listed(judged.pod or {}, "spec", "tolerations")
        missing = [each for each in tolerations if not any(covers(wide, each) for wide in allowed)]
        if missing:
            found[name] = missing
    return found


def _shown(toleration: JsonObject) -> str:
    value = f"={toleration['value']}" if toleration.get("value") else ""
    return f"{toleration.get('key', '')}{value}:{toleration.get('effect', '')}"


@check(
    "cross-namespace-quotas",
    "`binPacking.namespaces: same` in the policy, or a higher quota",
    needs={Source.QUOTAS, Source.POLICY},
)
def cross_namespace_quotas(cluster: Cluster) -> Iterator[Finding]:
    """A ResourceQuota of scope CrossNamespacePodAffinity refuses packed pods.

    Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core/pods.go, usesCrossNamespacePodAffinity
    """
    for quota in cluster.of(Source.QUOTAS):
        namespace = str(field(quota, "metadata", "namespace"))
        policy = cluster.policy_of(namespace)
        types = policy.spec.workload_types
        packing = [each for each in types_of(policy, namespace) if types[each].bin_packing]
        packs_all = packing and policy.spec.bin_packing.namespaces == "all"
        if packs_all and _scopes(quota) == {CROSS_NAMESPACE_SCOPE} and _is_full(quota):
            refused = f"pods of {named(packing)} are refused, because their packing hint selects all namespaces"
            remedy = "set binPacking.namespaces: same in the policy, or raise the quota"
            yield warning(f"ResourceQuota {name_of(quota)}: spec.hard", f"has no room: {refused}", remedy)


def _scopes(quota: JsonObject) -> set[str]:
    scopes = field(quota, "spec", "scopes")
    expressions = listed(quota, "spec", "scopeSelector", "matchExpressions")
    found = {str(each.get("scopeName")) for each in expressions}
    return found | set(map(str, scopes if isinstance(scopes, list) else ()))


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
