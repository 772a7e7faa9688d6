"""Whitelists, quotas, LimitRanges and NetworkPolicies do not reject injected fields or the webhook's own pods."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import orjson

from placement_doctor import commands
from placement_doctor.check import Finding, check, error, info, named, warning
from placement_doctor.cluster import Cluster, name_of
from placement_doctor.matching import selects_pods_of
from placement_doctor.sample_pods import judge, named_resource, sample_pod, types_of
from placement_doctor.source import Source
from placement_doctor.workloads import has_flag
from webhook.cli.inputs.installed_servers import containers_of
from webhook.cluster.objects.resource_quota import CROSS_NAMESPACE_SCOPE
from webhook.documents.documents import JsonObject, field
from webhook.documents.parts import listed, texts
from webhook.kube import quantity
from webhook.kube.pod.taints import covers

_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_API_SERVER_PORTS = (443, 6443)
_POD_COUNTS = ("pods", "count/pods")
_PRIORITY_CLASS = "PriorityClass"


@check(
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


@check("`binPacking.namespaces: same` in the policy, or a higher quota", needs={Source.QUOTAS, Source.POLICY})
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
    given = field(quota, "spec", "scopes")
    found = {str(each.get("scopeName")) for each in listed(quota, "spec", "scopeSelector", "matchExpressions")}
    return found | set(map(str, given if isinstance(given, list) else ()))


def _is_full(quota: JsonObject) -> bool:
    """Return whether a quota has no room for another pod. Until its controller sets the status, the spec is used.

    Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core/pods.go
    """
    hard = texts(quota, "status", "hard") or texts(quota, "spec", "hard")
    used = texts(quota, "status", "used")
    return any(_amount(hard[each]) <= _amount(used.get(each, "0")) for each in _POD_COUNTS if each in hard)


def _amount(text: str) -> float:
    """Return a quantity in thousandths, or infinity if it is malformed."""
    try:
        return quantity.milli_value(text)
    except ValueError:
        return float("inf")


@check(
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
                given = [each for each, held in texts(item, name).items() if _amount(held) > 0]
                cards = [each for each in given if any(fnmatchcase(each, pattern) for pattern in patterns)]
                if cards:
                    what = f"each container without {named(cards)} gets it, sidecars too, and needs a node with a card"
                    own = str(field(limits, "metadata", "name"))
                    edited = commands.command("kubectl", "-n", namespace, "edit", "limitrange", own)
                    where = f"LimitRange {name_of(limits)}: spec.limits[{index}].{name}"
                    yield warning(where, what, f"{edited}: remove it there")


@check(
    "correct the object; deploy/base has a NetworkPolicy and a ResourceQuota that fit",
    needs={
        *(Source.CONFIGURATIONS, Source.SERVICE, Source.DEPLOYMENTS),
        *(Source.NETWORK_POLICIES, Source.QUOTAS, Source.LIMIT_RANGES),
    },
)
def own_namespace(cluster: Cluster) -> Iterator[Finding]:
    """A NetworkPolicy, ResourceQuota or LimitRange of the webhook's namespace stops calls of servers or new ones."""
    servers = cluster.deployment
    if servers is None:
        return
    yield from _of_network_policies(cluster, servers)
    used_class = str(field(servers, "spec", "template", "spec", "priorityClassName") or "")
    for each in cluster.own(Source.QUOTAS):
        expressions = listed(each, "spec", "scopeSelector", "matchExpressions")
        classes = {str(value) for some in expressions for value in some.get("values") or ()}
        # Another scope than the PriorityClass can leave out the pods of the webhook.
        if _scopes(each) <= {_PRIORITY_CLASS} and (not classes or used_class in classes) and _is_full(each):
            what = "has no room for a further pod: a replica that is rolled out, evicted or lost is not created"
            raised = commands.kubectl(cluster, "edit", "resourcequota", str(field(each, "metadata", "name")))
            yield warning(f"ResourceQuota {name_of(each)}: spec.hard", what, f"{raised}: raise it")
    for each in cluster.own(Source.LIMIT_RANGES):
        yield from _of_limit_range(cluster, servers, each)


def _of_network_policies(cluster: Cluster, servers: JsonObject) -> Iterator[Finding]:
    """Yield a finding for each traffic direction that NetworkPolicies block for the servers.

    Source: k8s.io/api/networking/v1/types.go
    """
    selecting = [
        each
        for each in cluster.of(Source.NETWORK_POLICIES)
        if selects_pods_of(field(each, "spec", "podSelector") or {}, servers)
    ]
    where = "NetworkPolicies " + ", ".join(map(name_of, selecting))
    applied = commands.kubectl(cluster, "apply", "-f", "deploy/base/networkpolicy.yaml")
    remedy = f"{applied} adds the rules" if commands.release_of(cluster) is None else commands.applied_again(cluster)
    if ingress := [each for each in selecting if "Ingress" in _types(each)]:
        own = [each for container in containers_of(servers) for each in listed(container, "ports")]
        ports = ["https", *(each.get("containerPort") for each in own if each.get("name") == "https")]
        rules = [rule for each in ingress for rule in listed(each, "spec", "ingress") if _has_port(rule, ports)]
        if not rules:
            yield error(where, "no ingress rule has the port of the webhook, so API servers cannot call it", remedy)
        elif not any(_is_for_addresses(rule, "from") for rule in rules):
            what = "the webhook's port is open only to selected pods, but most API servers do not run as pods"
            yield warning(where, what, remedy)
    egress = [each for each in selecting if "Egress" in _types(each)]
    if egress and has_flag(servers, "--in-cluster"):
        rules = [rule for each in egress for rule in listed(each, "spec", "egress")]
        if not any(_has_port(rule, _API_SERVER_PORTS) and _is_for_addresses(rule, "to") for rule in rules):
            what = "no egress rule has the port of API servers, so the servers have no view of the cluster"
            yield warning(where, what, remedy)


def _types(policy: JsonObject) -> list[str]:
    """Return the directions that a NetworkPolicy restricts. The default is Ingress, and Egress if it has rules."""
    given = field(policy, "spec", "policyTypes")
    if isinstance(given, list) and given:
        return [str(each) for each in given]
    return ["Ingress", *(["Egress"] if listed(policy, "spec", "egress") else [])]


def _has_port(rule: JsonObject, wanted: Iterable[Any]) -> bool:
    """Return whether a rule allows one of the `wanted` ports. A rule without ports allows all."""
    ports = listed(rule, "ports")
    for each in ports:
        first, last = each.get("port"), each.get("endPort")
        numbers = range(first, last + 1) if isinstance(first, int) and isinstance(last, int) else ()
        if first is None or any(port == first or port in numbers for port in wanted if port):
            return True
    return not ports


def _is_for_addresses(rule: JsonObject, peers: str) -> bool:
    found = listed(rule, peers)
    return not found or any("ipBlock" in each for each in found)


def _of_limit_range(cluster: Cluster, servers: JsonObject, limits: JsonObject) -> Iterator[Finding]:
    """Yield findings about containers of the servers that a LimitRange changes or makes the API server reject.

    Source: k8s.io/kubernetes/plugin/pkg/admission/limitranger/admission.go, PodValidateLimitFunc
    """
    edited = commands.kubectl(cluster, "edit", "limitrange", str(field(limits, "metadata", "name")))
    for index, item in enumerate(listed(limits, "spec", "limits")):
        where = f"LimitRange {name_of(limits)}: spec.limits[{index}]"
        for container in containers_of(servers) if item.get("type") == "Container" else ():
            for resource in ("cpu", "memory"):
                if reason := _refusal(container, item, resource):
                    what = f"new replicas are refused: container {container.get('name')} {reason}"
                    yield error(where, what, f"{edited}, or the resources of the container")
            given = texts(container, "resources", "limits")
            if "cpu" in texts(item, "default") and "cpu" not in given:
                what = f"gives container {container.get('name')} a CPU limit, which throttles admissions"
                yield info(f"{where}.default", what, f"{edited}, or set a limit that is large enough")


def _refusal(container: JsonObject, item: JsonObject, resource: str) -> str:
    limits = texts(container, "resources", "limits")
    requests = texts(container, "resources", "requests")
    most, least = texts(item, "max").get(resource), texts(item, "min").get(resource)
    limit = limits.get(resource) or texts(item, "default").get(resource) or most
    request = requests.get(resource) or limits.get(resource) or texts(item, "defaultRequest").get(resource)
    if limit and request and _amount(limit) < _amount(request):
        return f"requests {request} of {resource}, and gets the limit {limit}"
    if most and limit and _amount(limit) > _amount(most):
        return f"has the limit {limit} of {resource}, above the maximum {most}"
    if least and request and _amount(request) < _amount(least):
        return f"requests {request} of {resource}, below the minimum {least}"
    return ""
