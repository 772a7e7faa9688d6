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
    kinds = [next((kind for kind in ("service", "url") if each.get(kind)), None) for each in clients]
    usual = next((kind for kind, _ in Counter(filter(None, kinds)).most_common(1)), None)
    for index, kind in enumerate(kinds):
        if usual is None or kind in (None, usual):
            continue
        wanted = usual_service(cluster) if usual == "service" else usual_address(cluster)["url"]
        place, name = f"webhooks[{index}].clientConfig", cluster.webhooks[index].get("name")
        what = f"{name} calls {_shown(clients[index][kind])}, and the others call {_shown(wanted)}"
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
    """Return the reference to the Service that most webhooks call, or an empty one if none calls a Service."""
    called = [found for each in cluster.webhooks if (found := field(each, "clientConfig", "service"))]
    counts = Counter((each.get("namespace"), each.get("name")) for each in called)
    return max(called, key=lambda each: counts[each.get("namespace"), each.get("name")], default={})


def _called_at(cluster: Cluster, webhook: JsonObject) -> Mapping[str, object]:
    """Return the URL of a webhook, or port and path of its Service; nothing for another Service."""
    client = field(webhook, "clientConfig") or {}
    called = client.get("service") or {}
    if called:
        if (called.get("namespace"), called.get("name")) != (cluster.target.namespace, cluster.target.service):
            return {}
        return {"port": called.get("port") or _HTTPS, "path": called.get("path") or "/"}
    return {"url": client["url"]} if client.get("url") else {}
