"""Nothing in the namespace of the webhook keeps its pods from starting or from being called."""

from collections.abc import Iterable, Iterator
from typing import Any

from webhook.doctor import commands
from webhook.doctor.check import Finding, check, error, info, warning
from webhook.doctor.cluster import Cluster, JsonObject, listed, name_of, texts
from webhook.doctor.matching import selects_pods_of
from webhook.doctor.quotas import amount, is_full, priority_classes
from webhook.doctor.source import Source
from webhook.doctor.workloads import containers_of, has_flag
from webhook.documents.documents import field

_API_SERVER_PORTS = (443, 6443)


@check(
    "own-namespace",
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
    for each in _own(cluster, Source.QUOTAS):
        classes = priority_classes(each)
        if classes is not None and (not classes or used_class in classes) and is_full(each):
            what = "has no room for a further pod: a replica that is rolled out, evicted or lost is not created"
            raised = commands.kubectl(cluster, "edit", "resourcequota", str(field(each, "metadata", "name")))
            yield warning(f"ResourceQuota {name_of(each)}: spec.hard", what, f"{raised}: raise it")
    for each in _own(cluster, Source.LIMIT_RANGES):
        yield from _of_limit_range(cluster, servers, each)


def _own(cluster: Cluster, source: Source) -> Iterator[JsonObject]:
    return (each for each in cluster.of(source) if field(each, "metadata", "namespace") == cluster.target.namespace)


def _of_network_policies(cluster: Cluster, servers: JsonObject) -> Iterator[Finding]:
    """Yield a finding for each direction that the NetworkPolicies of the servers close.

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
        ports = _webhook_ports(servers)
        rules = [rule for each in ingress for rule in listed(each, "spec", "ingress") if _has_port(rule, ports)]
        if not rules:
            yield error(where, "no ingress rule has the port of the webhook, so API servers cannot call it", remedy)
        elif not any(_is_for_addresses(rule, "from") for rule in rules):
            what = "the webhook's port is open to selected pods alone, and API servers are mostly no pods"
            yield warning(where, what, remedy)
    egress = [each for each in selecting if "Egress" in _types(each)]
    if egress and has_flag(servers, "--in-cluster"):
        rules = [rule for each in egress for rule in listed(each, "spec", "egress")]
        if not any(_has_port(rule, _API_SERVER_PORTS) and _is_for_addresses(rule, "to") for rule in rules):
            what = "no egress rule has the port of API servers, so the servers have no view of the cluster"
            yield warning(where, what, remedy)


def _types(policy: JsonObject) -> list[str]:
    """Return the directions that a NetworkPolicy restricts, by default those that it has rules for, and Ingress."""
    given = field(policy, "spec", "policyTypes")
    if isinstance(given, list) and given:
        return [str(each) for each in given]
    return ["Ingress", *(["Egress"] if listed(policy, "spec", "egress") else [])]


def _webhook_ports(servers: JsonObject) -> tuple[Any, ...]:
    ports = [port for each in containers_of(servers) for port in listed(each, "ports") if port.get("name") == "https"]
    return ("https", *(port.get("containerPort") for port in ports))


def _has_port(rule: JsonObject, wanted: Iterable[Any]) -> bool:
    """Return whether a rule has one of the ports; a rule without ports has all."""
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
    """Yield what the API server does with the containers of the servers.

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
    if limit and request and amount(limit) < amount(request):
        return f"requests {request} of {resource}, and gets the limit {limit}"
    if most and limit and amount(limit) > amount(most):
        return f"has the limit {limit} of {resource}, above the maximum {most}"
    if least and request and amount(request) < amount(least):
        return f"requests {request} of {resource}, below the minimum {least}"
    return ""
