"""The policies in force in a live cluster: those of the servers that its webhook configuration names."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote

from certs.registration import Target
from webhook.admission.registered_selection import webhook_for_pods
from webhook.cli.inputs.installed_policy import StoredPolicy, ask_replica, read_policy_objects, read_stored_policy
from webhook.cli.inputs.installed_servers import WORKLOADS, follows_objects, option, servers_of
from webhook.cli.inputs.live import ask_live
from webhook.cli.inputs.policies import PlacedPolicies
from webhook.cli.output.terminal import echo
from webhook.documents import documents
from webhook.documents.documents import JsonObject
from webhook.documents.parts import listed
from webhook.policy.loader import built_in_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import accepted_policies
from webhook.policy.policy_set import PolicySet, set_of
from webhook.watch.api_errors import ApiServerError, UnreachableError
from webhook.watch.api_server import ApiServer, ClientConfig

_MOST_SECONDS = 30.0
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_UNAUTHORIZED = 401
T = TypeVar("T")


@dataclass
class _Installation:
    """The objects of an installation that could be read. `refusals` are the reasons why others could not be read."""

    namespace: str = Target().namespace
    service: str = Target().service
    servers: JsonObject | None = None
    is_registered: bool = False
    stored: StoredPolicy | None = None
    file: PolicySet = field(default_factory=lambda: set_of(built_in_policy()))
    accepted: tuple[Policy, ...] = ()
    refusals: list[str] = field(default_factory=list)

    async def read(self, server: ApiServer) -> None:
        """Read the servers, then their policies, for a limited time."""
        try:
            async with asyncio.timeout(_MOST_SECONDS):
                await self._read_servers(server)
                await self._read_policies(server)
        except TimeoutError:
            self.refusals.append(f"not read within {_MOST_SECONDS:g} s")

    @property
    def problem(self) -> str:
        if self.stored is not None and self.stored.policies is None:
            where = f"ConfigMap {self.namespace}/{self.stored.name}"
            errors = "; ".join(self.stored.errors[:3])
            return f"{where} holds no valid policy, and the last valid one stays in force: {errors}"
        if self.refusals:
            return self.refusals[0]
        if self.servers is None and self.is_registered:
            return f"the webhook is registered, and its servers are not in namespace {self.namespace}"
        if self.servers is not None and self.stored is None and (file := option(self.servers, "--policy")):
            return f"the servers read {file}, which is in no ConfigMap"
        return ""

    def place(self, policy: Policy) -> str:
        if policy in self.accepted:
            return "PlacementPolicy, in force"
        if self.stored is not None and self.stored.policies is not None:
            return f"ConfigMap {self.stored.name}, in force"
        if self.problem:
            return "built in; that in force is not known"
        if self.servers is None:
            return f"built in; no webhook in namespace {self.namespace}"
        return "built in, in force"

    async def _read_servers(self, server: ApiServer) -> None:
        found = listed(await self._read(server.get(_CONFIGURATIONS, {})) or {}, "items")
        own = [each for each in found if documents.field(each, "metadata", "name") == Target().configuration]
        self.is_registered = bool(own) or any(map(webhook_for_pods, found))
        webhooks = listed(own[0], "webhooks") if own else []
        called = next((documents.field(each, "clientConfig", "service") for each in webhooks), None) or {}
        self.namespace, name = called.get("namespace") or self.namespace, called.get("name") or self.service
        self.service = name
        service = await self._read(server.find(f"/api/v1{self._own('services', name)}"))
        # With an audit volume, the servers are a StatefulSet.
        paths = (f"/apis/apps/v1{self._own(f'{kind.lower()}s')}" for kind in WORKLOADS)
        lists = [await self._read(server.get(path, {})) or {} for path in paths]
        self.servers = servers_of((each for some in lists for each in listed(some, "items")), service, self.namespace)

    async def _read_policies(self, server: ApiServer) -> None:
        servers = self.servers or {}
        self.stored = await self._read(read_stored_policy(server, servers, self.namespace))
        if self.stored is not None:
            # Reasons why the file was not found do not matter once it is known.
            self.refusals.clear()
            self.file = self.stored.policies or self.file
        in_force = await ask_replica(server, servers, self.namespace, self.service)
        self.file = PolicySet.of(in_force, self.file.others) if in_force else self.file
        if follows_objects(servers):
            objects, of_file = await self._read(read_policy_objects(server)) or (), self.file.default
            self.accepted = tuple(each for each in accepted_policies(of_file, objects) if each is not of_file)

    def _own(self, plural: str, name: str = "") -> str:
        path = f"/namespaces/{quote(self.namespace, safe='')}/{plural}"
        return f"{path}/{quote(name, safe='')}" if name else path

    async def _read(self, asked: Awaitable[T]) -> T | None:
        try:
            return await asked
        except ApiServerError as error:
            if isinstance(error, UnreachableError) or error.code == _UNAUTHORIZED:
                raise
            self.refusals.append(str(error))
            return None


def read_policies_in_force(source: ClientConfig) -> PlacedPolicies | None:
    """Return the policies in force in the cluster of `source`, or None if the API server does not answer.

    If a policy cannot be read, the built-in policy is used instead, and this is reported on standard error.
    """

    async def read(server: ApiServer) -> _Installation:
        found = _Installation()
        await found.read(server)
        return found

    found = ask_live(source, "the policy in force", read)
    if found is None:
        return None
    if found.problem:
        echo(f"not known: the policy in force: {found.problem}; the built-in policy is used", err=True)
    policies = found.file.with_objects(found.accepted)
    places = {each.identity: found.place(each) for each in policies}
    return PlacedPolicies(policies, places, stands_in=bool(found.problem) or found.servers is None)
