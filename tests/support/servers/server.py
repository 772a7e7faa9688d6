"""The real server over TLS on loopback, in the test's own event loop or in a thread of its own."""

import asyncio
import math
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from certs.pki import KeyPair, issue_ca, issue_server
from tests.support.admission import policy_with
from tests.support.programs.audit_records import encode
from tests.support.servers.threads import event_loop_in_thread
from webhook.admission.cluster_view import ClusterView
from webhook.audit.lines import UnsealedRecord
from webhook.audit.record import FIRST, AuditRecord, parse_line
from webhook.events.recorder import EventRecorder
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicyOrSet, PolicySet
from webhook.runtime.metrics import Metrics
from webhook.runtime.settings import Address, Settings
from webhook.serving.clock import rfc3339_now
from webhook.serving.connection import Arrival, Connection
from webhook.serving.decisions.admissions import Admissions, Answer
from webhook.serving.decisions.deciders import Decider, WorkerDecider
from webhook.serving.decisions.decision_cache import DecisionCache
from webhook.serving.decisions.group_commit import GroupCommit
from webhook.serving.extender.extender_endpoint import Extender
from webhook.serving.http.bearer_token import BearerToken
from webhook.serving.http.certificate import Certificate
from webhook.serving.http.endpoint import MutateEndpoint
from webhook.serving.http.health import Health
from webhook.serving.policies.in_force import Policies
from webhook.serving.scheduling.dispatcher import Dispatcher
from webhook.serving.server import Server
from webhook.serving.work_budget import WorkBudget

LOOPBACK = Address("127.0.0.1", 0)


@dataclass(slots=True)
class Clock:
    """A monotonic clock that advances only when a test moves it."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


def make_work_budget() -> WorkBudget:
    """Return a work budget of 150 ms whose clocks stand still."""
    return WorkBudget(None, 150, monotonic_seconds=Clock(), cpu_seconds=lambda: 0.0)


def utc_now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


@dataclass(slots=True)
class World:
    """All that a server is made of; records and the CA are there to be looked at."""

    policy: Policy = field(default_factory=policy_with)
    cluster: ClusterView | None = None
    records: list[AuditRecord] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    clock: Callable[[], float] = field(default_factory=Clock)
    now: Callable[[], str] = rfc3339_now
    utc_now: Callable[[], datetime] = utc_now
    audit: Callable[[UnsealedRecord], None] | None = None
    events: EventRecorder | None = None
    extender: Extender | None = None
    gate: asyncio.Event | None = None
    """An event that answers wait for, as they wait for their audit records."""
    others: tuple[Policy, ...] = ()
    """Policies for some namespaces, beside `policy`."""

    @property
    def policies(self) -> PolicyOrSet:
        """The policies in force."""
        return PolicySet(self.policy, self.others) if self.others else self.policy

    def admissions(self) -> "Answering":
        """Return the admissions of this world; their decisions are numbered."""
        admissions = Admissions(
            self.metrics,
            audit=lambda unsealed: (self.audit or self.keep)(unsealed),
            monotonic_seconds=self.clock,
            new_decision=lambda: f"decision-{len(self.records) + 1}",
            replica="replica-a",
            reported=self.events.report if self.events else lambda *_: None,
        )
        return Answering(self, admissions)

    def dispatcher(self) -> Dispatcher:
        """Return the dispatcher of this world's admissions, on the clock of its event loop."""
        admissions = self.admissions().admissions
        return Dispatcher(admissions, lambda: self.policies, lambda: self.cluster, DecisionCache(), WorkerDecider())

    def stage(self, record: UnsealedRecord) -> None:
        """Do nothing: every record is kept at once."""

    def flush(self) -> None:
        """Do nothing: every record is kept at once."""

    def keep(self, unsealed: UnsealedRecord) -> None:
        """Put the record, as it would be written, to the others."""
        self.records.append(parse_line(encode(unsealed, 0, FIRST)))

    def count(self, name: str, **labels: str) -> float:
        """Return the value of a metric."""
        value = self.metrics.registry.get_sample_value(f"placement_webhook_{name}", labels)
        return 0.0 if value is None else value


class GatedCommit(GroupCommit):
    """Answers wait until the gate of `world` is open."""

    def __init__(self, world: World) -> None:
        super().__init__(world.flush)
        self._world = world
        self._held: set[asyncio.Task[None]] = set()

    def when_written(self, done: Callable[[Exception | None], None]) -> None:
        """Call `done` once the gate is open."""
        if (gate := self._world.gate) is None:
            super().when_written(done)
            return

        async def opened() -> None:
            await gate.wait()
            done(None)

        task = asyncio.create_task(opened())
        self._held.add(task)
        task.add_done_callback(self._held.discard)


@dataclass(frozen=True, slots=True)
class Answering:
    """The admissions of a world, asked one after the other."""

    world: World
    admissions: Admissions
    decider: Decider = field(default_factory=DecisionCache)

    def answer(self, body: bytes, arrived_seconds: float, deadline_seconds: float | None) -> Answer:
        """Return the answer to the review in `body`; after the deadline, without the placement check."""
        world = self.world
        milliseconds = world.policy.spec.placement_check.work_budget_milliseconds
        work_budget = WorkBudget(deadline_seconds, milliseconds, monotonic_seconds=world.clock, cpu_seconds=lambda: 0.0)
        decision = self.admissions.decide(self.decider, body, world.policies, world.cluster, work_budget)
        return self.admissions.finish(decision, arrival(world.now(), arrived_seconds))


def arrival(time: str = "2026-01-31T12:00:00.000000Z", arrived_seconds: float = 0.0) -> Arrival:
    """Return the arrival of a request whose client waits without end."""
    return Arrival(Connection(), time, arrived_seconds, None, math.inf)


def policies_of(policy: Policy, metrics: Metrics | None = None) -> Policies:
    """Return `policy`, in force since the beginning of the epoch."""
    return Policies(policy, metrics or Metrics(), lambda: "1970-01-01T00:00:00Z")


def write_certificate(folder: Path, issued_ago: timedelta = timedelta()) -> KeyPair:
    """Put `ca.crt`, `tls.crt` and `tls.key` for 127.0.0.1 into `folder`; the CA."""
    now = utc_now() - issued_ago
    ca = issue_ca(now=now)
    (folder / "ca.crt").write_bytes(ca.certificate)
    write_pair(folder, issued(ca, now))
    return ca


def issued(ca: KeyPair, now: datetime | None = None) -> KeyPair:
    """Return a server certificate for 127.0.0.1 under `ca`."""
    return issue_server(ca, dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=now or utc_now())


def write_pair(folder: Path, pair: KeyPair) -> None:
    """Put `tls.crt` and `tls.key` into `folder`."""
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)


@dataclass(frozen=True, slots=True)
class Running:
    """A running server. Set `stop` to end it."""

    url: str
    admin_url: str
    address: Address
    tls: ssl.SSLContext
    ca: KeyPair
    stop: asyncio.Event
    done: "asyncio.Task[None]"


@asynccontextmanager
async def running(world: World, folder: Path, **settings: Any) -> AsyncIterator[Running]:
    """The server of `world` from its readiness to its end; settings by keyword.

    It serves the pair in `folder`, or writes one.
    """
    has_pair = (folder / "tls.crt").exists()
    ca = KeyPair((folder / "ca.crt").read_bytes(), b"") if has_pair else write_certificate(folder)
    chosen = replace(Settings(tls_dir=folder, listen=LOOPBACK, admin_listen=LOOPBACK), **settings)
    certificate = Certificate(folder, world.metrics, lambda: world.utc_now(), chosen.server_name, chosen.client_ca)
    token = BearerToken(chosen.admin_token_file) if chosen.admin_token_file else None
    health = Health(world.metrics, certificate.invalid_reason, certificate.reload_failure, token=token)
    endpoint = MutateEndpoint(
        world.dispatcher(), world.metrics, chosen, GatedCommit(world), world.now, world.extender, certificate.current
    )
    server = Server(chosen, certificate, endpoint, health, world.metrics)
    stop = asyncio.Event()
    ready: asyncio.Future[tuple[Address, Address]] = asyncio.get_running_loop().create_future()
    done = asyncio.create_task(server.run(stop, lambda *addresses: ready.set_result(addresses)))
    writing = asyncio.create_task(world.events.run()) if world.events else None
    done.add_done_callback(
        lambda task: None if ready.done() else ready.set_exception(task.exception() or AssertionError())
    )
    address, admin = await ready
    client_tls = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    try:
        yield Running(f"https://{address}/mutate", f"http://{admin}", address, client_tls, ca, stop, done)
    finally:
        stop.set()
        await done
        if writing is not None:
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing


async def connections_gone() -> None:
    """Return when the peers of closed connections have said goodbye too; only the loop's own socket is left then."""
    sockets = asyncio.get_running_loop()._selector  # type: ignore[attr-defined] # asyncio tells it nowhere else
    async with asyncio.timeout(10):
        while len(sockets.get_map()) > 1:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.01)


@contextmanager
def running_in_thread(world: World, folder: Path, **settings: Any) -> Iterator[Running]:
    """The same for tests without an event loop, such as those that wait for a kube-apiserver to call."""

    async def serve(started: Callable[[Running], None], stop: asyncio.Event) -> None:
        async with running(world, folder, **settings) as server:
            started(server)
            await stop.wait()
        await connections_gone()

    with event_loop_in_thread("webhook", serve) as server:
        yield server


def review(pod: dict[str, Any] | None, **request: Any) -> dict[str, Any]:
    """Return the AdmissionReview of the creation of `pod`, as the API server sends it."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    asked = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "namespace": "team-a",
        "operation": "CREATE",
        "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked | request}


def review_bytes(pod: dict[str, Any] | None, **request: Any) -> bytes:
    """Return the same as the body of a request."""
    return orjson.dumps(review(pod, **request))
