"""A renewed certificate is served without a restart; an invalid one leaves the last good one in use."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
import structlog
import uvloop
from cryptography import x509

from certs.pki import SERVER_VALIDITY, KeyPair, issue_ca, issue_server
from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.servers.server import (
    Running,
    World,
    issued,
    review_bytes,
    running,
    utc_now,
    write_certificate,
    write_pair,
)
from tests.support.tls.certificates import encrypted
from tests.support.tls.pairs import pairs
from webhook.documents.field import InvalidInput
from webhook.runtime.metrics import Metrics
from webhook.runtime.settings import Address
from webhook.serving.http.certificate import Certificate

REVIEW = review_bytes(make_pod("trainer").annotate(TYPE, "training").obj())
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
POLL_SECONDS = 0.01


def mount(folder: Path, pair: KeyPair) -> None:
    """Make `folder` a mounted Secret with `pair`, or swap the pair of one, as the kubelet does.

    Source: k8s.io/kubernetes/pkg/volume/util/atomic_writer.go
    """
    made = folder / f"..{len(list(folder.iterdir()))}"
    made.mkdir()
    write_pair(made, pair)
    swapped = folder / "..data_tmp"
    swapped.symlink_to(made.name)
    swapped.replace(folder / "..data")
    for name in ("tls.crt", "tls.key"):
        path = folder / name
        if not path.is_symlink():
            path.unlink(missing_ok=True)
            path.symlink_to(f"..data/{name}")


class Caller:
    """One connection of a client that trusts the CA in `folder`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def calling(cls, address: Address, folder: Path) -> "Caller":
        """A connection to `address`."""
        trust = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        return cls(*await asyncio.open_connection(address.host, address.port, ssl=trust))

    @property
    def tls(self) -> ssl.SSLObject:
        """The connection's TLS."""
        found: ssl.SSLObject = self._writer.get_extra_info("ssl_object")
        return found

    @property
    def serial(self) -> int:
        """The serial number of the certificate that was served."""
        return x509.load_der_x509_certificate(self.tls.getpeercert(binary_form=True) or b"").serial_number

    async def is_answered(self) -> bool:
        """Return whether an admission is answered on this connection."""
        head = b"POST /mutate HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\n"
        self._writer.write(head + b"Content-Length: %d\r\n\r\n" % len(REVIEW) + REVIEW)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await self._reader.readexactly(length)
        return answer.startswith(b"HTTP/1.1 200")

    async def hang_up(self) -> None:
        """Close it."""
        self._writer.close()
        await self._writer.wait_closed()


async def served(server: Running, folder: Path) -> int:
    """The serial number of the certificate that a new connection gets."""
    caller = await Caller.calling(server.address, folder)
    serial = caller.serial
    await caller.hang_up()
    return serial


def serial_of(pair: KeyPair) -> int:
    return x509.load_pem_x509_certificate(pair.certificate).serial_number


def run(loop: str, story: Awaitable[None]) -> None:
    async def with_timeout() -> None:
        async with asyncio.timeout(30):
            await story

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(with_timeout())


@pytest.mark.parametrize("replace", [write_pair, mount], ids=["in place", "by symlink swap"])
@pytest.mark.parametrize("loop", LOOPS)
def test_renewed_pair_is_served_while_connections_stay_open(
    tmp_path: Path, loop: str, replace: Callable[[Path, KeyPair], None]
) -> None:
    world = World()

    async def story() -> None:
        async with running(world, tmp_path, certificate_poll_seconds=POLL_SECONDS) as server:
            replace(tmp_path, issued(server.ca))
            caller = await Caller.calling(server.address, tmp_path)
            assert await caller.is_answered()
            pairs = [issued(server.ca) for _ in range(3)]
            for renewed in pairs:
                replace(tmp_path, renewed)
                while await served(server, tmp_path) != serial_of(renewed):
                    assert await caller.is_answered()
            assert await caller.is_answered()
            assert caller.serial not in map(serial_of, pairs)
            await caller.hang_up()

    run(loop, story())
    assert world.count("certificate_reloads_total", result="success") in (3, 4)


@pytest.mark.parametrize("loop", LOOPS)
def test_no_session_resumes_with_the_old_certificate(tmp_path: Path, loop: str) -> None:
    async def story() -> None:
        async with running(World(), tmp_path) as server:
            caller = await Caller.calling(server.address, tmp_path)
            assert caller.tls.version() == "TLSv1.3"
            assert await caller.is_answered()
            assert caller.tls.session is not None
            assert not caller.tls.session.has_ticket
            await caller.hang_up()

    run(loop, story())


@dataclass
class Served:
    """A certificate with its files, clock, metrics and log."""

    folder: Path
    ca: KeyPair
    metrics: Metrics = field(default_factory=Metrics)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    certificate: Certificate = field(init=False)

    def __post_init__(self) -> None:
        self.certificate = Certificate(self.folder, self.metrics, lambda: self.now)

    def reload(self) -> list[tuple[str, str]]:
        """Look at the files, and the log of that."""
        with structlog.testing.capture_logs() as logs:
            self.certificate.reload()
        return [(each["log_level"], each["event"].partition(":")[0]) for each in logs]

    def value(self, name: str, **labels: str) -> float | None:
        """The value of a metric."""
        return self.metrics.registry.get_sample_value(f"placement_webhook_certificate_{name}", labels)

    def serial(self) -> int:
        """The serial number of the certificate that a client gets now; the client trusts the CA."""
        client, server = ssl.MemoryBIO(), ssl.MemoryBIO()
        trust = ssl.create_default_context(cadata=self.ca.certificate.decode())
        trust.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        theirs = trust.wrap_bio(server, client, server_hostname="localhost")
        ours = self.certificate.context.wrap_bio(client, server, server_side=True)
        sides: list[ssl.SSLObject] = [theirs, ours]
        while sides:
            side = sides.pop(0)
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                sides.append(side)
        return x509.load_der_x509_certificate(theirs.getpeercert(binary_form=True) or b"").serial_number


@pytest.fixture
def at_work(tmp_path: Path) -> Served:
    return Served(tmp_path, write_certificate(tmp_path))


FAILURE = ("error", "the certificate cannot be reloaded and the last good one is served")


def _half(content: bytes) -> bytes:
    return content[: len(content) // 2]


SPOILED: dict[str, Callable[[KeyPair], dict[str, bytes | None]]] = {
    "certificate of another key": lambda pair: {"tls.crt": pair.certificate},
    "key of another certificate": lambda pair: {"tls.key": pair.key},
    "certificate half written": lambda pair: {"tls.crt": _half(pair.certificate), "tls.key": pair.key},
    "key half written": lambda pair: {"tls.crt": pair.certificate, "tls.key": _half(pair.key)},
    "certificate truncated": lambda pair: {"tls.crt": b"", "tls.key": pair.key},
    "key not written yet": lambda pair: {"tls.crt": pair.certificate, "tls.key": None},
    "certificate in another form": lambda pair: {
        "tls.crt": pair.certificate.replace(b" CERTIFICATE", b" TRUSTED CERTIFICATE"),
        "tls.key": pair.key,
    },
    "no PEM": lambda _: {"tls.crt": b"\x30\x82", "tls.key": b"\0"},
    "key encrypted": lambda pair: {"tls.crt": pair.certificate, "tls.key": encrypted(pair.key)},
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_bad_pair_leaves_the_last_good_one_in_use(
    at_work: Served, spoil: Callable[[KeyPair], dict[str, bytes | None]]
) -> None:
    before, renewed = at_work.serial(), issued(at_work.ca)
    for name, content in spoil(renewed).items():
        (at_work.folder / name).unlink()
        if content is not None:
            (at_work.folder / name).write_bytes(content)

    assert [at_work.reload() for _ in range(3)] == [[FAILURE], [], []]
    assert at_work.serial() == before
    assert at_work.value("reloads_total", result="failure") == 3
    assert at_work.value("reloads_total", result="success") == 0

    write_pair(at_work.folder, renewed)
    assert at_work.reload() == [("info", "certificate reloaded")]
    assert at_work.serial() == serial_of(renewed)
    assert at_work.value("reloads_total", result="success") == 1


def test_another_failure_is_logged_too(at_work: Served) -> None:
    (at_work.folder / "tls.key").unlink()
    assert at_work.reload() == [FAILURE]
    (at_work.folder / "tls.crt").unlink()
    assert [at_work.reload(), at_work.reload()] == [[FAILURE], []]


def test_restored_good_pair_is_served(at_work: Served) -> None:
    key = (at_work.folder / "tls.key").read_bytes()
    (at_work.folder / "tls.key").write_bytes(b"")
    assert at_work.reload() == [FAILURE]
    (at_work.folder / "tls.key").write_bytes(key)
    assert at_work.reload() == []
    (at_work.folder / "tls.key").write_bytes(b"")
    assert at_work.reload() == [FAILURE]


def test_changed_ca_of_clients_makes_one_new_context_with_the_newest_pair(at_work: Served) -> None:
    """Each change closes the connections of the context before it. The pair can be renewed, or fail, with it."""
    client_ca = at_work.folder / "clients.crt"
    client_ca.write_bytes(at_work.ca.certificate)
    at_work.certificate = Certificate(at_work.folder, at_work.metrics, lambda: at_work.now, client_ca=client_ca)
    first = at_work.certificate.context
    assert (at_work.reload(), at_work.certificate.current()) == ([], first)

    renewed = issued(at_work.ca)
    write_pair(at_work.folder, renewed)
    assert (at_work.reload(), at_work.certificate.current()) == ([("info", "certificate reloaded")], first)

    client_ca.write_bytes(issue_ca(now=at_work.now).certificate)
    assert at_work.reload() == [("info", "CA of clients reloaded")]
    second = at_work.certificate.current()
    assert second is not first
    assert at_work.serial() == serial_of(renewed)
    assert at_work.value("reloads_total", result="success") == 2

    for _time in range(2):
        assert (at_work.reload(), at_work.certificate.current()) == ([], second)
    client_ca.write_bytes(b"")
    assert [at_work.reload() for _ in range(2)] == [[FAILURE], []]
    assert at_work.certificate.current() is second
    assert at_work.value("reloads_total", result="success") == 2


def test_unchanged_pair_is_not_loaded_again(at_work: Served) -> None:
    assert at_work.reload() == []
    write_pair(at_work.folder, KeyPair(*((at_work.folder / name).read_bytes() for name in ("tls.crt", "tls.key"))))
    assert at_work.reload() == []
    assert at_work.value("reloads_total", result="success") == 0


def test_metrics_follow_the_pair(at_work: Served) -> None:
    first = at_work.value("not_after_timestamp_seconds"), at_work.value("not_before_timestamp_seconds")
    renewed = issued(at_work.ca, datetime.now(UTC) - timedelta(days=1))
    write_pair(at_work.folder, renewed)
    at_work.reload()
    held = x509.load_pem_x509_certificate(renewed.certificate)
    now = at_work.value("not_after_timestamp_seconds"), at_work.value("not_before_timestamp_seconds")
    assert now == (held.not_valid_after_utc.timestamp(), held.not_valid_before_utc.timestamp())
    assert now != first


def test_a_certificate_is_trusted_in_its_first_and_in_its_last_second(at_work: Served) -> None:
    held = x509.load_pem_x509_certificate((at_work.folder / "tls.crt").read_bytes())
    second, reasons = timedelta(seconds=1), []
    for now in (
        held.not_valid_before_utc - second,
        held.not_valid_before_utc,
        held.not_valid_after_utc,
        held.not_valid_after_utc + second,
    ):
        at_work.now = now
        reasons.append(at_work.certificate.invalid_reason().partition(":")[0])
    assert reasons == ["the certificate is not valid yet", "", "", "the certificate has expired"]


def test_expiry_is_logged_once_and_again_when_it_changes(at_work: Served) -> None:
    days = {0: [], 340: [("warning", "the certificate expires soon")], 366: [("error", "the certificate has expired")]}
    began = at_work.now
    for after, logged in days.items():
        at_work.now = began + timedelta(days=after)
        assert [at_work.reload(), at_work.reload()] == [logged, []]
    assert at_work.certificate.invalid_reason() == "the certificate has expired: no API server trusts it"

    write_pair(at_work.folder, issued(at_work.ca, at_work.now))
    assert at_work.reload() == [("info", "certificate reloaded")]
    assert at_work.certificate.invalid_reason() == ""


def test_certificate_of_tomorrow_is_logged_until_it_is_valid(tmp_path: Path) -> None:
    ca = write_certificate(tmp_path, timedelta(days=-1))
    at_work = Served(tmp_path, ca)
    assert at_work.reload() == []
    assert at_work.certificate.invalid_reason() == "the certificate is not valid yet: no API server trusts it"
    at_work.now += timedelta(days=2)
    assert [at_work.reload(), at_work.reload()] == [[("info", "the certificate is valid")], []]
    assert at_work.certificate.invalid_reason() == ""


async def readiness(server: Running) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.get(server.admin_url + "/readyz") as response:
        return response.status, await response.text()


def test_readiness_follows_the_certificate(tmp_path: Path) -> None:
    world = World()
    later = datetime.now(UTC) + SERVER_VALIDITY + timedelta(days=1)

    async def story() -> None:
        async with running(world, tmp_path, certificate_poll_seconds=POLL_SECONDS) as server:
            assert await readiness(server) == (200, "ok\n")
            world.utc_now = lambda: later
            text = "not ready: the certificate has expired: no API server trusts it\n"
            assert await readiness(server) == (503, text)
            write_pair(tmp_path, issued(server.ca, later))
            while (await readiness(server))[0] == 503:
                pass
            assert await readiness(server) == (200, "ok\n")

    run("asyncio", story())


def test_an_error_in_a_reload_does_not_stop_the_polling(tmp_path: Path) -> None:
    world = World()

    def fail() -> datetime:
        raise RuntimeError("no clock")

    async def story() -> None:
        async with running(world, tmp_path, certificate_poll_seconds=POLL_SECONDS) as server:
            world.utc_now = fail
            while world.count("certificate_reloads_total", result="failure") < 3:
                await served(server, tmp_path)
            world.utc_now = utc_now
            renewed = issued(server.ca)
            write_pair(tmp_path, renewed)
            while await served(server, tmp_path) != serial_of(renewed):
                pass

    with structlog.testing.capture_logs() as logs:
        run("asyncio", story())
    failures = [each["error"] for each in logs if each["log_level"] == "error"]
    assert failures == ["internal error: RuntimeError('no clock')"]


def test_pair_that_cannot_be_served_is_rejected_at_the_start(tmp_path: Path) -> None:
    ca = write_certificate(tmp_path)
    (tmp_path / "tls.key").write_bytes(issued(ca).key)
    with pytest.raises(InvalidInput, match="must be PEM and belong together, the key unencrypted: KEY_VALUES_MISMATCH"):
        Certificate(tmp_path, Metrics(), lambda: datetime.now(UTC))


def pair_for(ca: KeyPair, name: str) -> KeyPair:
    return issue_server(ca, dns_names=[name], now=utc_now())


def test_readiness_says_that_changed_files_are_not_served(tmp_path: Path) -> None:
    """The replica stays ready: API servers trust the pair that is served."""
    world = World()

    async def story() -> None:
        async with running(world, tmp_path, certificate_poll_seconds=POLL_SECONDS) as server:
            key = (tmp_path / "tls.key").read_bytes()
            (tmp_path / "tls.key").write_bytes(issued(server.ca).key)
            while (answer := await readiness(server)) == (200, "ok\n"):
                pass
            assert answer[0] == 200
            assert answer[1].startswith("ok\nthe certificate cannot be reloaded and the last good one is served: ")
            assert "KEY_VALUES_MISMATCH" in answer[1]
            (tmp_path / "tls.key").write_bytes(key)
            while await readiness(server) != (200, "ok\n"):
                pass

    run("asyncio", story())


def test_server_is_ready_only_with_a_certificate_for_its_name(tmp_path: Path) -> None:
    name = "placement-webhook.team-a.svc"
    reason = f"the certificate is not valid for {name}, which API servers call, but for localhost, 127.0.0.1"

    async def story() -> None:
        async with running(World(), tmp_path, server_name=name, certificate_poll_seconds=POLL_SECONDS) as server:
            assert await readiness(server) == (503, f"not ready: {reason}\n")
            write_pair(tmp_path, pair_for(server.ca, name))
            while (await readiness(server))[0] == 503:
                pass
            assert await readiness(server) == (200, "ok\n")

    with structlog.testing.capture_logs() as logs:
        run("asyncio", story())
    assert ("error", reason) in [(log["log_level"], log["event"]) for log in logs]


def test_pair_for_another_name_is_served_instead_of_one_that_has_expired(tmp_path: Path) -> None:
    """No API server trusts either, and the fault of the new one is what to mend."""
    ca, later = write_certificate(tmp_path), timedelta()
    certificate = Certificate(tmp_path, Metrics(), lambda: utc_now() + later, "localhost")
    later = 2 * SERVER_VALIDITY
    write_pair(tmp_path, issue_server(ca, dns_names=["example.com"], now=utc_now() + later))
    certificate.reload()
    assert certificate.reload_failure() == ""
    assert "not valid for localhost" in certificate.invalid_reason()


def test_pair_for_another_name_leaves_the_last_good_one_in_use(tmp_path: Path) -> None:
    ca = write_certificate(tmp_path)
    certificate = Certificate(tmp_path, Metrics(), utc_now, "localhost")
    write_pair(tmp_path, pair_for(ca, "example.com"))
    certificate.reload()
    assert certificate.invalid_reason() == ""
    assert "the certificate is not valid for localhost, which API servers call, but for example.com" in (
        certificate.reload_failure()
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("common-name-only", "it has no subject alternative name, and the common name is not looked at"),
        ("client-only", "its extendedKeyUsage does not include serverAuth"),
    ],
)
def test_certificate_that_no_api_server_trusts_makes_the_server_unready(tmp_path: Path, name: str, reason: str) -> None:
    (pair,) = [each for each in pairs("untrusted") if each.name == name]
    certificate = Certificate(pair.write(tmp_path), Metrics(), utc_now)
    assert certificate.invalid_reason() == f"no API server trusts the certificate: {reason}"
