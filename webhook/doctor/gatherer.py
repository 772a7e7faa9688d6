"""Read an installation once: the one part of the package that talks to a cluster."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any
from urllib.parse import quote

from certs.registration import Target
from webhook.cluster.cache.resources import BATCH_RESOURCES
from webhook.cluster.scheduler_evidence import SchedulerEvidence
from webhook.doctor.certificate_owner import controller_of
from webhook.doctor.enforcement import NO_USER, User
from webhook.doctor.installation import WORKLOADS, Installation, JsonObject, ServerClock, listed, name_of, texts
from webhook.doctor.pods_read import PodsRead
from webhook.doctor.questions import ask_rights, create_on_trial, probe
from webhook.doctor.reduction import follows_objects, policy_place, reduced, stored_policy
from webhook.doctor.rights import rights_of
from webhook.doctor.source import DEPENDS, LISTS, Source, with_dependencies
from webhook.kube.documents import field
from webhook.kube.field import InvalidInput
from webhook.missed import Scope
from webhook.policy.document import API_VERSION
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_object import accepted_policies
from webhook.policy.policy_set import PolicyOrSet, set_of
from webhook.registered_selection import registered_selection
from webhook.watch.api_errors import ApiServerError, UnreachableError
from webhook.watch.api_server import NOT_FOUND, ApiServer, list_pages
from webhook.watch.release import read_release

_PAGE = 500
_AT_ONCE = 8
_NODE_LEASES = "kube-node-lease"
_NOT_ENDED = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
_POLICY_OBJECTS = f"/apis/{API_VERSION}/placementpolicies"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to read: the names of the installation (None: those that the configuration has), and the sources.

    `endpoint` is the HOST:PORT to probe in place of that of the webhooks. Nothing is read after `within_seconds`.
    """

    configuration: str
    namespace: str | None
    service: str | None
    policy: PolicyOrSet | None
    endpoint: str | None
    trial_namespace: str | None
    sources: frozenset[Source]
    within_seconds: float


async def gather(server: ApiServer, wanted: Wanted) -> Installation:
    """Return the installation. What may not be read, or not in time, is in its `refusals`.

    Raises:
        ApiServerError: the API server does not answer, or does not know the user.
        InvalidInput: `wanted.endpoint` has another form.
    """
    gatherer = _Gatherer(server, wanted)
    await gatherer.read_configurations()
    sources = with_dependencies(wanted.sources)
    await gatherer.read_all(sources - {Source.CONFIGURATIONS, *DEPENDS})
    await gatherer.read_all(
        sources & {Source.POLICY, Source.PROBE, Source.RIGHTS, Source.QUEUES, Source.CONTROLLER_PODS}
    )
    # Not beside others, so that its time is that of the webhooks.
    await gatherer.read_all(sources & {Source.TRIAL})
    await gatherer.read_all(sources & {Source.PODS})
    return gatherer.result()


class _Gatherer:
    def __init__(self, server: ApiServer, wanted: Wanted) -> None:
        self._server, self._wanted = server, wanted
        self._ends = monotonic() + wanted.within_seconds
        self._groups: JsonObject = {}
        self._user = NO_USER
        self._objects: dict[Source, tuple[JsonObject, ...]] = {}
        self._refusals: dict[Source, str] = {}
        self._gate = asyncio.Semaphore(_AT_ONCE)
        target = Target(configuration=wanted.configuration)
        given = set_of(wanted.policy or built_in_policy())
        read = datetime.now(UTC), target, given.default, self._objects, self._refusals, wanted.policy
        self.found = Installation(*read, others=given.others)

    async def read_configurations(self) -> None:
        """Read the webhook configurations, which name everything else.

        Raises:
            ApiServerError: the API server does not answer, or does not know the user.
        """
        try:
            await self._list(Source.CONFIGURATIONS, _ADMISSION)
        except UnreachableError:
            raise
        except ApiServerError as error:
            if error.code == 401:
                raise
            self._refusals[Source.CONFIGURATIONS] = str(error)
        wanted, default = self._wanted, Target()
        called = next((field(each, "clientConfig", "service") for each in self.found.webhooks), None) or {}
        namespace = wanted.namespace or called.get("namespace") or default.namespace
        service = wanted.service or called.get("name") or default.service
        target = Target(namespace, service=service, configuration=wanted.configuration)
        self.found = replace(self.found, target=target)

    async def read_all(self, sources: frozenset[Source]) -> None:
        """Read `sources` side by side."""
        await asyncio.gather(*(self._read(each) for each in sorted(sources, key=lambda each: each.name)))

    async def _read(self, source: Source) -> None:
        reading = self._readings().get(source)
        try:
            async with self._gate, asyncio.timeout(max(self._ends - monotonic(), 0)):
                if reading is not None:
                    await reading()
                else:
                    await self._list(source, LISTS[source])
        except TimeoutError:
            self._refusals[source] = f"not read within {self._wanted.within_seconds:g} s"
        except (ApiServerError, InvalidInput) as error:
            if isinstance(error, InvalidInput) and source is Source.PROBE and self._wanted.endpoint:
                raise
            self._refusals[source] = str(error)

    def _readings(self) -> Mapping[Source, Callable[[], Awaitable[None]]]:
        return {
            Source.SERVICE: self._read_service,
            Source.ENDPOINTS: self._read_endpoints,
            Source.BUDGETS: self._read_budgets,
            Source.CONTROLLER_PODS: self._read_controller_pods,
            Source.DEPLOYMENTS: self._read_workloads,
            Source.POLICY: self._read_policy,
            Source.PODS: self._read_pods,
            Source.GROUPS: self._read_groups,
            Source.QUEUES: self._read_queues,
            Source.RIGHTS: self._read_rights,
            Source.PROBE: self._probe,
            Source.TRIAL: self._try,
            Source.CLOCK: self._read_clock,
            Source.VERSION: self._read_version,
        }

    def result(self) -> Installation:
        """Return what was read."""
        knows_signs = self.found.knows(Source.GROUPS) and self.found.knows(Source.LEASES)
        return replace(self.found, evidence=self._evidence() if knows_signs else None)

    async def _list(
        self, source: Source, path: str, query: Mapping[str, str] | None = None, kind: str | None = None
    ) -> None:
        """Read a list. Its items have no kind; `kind` is set on them."""
        kept: list[JsonObject] = []

        async def take(items: list[JsonObject], begins: bool) -> None:
            if begins:
                kept.clear()
            kept.extend(reduced(source, {"kind": kind, **each} if kind else each) for each in items)

        await list_pages(self._server, path, query or {}, take, _PAGE)
        self._objects[source] = (*self._objects.get(source, ()), *kept)

    def _namespaced(self, group: str, plural: str, name: str = "") -> str:
        path = f"{group}/namespaces/{quote(self.found.target.namespace, safe='')}/{plural}"
        return f"{path}/{quote(name, safe='')}" if name else path

    async def _read_service(self) -> None:
        path = self._namespaced("/api/v1", "services", self.found.target.service)
        self._objects[Source.SERVICE] = await self._get_if_any(path)

    async def _get_if_any(self, path: str) -> tuple[JsonObject, ...]:
        try:
            return (await self._server.get(path, {}),)
        except ApiServerError as error:
            if error.code != NOT_FOUND:
                raise
            return ()

    async def _read_endpoints(self) -> None:
        query = {"labelSelector": f"kubernetes.io/service-name={self.found.target.service}"}
        await self._list(Source.ENDPOINTS, self._namespaced("/apis/discovery.k8s.io/v1", "endpointslices"), query)

    async def _read_workloads(self) -> None:
        # With an audit volume, the servers are a StatefulSet.
        for kind in WORKLOADS:
            await self._list(Source.DEPLOYMENTS, f"/apis/apps/v1/{kind.lower()}s", kind=kind)

    async def _read_controller_pods(self) -> None:
        controller = controller_of(self.found)
        self._objects[Source.CONTROLLER_PODS] = ()
        if controller is not None:
            labels = texts(controller, "spec", "template", "metadata", "labels")
            query = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}
            await self._list(Source.CONTROLLER_PODS, self._namespaced("/api/v1", "pods"), query)

    async def _read_budgets(self) -> None:
        await self._list(Source.BUDGETS, self._namespaced("/apis/policy/v1", "poddisruptionbudgets"))

    async def _read_policy(self) -> None:
        place = policy_place(self.found.deployment or {})
        if place is not None:
            name, key = place
            found = await self._get_if_any(self._namespaced("/api/v1", "configmaps", name))
            self._objects[Source.POLICY] = found
            self.found = self.found.with_stored(stored_policy(found[0] if found else {}, name, key))
        if follows_objects(self.found.deployment or {}):
            found = await self._get_if_any(_POLICY_OBJECTS)
            items = listed(found[0], "items") if found else []
            objects = tuple(reduced(Source.POLICY, each) for each in items) if found else None
            policies = accepted_policies(self.found.policy, items)
            default = () if policies.default is self.found.policy else (policies.default,)
            accepted = (*default, *policies.others)
            self.found = replace(self.found, policy=policies.default, accepted=accepted, policy_objects=objects)

    async def _read_pods(self) -> None:
        found = self.found
        own = found.pods_webhook if found.knows(Source.NAMESPACES) else None
        selection = registered_selection(own[1]) if own else None
        scopes = {
            name_of(each): Scope(texts(each, "metadata", "annotations"), texts(each, "metadata", "labels"))
            for each in found.of(Source.NAMESPACES)
        }
        read = PodsRead(found.policies, selection, scopes)

        async def take(items: list[JsonObject], begins: bool) -> None:
            nonlocal read
            if begins:
                read = PodsRead(found.policies, selection, scopes)
            for each in items:
                read.add(each)
            await asyncio.sleep(0)

        await list_pages(self._server, "/api/v1/pods", _NOT_ENDED, take, _PAGE)
        self._objects[Source.PODS] = ()
        self.found = replace(
            self.found,
            bound_schedulers=frozenset(read.bound_schedulers),
            missed=tuple(read.missed),
            missed_count=read.missed_count,
        )

    async def _read_groups(self) -> None:
        self._groups = await self._server.get("/apis", {})
        self._objects[Source.GROUPS] = ()

    async def _read_queues(self) -> None:
        self._objects[Source.QUEUES] = ()
        served = self._evidence().groups
        for each in BATCH_RESOURCES:
            if each.plural in ("queues", "localqueues") and each.api_version.partition("/")[0] in served:
                try:
                    await self._list(Source.QUEUES, each.path)
                except ApiServerError as error:
                    if error.code != NOT_FOUND:
                        raise

    async def _read_rights(self) -> None:
        rights = await ask_rights(self._server, rights_of(self.found, self._evidence().groups))
        self.found = replace(self.found, rights=rights)

    def _evidence(self) -> SchedulerEvidence:
        leases = [each for each in self.found.of(Source.LEASES) if not name_of(each).startswith(_NODE_LEASES)]
        return SchedulerEvidence.of(self._groups, {"items": leases})

    async def _probe(self) -> None:
        # Others replace `found` meanwhile, so it is read after each answer.
        probes = await probe(self.found, self._wanted.endpoint)
        self.found = replace(self.found, probes=probes)

    async def _try(self) -> None:
        trial = await create_on_trial(self._server, self.found, self._wanted.trial_namespace, self._user)
        self.found = replace(self.found, trial=trial)

    async def _read_clock(self) -> None:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        review: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        before = datetime.now(UTC)
        answered = await self._server.create(path, review, {})
        after = datetime.now(UTC)
        user, groups = (field(answered, "status", "userInfo", key) for key in ("username", "groups"))
        self._user = User(str(user or ""), tuple(map(str, groups if isinstance(groups, list) else ())))
        text = field(answered, "metadata", "creationTimestamp")
        if isinstance(text, str):
            self.found = replace(self.found, clock=ServerClock(datetime.fromisoformat(text), before, after))

    async def _read_version(self) -> None:
        release = await read_release(self._server)
        self.found = replace(self.found, release=release)
