"""Kinds of operators, served by name alone: what their own schemas state is not tested."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.controlplane.client import Client, NotFound, Object
from tests.controlplane.polling import wait_for

_DEFINITION = ("CustomResourceDefinition", "apiextensions.k8s.io/v1")


@contextmanager
def serving_kinds(client: Client, group: str, kinds: tuple[str, ...]) -> Iterator[None]:
    """Serve the kinds in version v1, namespaced, with any content; remove them with their objects at the end."""
    names = [client.create(_definition(group, kind)).object["metadata"]["name"] for kind in kinds]
    wait_for(lambda: all(_is_served(client, name) for name in names), f"the definitions {names}")
    wait_for(lambda: {*kinds} <= _discovered(client, group), f"the discovery of {kinds}")
    try:
        yield
    finally:
        kind, version = _DEFINITION
        for name in names:
            client.delete(kind, name, api_version=version)
        wait_for(lambda: not any(_exists(client, name) for name in names), f"the removal of the definitions {names}")


def _is_served(client: Client, name: str) -> bool:
    kind, version = _DEFINITION
    conditions = client.get(kind, name, api_version=version).get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _discovered(client: Client, group: str) -> set[str]:
    """Return the kinds of the group that discovery names; the API server adds them a moment after it serves them."""
    with suppress(NotFound):
        return {each["kind"] for each in client.request("GET", f"/apis/{group}/v1").object["resources"]}
    return set()


def _exists(client: Client, name: str) -> bool:
    kind, version = _DEFINITION
    return any(each["metadata"]["name"] == name for each in client.list(kind, api_version=version))


def _definition(group: str, kind: str) -> Object:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": _DEFINITION[1],
        "kind": _DEFINITION[0],
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
