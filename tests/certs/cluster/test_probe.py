"""The probe reports whether an API server with a caBundle would trust the server."""

import asyncio
import base64
import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from certs.cluster.probe import Called, Outcome, call_webhooks, probe
from certs.cluster.register import probe_until_trusted
from certs.pki import KeyPair, issue_ca
from certs.registration import Endpoint
from tests.support.servers.loopback import closed_port, tls_server
from tests.support.tls.certificates import ALL_EXPIRED, FRESH, NOW, OTHER, ca_of, server_of, with_malformed_extension
from webhook.documents.field import InvalidInput

BUNDLE = ca_of(FRESH).certificate
UNREADABLE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def at(port: int, server_name: str = "localhost") -> Endpoint:
    return Endpoint("127.0.0.1", port, server_name)


@contextlib.contextmanager
def plain_server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(1024)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_the_right_server_is_trusted() -> None:
    with tls_server(server_of(FRESH)) as port:
        assert probe(at(port), BUNDLE).outcome is Outcome.TRUSTED


def test_one_ca_of_the_bundle_is_enough() -> None:
    with tls_server(server_of(FRESH)) as port:
        assert probe(at(port), issue_ca(now=NOW).certificate + BUNDLE).outcome is Outcome.TRUSTED


@pytest.mark.parametrize("bundle", [ca_of(OTHER).certificate, issue_ca(now=NOW).certificate])
def test_a_server_of_another_ca_is_untrusted(bundle: bytes) -> None:
    with tls_server(server_of(FRESH)) as port:
        assert probe(at(port), bundle).outcome is Outcome.UNTRUSTED


def test_an_empty_bundle_stands_for_the_roots_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (roots := tmp_path / "roots.crt").write_bytes(BUNDLE)
    monkeypatch.setenv("SSL_CERT_FILE", str(roots))
    with tls_server(server_of(FRESH)) as port:
        assert probe(at(port), b"").outcome is Outcome.TRUSTED


def test_a_server_with_another_name_is_untrusted() -> None:
    with tls_server(server_of(FRESH)) as port:
        found = probe(at(port, "webhook.team.svc"), BUNDLE)
    assert found.outcome is Outcome.UNTRUSTED
    assert "webhook.team.svc" in found.detail


def test_an_expired_server_is_untrusted() -> None:
    with tls_server(server_of(ALL_EXPIRED)) as port:
        assert probe(at(port), ca_of(ALL_EXPIRED).certificate).outcome is Outcome.UNTRUSTED


def test_a_server_without_tls_is_untrusted() -> None:
    with plain_server() as port:
        found = probe(at(port), BUNDLE)
    assert found.outcome is Outcome.UNTRUSTED
    assert found.detail.startswith("not a TLS server")


@pytest.mark.parametrize("bundle", [BUNDLE, b"\n", b""], ids=["a CA", "no CA", "empty"])
def test_closed_port_is_unreachable_under_any_bundle(bundle: bytes) -> None:
    assert probe(at(closed_port()), bundle).outcome is Outcome.UNREACHABLE


def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    assert probe(Endpoint("webhook.team.svc.invalid", 443, "x"), BUNDLE).outcome is Outcome.UNREACHABLE


@pytest.mark.parametrize(
    ("served", "sent"),
    [(server_of(FRESH), FRESH.certificate), (with_malformed_extension(), None)],
    ids=["good", "malformed"],
)
def test_the_certificate_that_a_server_sends_is_reported_if_it_can_be_read(served: KeyPair, sent: bytes | None) -> None:
    with tls_server(served) as port:
        webhook = {"clientConfig": {"url": f"https://localhost:{port}/mutate"}}
        (called,) = call_webhooks({"webhooks": [webhook]}, f"127.0.0.1:{port}")
    assert called is not None
    assert called.outcome is Outcome.UNTRUSTED
    assert (called.certificate and called.certificate.public_bytes(Encoding.PEM)) == sent


def test_each_webhook_is_judged_by_its_own_ca_bundle() -> None:
    """One that was edited alone rejects the server that the others trust."""
    with tls_server(server_of(FRESH)) as port:
        bundles = (BUNDLE, ca_of(OTHER).certificate, BUNDLE)
        url = f"https://localhost:{port}/mutate"
        clients = ({"url": url, "caBundle": base64.b64encode(bundle).decode()} for bundle in bundles)
        called = call_webhooks({"webhooks": [{"clientConfig": client} for client in clients]}, f"127.0.0.1:{port}")

    outcomes = [each and each.outcome for each in called]
    assert outcomes == [Outcome.TRUSTED, Outcome.UNTRUSTED, Outcome.TRUSTED]


@pytest.mark.slow
def test_a_server_that_starts_late_is_waited_for() -> None:
    port = closed_port()
    with contextlib.ExitStack() as stack:
        timer = threading.Timer(0.3, lambda: stack.enter_context(tls_server(server_of(FRESH), port)))
        timer.start()
        assert asyncio.run(probe_until_trusted(at(port), BUNDLE, 10)).outcome is Outcome.TRUSTED
        timer.join()


@pytest.mark.parametrize("outcome", Outcome)
def test_only_a_trusted_server_counts_as_trusted(outcome: Outcome) -> None:
    assert Called("a:1", outcome, "").trusted is (outcome is Outcome.TRUSTED)


class Attempts:
    """A probe with these outcomes in turn, and a clock that only pauses move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *outcomes: Outcome) -> None:
        self.now, self.at, self._outcomes = 100.0, list[float](), iter(outcomes)
        monkeypatch.setattr("certs.cluster.register.probe", self.probe)
        monkeypatch.setattr("certs.cluster.register.time.monotonic", lambda: self.now)
        monkeypatch.setattr("certs.cluster.register.asyncio.sleep", self.sleep)

    def probe(self, endpoint: Endpoint, _: bytes) -> Called:
        self.at.append(self.now - 100)
        return Called(str(endpoint), next(self._outcomes, Outcome.UNREACHABLE), "")

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("wait", "at"), [(0, [0]), (0.9, [0]), (1, [0, 1]), (2.5, [0, 1, 2])])
def test_a_server_is_probed_each_second_of_the_time_and_not_after_it(
    monkeypatch: pytest.MonkeyPatch, wait: float, at: list[float]
) -> None:
    attempts = Attempts(monkeypatch)
    assert asyncio.run(probe_until_trusted(Endpoint("a", 1, "a"), b"", wait)).outcome is Outcome.UNREACHABLE
    assert attempts.at == at


def test_a_server_that_is_not_trusted_yet_is_waited_for_as_one_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(monkeypatch, Outcome.UNREACHABLE, Outcome.UNTRUSTED, Outcome.TRUSTED)
    assert asyncio.run(probe_until_trusted(Endpoint("a", 1, "a"), b"", 60)).trusted
    assert attempts.at == [0, 1, 2]


def test_each_webhook_has_a_result_and_each_endpoint_is_probed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    probed: list[tuple[Endpoint, bytes]] = []

    def note(endpoint: Endpoint, bundle: bytes) -> Called:
        probed.append((endpoint, bundle))
        return Called(str(endpoint), Outcome.UNREACHABLE, "")

    monkeypatch.setattr("certs.cluster.probe.probe", note)
    service = {"service": {"name": "web", "namespace": "team"}}
    clients = [service, {"url": "http://a"}, {"url": "https://b:1/"}, service, {}, service | {"caBundle": "YQ=="}]
    configuration = {"webhooks": [{"clientConfig": client} for client in clients]}

    called = call_webhooks(configuration)
    elsewhere = call_webhooks(configuration, "c:9")

    assert [each and each.address for each in called] == [
        "web.team.svc:443",
        None,
        "b:1",
        "web.team.svc:443",
        None,
        "web.team.svc:443",
    ]
    assert [each and each.address for each in elsewhere] == ["c:9", None, "c:9", "c:9", None, "c:9"]
    of_service, of_url = Endpoint("web.team.svc", 443, "web.team.svc"), Endpoint("b", 1, "b")
    assert probed[:3] == [(of_service, b""), (of_url, b""), (of_service, b"a")]
    assert probed[3:] == [(Endpoint("c", 9, each.server_name), bundle) for each, bundle in probed[:3]]


def test_an_address_that_is_none_is_refused_also_where_no_webhook_is_called() -> None:
    assert call_webhooks({}) == []
    with pytest.raises(InvalidInput, match="--endpoint: Invalid value"):
        call_webhooks({}, "a")


def test_a_server_that_accepts_and_does_not_answer_is_unreachable_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("certs.cluster.probe._ATTEMPT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert probe(at(silent.getsockname()[1]), BUNDLE).outcome is Outcome.UNREACHABLE


def test_a_block_of_the_bundle_that_cannot_be_read_is_skipped() -> None:
    with tls_server(server_of(FRESH)) as port:
        assert [probe(at(port), each).trusted for each in (UNREADABLE + BUNDLE, BUNDLE + UNREADABLE)] == [True, True]


@pytest.mark.parametrize("bundle", [b"\n", UNREADABLE], ids=["placeholder", "no CA"])
def test_a_bundle_that_cannot_be_read_is_the_fault_and_not_the_server(bundle: bytes) -> None:
    with tls_server(server_of(FRESH)) as port:
        found = probe(at(port), bundle)
    assert (found.outcome, found.detail) == (Outcome.UNTRUSTED, "the caBundle cannot be read as certificates")
