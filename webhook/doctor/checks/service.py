"""The Service exists, has the port of the webhooks, and ready endpoints."""

from collections.abc import Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.endpoints import ready_addresses
from webhook.doctor.finding import Fault, error, warning
from webhook.doctor.installation import Installation, JsonObject, listed
from webhook.doctor.source import Source
from webhook.kube.documents import field

_HTTPS = 443


@check(
    "service",
    "The Service is missing, has no ready endpoints, or another port than the webhooks",
    "`kubectl -n NAMESPACE get service,endpointslices,pods`; apply the manifests of deploy/ again",
    Source.CONFIGURATIONS,
    Source.SERVICE,
    Source.ENDPOINTS,
    Source.DEPLOYMENTS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each way in which API servers find no server behind the Service."""
    if not (installation.is_called_by_service and installation.knows(Source.SERVICE)):
        return
    target, service = installation.target, installation.service
    where = f"Service {target.namespace}/{target.service}"
    if service is None:
        yield error(where, "does not exist, and API servers call it", commands.applied_again(installation))
        return
    yield from _other_names(installation)
    yield from _ports(installation, where, service)
    if field(service, "spec", "type") == "ExternalName" or not installation.knows(Source.ENDPOINTS):
        return
    ready = ready_addresses(installation.of(Source.ENDPOINTS))
    if not ready:
        yield error(
            where,
            "has no ready endpoints, so every call fails",
            f"{commands.servers(installation, 'describe')} has the events; the selector must match its labels",
        )


def _other_names(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each webhook that calls another Service than the first."""
    target = installation.target
    for index, webhook in enumerate(installation.webhooks):
        called = field(webhook, "clientConfig", "service")
        if not isinstance(called, dict):
            continue
        name = (called.get("namespace"), called.get("name"))
        if name != (target.namespace, target.service):
            where = f"{installation.place}: webhooks[{index}].clientConfig.service"
            what = f"calls {name[0]}/{name[1]}, not {target.namespace}/{target.service}"
            yield warning(where, what, "let all webhooks call one Service, or name it with --namespace and --service")


def _ports(installation: Installation, where: str, service: JsonObject) -> Iterator[Fault]:
    ports = {each.get("port"): each for each in listed(service, "spec", "ports")}
    wanted = {
        field(each, "clientConfig", "service", "port") or _HTTPS
        for each in installation.webhooks
        if field(each, "clientConfig", "service")
    }
    for port in sorted(wanted - ports.keys()):
        known = ", ".join(map(str, ports)) or "none"
        what = f"has no port {port}, which API servers call (it has {known})"
        # With several ports, each needs a name of its own.
        field_of_one, added = ("/spec/ports/0/port", port), ("/spec/ports/-", {"name": f"port-{port}", "port": port})
        command = _patched(installation, *(field_of_one if len(ports) == 1 else added))
        yield error(f"{where}: spec.ports", what, f"{command}, or correct clientConfig.service.port")
    containers = listed(installation.deployment or {}, "spec", "template", "spec", "containers")
    declared = {port.get("name") for each in containers for port in listed(each, "ports")}
    for port in sorted(wanted & ports.keys()):
        target = ports[port].get("targetPort")
        if installation.deployment and isinstance(target, str) and target not in declared:
            what = f"targetPort {target} is the name of no port of the Deployment's containers"
            command = _patched(installation, f"/spec/ports/{list(ports).index(port)}/targetPort", "https")
            yield error(f"{where}: spec.ports", what, f"{command}, or name the container port")


def _patched(installation: Installation, path: str, value: object) -> str:
    target = installation.target
    return commands.patched_object("service", target.service, {path: value}, target.namespace)
