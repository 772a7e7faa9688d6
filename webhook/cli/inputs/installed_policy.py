"""Read the policy of an installed server from its ConfigMap, from a replica, and from the PlacementPolicy objects."""

import asyncio
from typing import NamedTuple
from urllib.parse import quote

from webhook.admission.policy_cases import parse_tested_policies
from webhook.cli.inputs.installed_servers import admin_port, policy_place, ready_endpoints
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput
from webhook.documents.parts import listed, texts
from webhook.policy.loader import read_policy_document
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import policy_set
from webhook.policy.policy_set import PolicySet
from webhook.policy.spec.document import API_VERSION
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ApiServer

_POLICY_OBJECTS = f"/apis/{API_VERSION}/placementpolicies"
# A NetworkPolicy can drop the connection of the API server to the admin port.
_REPLICA_SECONDS = 3.0


class StoredPolicy(NamedTuple):
    """The policies in the ConfigMap `name` that the Deployment mounts, or None and `errors` if they are not valid."""

    name: str
    policies: PolicySet | None
    errors: tuple[str, ...] = ()

    @classmethod
    def of(cls, config_map: JsonObject, name: str, key: str) -> "StoredPolicy":
        """Return the policies in a ConfigMap, or their errors, as a server reads them."""
        text = texts(config_map, "data").get(key)
        if text is None:
            return cls(name, None, (f"it has no key {key}",))
        try:
            return cls(name, policy_set(parse_tested_policies(text, key)))
        except InvalidInput as error:
            return cls(name, None, tuple(map(str, error.errors)))


async def read_stored_policy(server: ApiServer, servers: JsonObject, namespace: str) -> StoredPolicy | None:
    """Return the policies in the ConfigMap that the workload `servers` mounts, or None if it mounts none.

    Raises:
        ApiServerError: the ConfigMap cannot be read.
    """
    place = policy_place(servers)
    if place is None:
        return None
    name, key = place
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}"
    return StoredPolicy.of(await server.find(path) or {}, name, key)


async def ask_replica(server: ApiServer, servers: JsonObject, namespace: str, service: str) -> Policy | None:
    """Return the default policy that a replica reports on its admin port, or None if the port cannot be reached."""
    port = admin_port(servers)
    if port is None:
        return None
    own, selector = quote(namespace, safe=""), {"labelSelector": f"kubernetes.io/service-name={service}"}
    try:
        async with asyncio.timeout(_REPLICA_SECONDS):
            slices = await server.get(f"/apis/discovery.k8s.io/v1/namespaces/{own}/endpointslices", selector)
            names = (field(each, "targetRef", "name") for each, _ in ready_endpoints(listed(slices, "items")))
            pod = next(filter(None, names), None)
            if pod is None:
                return None
            name = quote(f"{pod}:{port}", safe="")
            found = await server.get(f"/api/v1/namespaces/{own}/pods/{name}/proxy/policy", {})
        return read_policy_document(found["policy"])
    except (ApiServerError, InvalidInput, TimeoutError, KeyError):
        return None


async def read_policy_objects(server: ApiServer) -> list[JsonObject] | None:
    """Return the PlacementPolicy objects, or None if their kind is not served.

    Raises:
        ApiServerError: they cannot be read.
    """
    found = await server.find(_POLICY_OBJECTS)
    return None if found is None else listed(found, "items")
