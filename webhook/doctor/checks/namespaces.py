"""Whitelists and quotas of namespaces do not refuse what is injected."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

import orjson

from webhook.cluster.objects.resource_quota import CROSS_NAMESPACE_SCOPE
from webhook.doctor import commands
from webhook.doctor.check import Finding, check, named, warning
from webhook.doctor.cluster import Cluster, JsonObject, listed, name_of, texts
from webhook.doctor.quotas import amount, is_full, scopes
from webhook.doctor.sample_pods import judge, named_resource, sample_pod, types_of
from webhook.doctor.source import Source
from webhook.documents.documents import field
from webhook.kube.pod.taints import covers

_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"


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
        if packs_all and scopes(quota) == {CROSS_NAMESPACE_SCOPE} and is_full(quota):
            refused = f"pods of {named(packing)} are refused, because their packing hint selects all namespaces"
            remedy = "set binPacking.namespaces: same in the policy, or raise the quota"
            yield warning(f"ResourceQuota {name_of(quota)}: spec.hard", f"has no room: {refused}", remedy)


@check(
    "gpu-defaults",
    "remove the resource from `default` and `defaultRequest` of the LimitRange",
    needs={Source.LIMIT_RANGES, Source.POLICY},
)
def gpu_defaults(cluster: Cluster) -> Iterator[Finding]:
    """A LimitRange gives every container of a namespace accelerators that it does not ask for."""
    for limits in cluster.of(Source.LIMIT_RANGES):
        namespace = str(field(limits, "metadata", "namespace"))
        patterns = [each for some in cluster.policy_of(namespace).spec.accelerators for each in some.resources]
        for index, item in enumerate(listed(limits, "spec", "limits")):
            for name in ("default", "defaultRequest"):
                given = [each for each, held in texts(item, name).items() if amount(held) > 0]
                cards = [each for each in given if any(fnmatchcase(each, pattern) for pattern in patterns)]
                if cards:
                    what = f"each container without {named(cards)} gets it, sidecars too, and needs a node with a card"
                    edited = commands.command("kubectl", "-n", namespace, "edit", "limitrange", _own_name(limits))
                    where = f"LimitRange {name_of(limits)}: spec.limits[{index}].{name}"
                    yield warning(where, what, f"{edited}: remove it there")


def _own_name(content: JsonObject) -> str:
    return str(field(content, "metadata", "name"))
