"""The address that the webhooks of a configuration call, and those of them that call another one."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from placement_doctor import commands
from placement_doctor.check import Finding, error
from placement_doctor.cluster import Cluster
from webhook.documents.documents import JsonObject, field

_HTTPS = 443


def unlike_the_others(cluster: Cluster) -> Iterator[Finding]:
    """Yield a finding for each webhook with another URL, port or path than most of them, or of another kind."""
    yield from _of_another_kind(cluster)
    usual = usual_address(cluster)
    for index, webhook in enumerate(cluster.webhooks):
        called = _called_at(cluster, webhook)
        for key, expected in usual.items():
            if (found := called.get(key, expected)) == expected:
                continue
            part = "url" if key == "url" else f"service/{key}"
            where = f"{cluster.place}: webhooks[{index}].clientConfig.{part.replace('/', '.')}"
            what = f"{webhook.get('name')} calls {found}, and the others call {expected}"
            remedy = commands.patched(cluster, {f"/webhooks/{index}/clientConfig/{part}": expected})
            yield error(where, what, remedy)


def _of_another_kind(cluster: Cluster) -> Iterator[Finding]:
    """Yield a finding for each webhook that calls a URL where most call a Service, or the other way round."""
    clients = [field(each, "clientConfig") or {} for each in cluster.webhooks]
    usual, kind = ("service", "url") if cluster.is_called_by_service else ("url", "service")
    for index, client in enumerate(clients):
        if client.get(usual) or not client.get(kind):
            continue
        wanted = usual_service(cluster) if usual == "service" else usual_address(cluster)["url"]
        place, name = f"webhooks[{index}].clientConfig", cluster.webhooks[index].get("name")
        what = f"{name} calls {_shown(client[kind])}, and the others call {_shown(wanted)}"
        path = f"/webhooks/{index}/clientConfig"
        remedy = commands.patched(cluster, {f"{path}/{kind}": None, f"{path}/{usual}": wanted})
        yield error(f"{cluster.place}: {place}", what, remedy)


def _shown(called: Any) -> str:
    return f"Service {called.get('namespace')}/{called.get('name')}" if isinstance(called, dict) else str(called)


def usual_address(cluster: Cluster) -> Mapping[str, object]:
    """Return the URL, or port and path, that most webhooks call."""
    found = [_called_at(cluster, each) for each in cluster.webhooks]
    keys = dict.fromkeys(key for each in found for key in each)
    return {key: Counter(each[key] for each in found if key in each).most_common(1)[0][0] for key in keys}


def usual_service(cluster: Cluster) -> JsonObject:
    """Return the reference to the Service that most webhooks call, or an empty one if none calls a Service.

    Of the references to this Service, it is the one with the port and the path of most.
    """
    called = [found for each in cluster.webhooks if (found := field(each, "clientConfig", "service"))]
    services, addresses = Counter(map(_service, called)), Counter((_service(each), _address(each)) for each in called)
    rank = {(key, address): (services[key], count) for (key, address), count in addresses.items()}
    return max(called, key=lambda each: rank[_service(each), _address(each)], default={})


def _service(called: JsonObject) -> tuple[Any, Any]:
    return called.get("namespace"), called.get("name")


def _address(called: JsonObject) -> tuple[Any, Any]:
    return called.get("port") or _HTTPS, called.get("path") or "/"


def _called_at(cluster: Cluster, webhook: JsonObject) -> Mapping[str, object]:
    """Return the URL of a webhook, or port and path of its Service; nothing for another Service."""
    client = field(webhook, "clientConfig") or {}
    called = client.get("service") or {}
    if called:
        if _service(called) != (cluster.target.namespace, cluster.target.service):
            return {}
        return dict(zip(("port", "path"), _address(called), strict=True))
    return {"url": client["url"]} if client.get("url") else {}
