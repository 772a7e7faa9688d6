"""Read the objects of an installation in a cluster, each source once."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import quote

from certs.cluster.probe import call_webhooks
from certs.registration import Target
from placement_doctor.called_address import usual_service
from placement_doctor.cluster import Cluster, Right, name_of
from placement_doctor.kept import PodsRead, kept
from placement_doctor.questions import create_on_trial, read_clock
from placement_doctor.rights import access_review, rights_of
from placement_doctor.sample_pods import NO_USER
from placement_doctor.source import BEFORE, KINDS, Source
from placement_doctor.workloads import controller_namespace, controller_of, pod_selector
from webhook.backends.volcano import Volcano
from webhook.cli.inputs.installed_policy import ask_replica, read_policy_objects, read_stored_policy
from webhook.cli.inputs.installed_servers import WORKLOADS, follows_objects
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput
from webhook.documents.parts import listed
from webhook.kube.api.admission_policy import GROUP, PLURALS
from webhook.kube.names import VOLCANO_CONFIGURATION, VOLCANO_NAMESPACE
from webhook.kube.workloads.pod_template_path import group_of
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_documents import accepted_policies
from webhook.policy.policy_set import PolicyOrSet, PolicySet, set_of
from webhook.watch.api_errors import ApiServerError, UnreachableError
from webhook.watch.api_server import NOT_FOUND, ApiServer
from webhook.watch.pages import list_pages
from webhook.watch.polling import read_release

_PAGE = 500
_AT_ONCE = 8
_NODE_LEASES = "kube-node-lease"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_MOST_ENDPOINTS = 3
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_NOT_ENDED = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The names of the installation to read (None for those in the configuration), and the sources to read.

    `endpoint` is the HOST:PORT to probe instead of the address of the webhooks. Nothing is read after `within_seconds`.
    """

    configuration: str
    namespace: str | None = None
    service: str | None = None
    policy: PolicyOrSet | None = None
    endpoint: str | None = None
    trial_namespace: str | None = None
    sources: frozenset[Source] = frozenset()
    within_seconds: float = 60.0


async def read_cluster(server: ApiServer, wanted: Wanted) -> Cluster:
    """Return the cluster. Sources that are forbidden or were not read in time are in its `refusals`.

    Raises:
        ApiServerError: the API server does not answer, or does not know the user.
        InvalidInput: `wanted.endpoint` is not HOST:PORT.
    """
    reader = _Reader(server, wanted)
    await reader.read_configurations()
    # The pod on trial is not created beside other requests, so that its time is that of the webhooks.
    others = wanted.sources - {Source.CONFIGURATIONS, Source.TRIAL, Source.PODS}
    for some in (others, wanted.sources & {Source.TRIAL}, wanted.sources & {Source.PODS}):
        await reader.read_all(some)
    return reader.result()


class _Reader:
    """Reads each source once, on first use, by the method with its name, after the sources that it depends on.

    Sources are read concurrently, and each method replaces the cluster object. So a method must read the cluster object
    again after each await.
    """

    def __init__(self, server: ApiServer, wanted: Wanted) -> None:
        self._server, self._wanted = server, wanted
        self._ends = asyncio.get_running_loop().time() + wanted.within_seconds
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._tasks: dict[Source, asyncio.Task[None]] = {}
        self._objects: dict[Source, tuple[JsonObject, ...]] = {}
        self._refusals: dict[Source, str] = {}
        self._groups: JsonObject = {}
        self._user = NO_USER
        target = Target(configuration=wanted.configuration)
        file = set_of(wanted.policy or built_in_policy())
        self._found = Cluster(datetime.now(UTC), target, file, self._objects, self._refusals, wanted.policy)

    async def read_configurations(self) -> None:
        """Read the webhook configurations, which name everything else.

        Raises:
            ApiServerError: the API server does not answer, or does not know the user.
        """
        try:
            await self._list(Source.CONFIGURATIONS, _ADMISSION)
        except ApiServerError as error:
            if isinstance(error, UnreachableError) or error.code == 401:
                raise
            self._refusals[Source.CONFIGURATIONS] = str(error)
        wanted, default = self._wanted, Target()
        called = usual_service(self._found)
        namespace = wanted.namespace or called.get("namespace") or default.namespace
        service = wanted.service or called.get("name") or default.service
        target = Target(namespace, service=service, configuration=wanted.configuration)
        self._found = replace(self._found, target=target)

    async def read_all(self, sources: Iterable[Source]) -> None:
        """Read `sources` concurrently."""
        await asyncio.gather(*map(self._read_once, sorted(sources, key=lambda each: each.name)))

    def result(self) -> Cluster:
        knows_signs = self._found.knows(Source.GROUPS) and self._found.knows(Source.LEASES)
        return replace(self._found, evidence=self._evidence() if knows_signs else None)

    def _read_once(self, source: Source) -> asyncio.Task[None]:
        if source not in self._tasks:
            self._tasks[source] = asyncio.create_task(self._read(source))
        return self._tasks[source]

    async def _read(self, source: Source) -> None:
        await self.read_all(BEFORE.get(source, ()))
        try:
            async with self._gate, asyncio.timeout_at(self._ends):
                if source.path:
                    await self._list(source, source.path.format(quote(self._found.target.namespace, safe="")))
                elif source in (Source.QUEUES, Source.NODE_POOLS):
                    await self._list_served(source)
                else:
                    await getattr(self, source.name.lower())()
        except TimeoutError:
            self._refusals[source] = f"not read within {self._wanted.within_seconds:g} s"
        except (ApiServerError, InvalidInput) as error:
            if isinstance(error, InvalidInput) and source is Source.PROBE and self._wanted.endpoint:
                raise
            self._refusals[source] = str(error)
        if source in self._refusals and source in (Source.QUEUES, Source.NODE_POOLS):
            # The objects of some kinds would count as all of them.
            self._objects.pop(source, None)

    async def _list(self, source: Source, path: str, query: Mapping[str, str] | None = None, **fields: str) -> None:
        """Read a list. Its items can lack their kind and apiVersion, so `fields` are set on them."""
        found: list[JsonObject] = []

        async def take(items: list[JsonObject], begins: bool) -> None:
            if begins:
                found.clear()
            found.extend(kept(source, {**fields, **each} if fields else each) for each in items)

        await list_pages(self._server, path, query or {}, take, _PAGE)
        self._objects[source] = (*self._found.of(source), *found)

    def _own(self, group: str, plural: str, name: str = "") -> str:
        """Return the path of a list in the namespace of the webhook, or of an object in it."""
        path = f"{group}/namespaces/{quote(self._found.target.namespace, safe='')}/{plural}"
        return f"{path}/{quote(name, safe='')}" if name else path

    async def service(self) -> None:
        found = await self._server.find(self._own("/api/v1", "services", self._found.target.service))
        self._objects[Source.SERVICE] = () if found is None else (found,)

    async def endpoints(self) -> None:
        query = {"labelSelector": f"kubernetes.io/service-name={self._found.target.service}"}
        await self._list(Source.ENDPOINTS, self._own("/apis/discovery.k8s.io/v1", "endpointslices"), query)

    async def deployments(self) -> None:
        # With an audit volume, the servers are a StatefulSet.
        for kind in WORKLOADS:
            await self._list(Source.DEPLOYMENTS, f"/apis/apps/v1/{kind.lower()}s", kind=kind)

    async def controller_pods(self) -> None:
        self._objects[Source.CONTROLLER_PODS] = ()
        controller = controller_of(self._found)
        if controller is not None:
            path = f"/api/v1/namespaces/{quote(controller_namespace(self._found), safe='')}/pods"
            await self._list(Source.CONTROLLER_PODS, path, {"labelSelector": pod_selector(controller)})

    async def policy(self) -> None:
        servers, namespace = self._found.deployment or {}, self._found.target.namespace
        stored = await read_stored_policy(self._server, servers, namespace)
        if stored is not None:
            self._found = replace(self._found, stored=stored, file=stored.policies or self._found.file)
        in_force = await ask_replica(self._server, servers, namespace, self._found.target.service)
        if in_force is not None:
            self._found = replace(self._found, in_force=in_force, file=PolicySet.of(in_force, self._found.file.others))
        if follows_objects(servers):
            items = await read_policy_objects(self._server)
            objects = None if items is None else tuple(kept(Source.POLICY, each) for each in items)
            of_file = self._found.file.default
            accepted = tuple(each for each in accepted_policies(of_file, items or ()) if each is not of_file)
            self._found = replace(self._found, accepted=accepted, policy_objects=objects)

    async def pods(self) -> None:
        read = PodsRead.of(self._found)

        async def take(items: list[JsonObject], begins: bool) -> None:
            nonlocal read
            if begins:
                read = PodsRead.of(self._found)
            for each in items:
                read.add(each)
            await asyncio.sleep(0)

        await list_pages(self._server, "/api/v1/pods", _NOT_ENDED, take, _PAGE)
        self._objects[Source.PODS] = ()
        self._found = replace(
            self._found,
            bound_schedulers=read.bound_schedulers,
            missed=tuple(read.missed),
            missed_count=read.missed_count,
            unprotected=read.unprotected,
            named_topologies=read.named_topologies,
            kai_topologies=read.kai_topologies,
            networks=read.networks,
            selects_a_pod=read.selects_a_pod,
        )

    async def groups(self) -> None:
        self._groups = await self._server.get("/apis", {})
        self._objects[Source.GROUPS] = ()

    async def topology_requests(self) -> None:
        await self._list_served(Source.TOPOLOGY_REQUESTS)
        read = self._found.of(Source.TOPOLOGY_REQUESTS)
        if any(group_of(each.get("apiVersion")) in Volcano.api_groups for each in read):
            path = f"/api/v1/namespaces/{VOLCANO_NAMESPACE}/configmaps/{VOLCANO_CONFIGURATION}"
            found = await self._server.find(path)
            self._objects[Source.TOPOLOGY_REQUESTS] += () if found is None else ({"kind": "ConfigMap", **found},)

    async def _list_served(self, source: Source) -> None:
        """Read the kinds of `source`, as far as they are served."""
        if not self._found.knows(Source.GROUPS):
            return
        self._objects[source], served = (), self._evidence().groups
        for each in KINDS[source]:
            if group_of(each.api_version) in served:
                try:
                    await self._list(source, each.path, apiVersion=each.api_version, kind=each.kind)
                except ApiServerError as error:
                    if error.code != NOT_FOUND:
                        raise

    async def exported(self) -> None:
        found, unserved = list[JsonObject](), set[str]()
        for kind, plural in PLURALS.items():
            for version in (f"{GROUP}/v1", f"{GROUP}/v1beta1"):
                if (content := await self._server.find(f"/apis/{version}/{plural}")) is not None:
                    found += ({"apiVersion": version, "kind": kind, **each} for each in listed(content, "items"))
                    break
            else:
                unserved.add(kind)
        self._objects[Source.EXPORTED] = tuple(found)
        self._found = replace(self._found, unserved_kinds=frozenset(unserved))

    async def rights(self) -> None:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def asked(right: Right) -> Right:
            async with gate:
                review = await self._server.create(_REVIEWS, access_review(right), {})
            return right._replace(is_held=field(review, "status", "allowed") is True)

        rights = await asyncio.gather(*map(asked, rights_of(self._found, self._evidence().groups)))
        self._found = replace(self._found, rights=tuple(rights))

    async def probe(self) -> None:
        configuration, addresses = self._found.configuration, [self._wanted.endpoint]
        if configuration is None:
            return
        if self._wanted.endpoint is None and self._found.is_called_by_service:
            # Each replica can have another certificate, so some of the endpoints are called one by one.
            addresses += self._found.ready_addresses[:_MOST_ENDPOINTS]
        called = await asyncio.gather(*(asyncio.to_thread(call_webhooks, configuration, at) for at in addresses))
        self._found = replace(self._found, probes=tuple(map(tuple, called)))

    async def trial(self) -> None:
        trial = await create_on_trial(self._server, self._found, self._wanted.trial_namespace, self._user)
        self._found = replace(self._found, trial=trial)

    async def clock(self) -> None:
        clock, self._user = await read_clock(self._server)
        self._found = replace(self._found, clock=clock)

    async def version(self) -> None:
        release = await read_release(self._server)
        self._found = replace(self._found, release=release)

    def _evidence(self) -> SchedulerEvidence:
        leases = [each for each in self._found.of(Source.LEASES) if not name_of(each).startswith(_NODE_LEASES)]
        return SchedulerEvidence.of(self._groups, {"items": leases}, self._found.server_time)
