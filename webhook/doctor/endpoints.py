"""The ready endpoints in EndpointSlices. Pure."""

from webhook.doctor.installation import JsonObject, listed
from webhook.kube.documents import field


def ready_addresses(slices: tuple[JsonObject, ...]) -> list[tuple[str, int]]:
    """Return the addresses and ports of the ready endpoints."""
    found: list[tuple[str, int]] = []
    for each in slices:
        ports = [port["port"] for port in listed(each, "ports") if isinstance(port.get("port"), int)]
        for endpoint in listed(each, "endpoints"):
            if field(endpoint, "conditions", "ready") is not False:
                addresses = endpoint.get("addresses")
                found += [(str(address), ports[0]) for address in addresses or () if ports]
    return found
