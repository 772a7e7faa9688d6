"""With a client CA, the webhook's port answers only clients whose certificate is of it and has an allowed name."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import structlog
from structlog.testing import capture_logs

from certs.cluster.probe import Outcome, probe
from certs.pki import KeyPair, issue_ca
from certs.registration import Endpoint
from tests.support.admission import TYPE
from tests.support.objects.builders import make_pod
from tests.support.servers.server import Running, World, review_bytes, running, utc_now
from tests.support.tls.client_certificates import issue_client, presenting
from webhook.admission.cluster_view import ClusterView
from webhook.cli.commands.serve.serve_command import _check_clients
from webhook.cluster.snapshot import Snapshot
from webhook.placement.profiles.profile import PACK_GPUS
from webhook.serving.extender.extender_endpoint import Extender
from webhook.serving.http.clients import _names

REVIEW = review_bytes(make_pod("trainer").annotate(TYPE, "training").obj())
JSON = {"Content-Type": "application/json"}
CA, OTHER_CA = issue_ca(now=utc_now()), issue_ca(now=utc_now())
API_SERVER = issue_client(CA, "kube-apiserver-1", ("apiserver.example.com",))


@dataclass(frozen=True, slots=True)
class Server:
    """A server that requires certificates of `CA`."""

    running: Running
    world: World
    folder: Path

    def session(self, client: KeyPair | None) -> aiohttp.ClientSession:
        """Return a session of a client that presents `client`."""
        tls = presenting(self.folder / "ca.crt", client, self.folder)
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls))

    async def answered(self, client: KeyPair) -> None:
        """Return once `client` is let in: the files are read again at an interval."""
        while True:
            with suppress(aiohttp.ClientError):
                if (await self.post(client))[0] == 200:
                    return

    async def readiness(self) -> tuple[int, str]:
        url = f"{self.running.admin_url}/readyz"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status, await response.text()

    async def post(self, client: KeyPair | None, path: str = "/mutate") -> tuple[int, str]:
        async with self.session(client) as session:
            url = self.running.url.removesuffix("/mutate") + path
            async with session.post(url, data=REVIEW, headers=JSON) as response:
                return response.status, await response.text()


def with_server(story: Callable[[Server], Awaitable[None]], folder: Path, *names: str) -> World:
    world = World()
    view = ClusterView(Snapshot.of(()), None)
    world.extender = Extender(lambda: PACK_GPUS, lambda: view, world.metrics, world.clock)
    (folder / "clients.crt").write_bytes(CA.certificate)

    async def run() -> None:
        settings = {"client_ca": folder / "clients.crt", "client_names": names, "certificate_poll_seconds": 0.01}
        async with running(world, folder, **settings) as server, asyncio.timeout(60):
            await story(Server(server, world, folder))

    asyncio.run(run())
    return world


@pytest.mark.parametrize("names", [(), ("kube-apiserver-*",), ("front-proxy", "*.example.com")], ids=str)
def test_a_client_with_an_allowed_certificate_is_answered_and_on_record(names: tuple[str, ...], tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        status, _ = await server.post(API_SERVER)
        assert status == 200

    world = with_server(story, tmp_path, *names)

    assert [record.client for record in world.records] == ["kube-apiserver-1"]


@pytest.mark.parametrize("path", ["/mutate", "/extender/filter", "/extender/prioritize"])
def test_a_client_without_a_certificate_is_refused_before_its_request_is_read(path: str, tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        status, text = await server.post(None, path)
        assert (status, text.partition(":")[0]) == (403, "no client certificate")

    world = with_server(story, tmp_path)

    assert world.records == []
    assert world.count("http_refused_requests_total", code="403") == 1


@pytest.mark.parametrize("client", [None, issue_client(CA, "another")], ids=["no certificate", "another name"])
def test_the_connection_of_a_client_that_is_refused_is_closed(client: KeyPair | None, tmp_path: Path) -> None:
    """A client that may not call keeps none of the connections, whose number is limited."""

    async def story(server: Server) -> None:
        url = server.running.url
        async with server.session(client) as session, session.post(url, data=REVIEW, headers=JSON) as response:
            assert (response.status, response.headers.get("Connection")) == (403, "close")

    with_server(story, tmp_path, "kube-apiserver-*")


def test_a_certificate_with_another_name_is_refused_with_its_names_and_logged(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        status, text = await server.post(API_SERVER)
        names = "kube-apiserver-1, apiserver.example.com"
        assert (status, text) == (403, f"the client certificate of {names} has no name that --client-name allows\n")

    with structlog.testing.capture_logs() as logs:
        world = with_server(story, tmp_path, "front-proxy")

    (line,) = [each for each in logs if each["event"] == "client refused"]
    assert line["address"] == "127.0.0.1"
    assert "kube-apiserver-1" in line["reason"]
    assert world.count("http_refused_requests_total", code="403") == 1


def test_a_certificate_of_another_ca_ends_the_handshake_and_is_counted(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        with pytest.raises(aiohttp.ClientError):
            await server.post(issue_client(OTHER_CA, "kube-apiserver-1"))
        assert (await server.post(API_SERVER))[0] == 200

    with structlog.testing.capture_logs() as logs:
        world = with_server(story, tmp_path)

    assert world.count("connections_closed_total", port="webhook", result="untrusted") == 1
    assert [each["reason"] for each in logs if each["event"] == "client certificate refused"]
    assert len(world.records) == 1


@pytest.mark.slow
def test_refusals_are_logged_so_many_times(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        for _ in range(30):
            await server.post(None)

    with structlog.testing.capture_logs() as logs:
        with_server(story, tmp_path)

    assert len([each for each in logs if each["event"] == "client refused"]) == 20


def test_a_probe_without_a_certificate_reads_what_is_served(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        address = server.running.address
        endpoint = Endpoint(address.host, address.port, "localhost")
        found = await asyncio.to_thread(probe, endpoint, (server.folder / "ca.crt").read_bytes())
        assert found.outcome is Outcome.TRUSTED, found

    with_server(story, tmp_path)


def test_a_changed_ca_counts_for_new_connections_and_ends_the_others_after_an_answer(tmp_path: Path) -> None:
    new = issue_client(OTHER_CA, "kube-apiserver-2")

    async def story(server: Server) -> None:
        async with server.session(API_SERVER) as session:
            async with session.post(server.running.url, data=REVIEW, headers=JSON) as response:
                assert (response.status, response.headers.get("Connection")) == (200, None)
            (server.folder / "clients.crt").write_bytes(OTHER_CA.certificate)
            await server.answered(new)
            async with session.post(server.running.url, data=REVIEW, headers=JSON) as response:
                assert (response.status, response.headers.get("Connection")) == (200, "close")
        with pytest.raises(aiohttp.ClientError):
            await server.post(API_SERVER)

    world = with_server(story, tmp_path)

    assert [record.client for record in world.records] == ["kube-apiserver-1", "kube-apiserver-2", "kube-apiserver-1"]


def test_a_bad_ca_file_leaves_the_last_good_one_in_force(tmp_path: Path) -> None:
    async def story(server: Server) -> None:
        (server.folder / "clients.crt").write_text("nonsense")
        while "--client-ca" not in (await server.readiness())[1]:
            assert (await server.readiness())[0] == 200
        assert (await server.post(API_SERVER))[0] == 200

    with_server(story, tmp_path)


@pytest.mark.parametrize(
    ("client_ca", "names", "warnings"),
    [
        pytest.param(Path("ca.crt"), (), 1, id="every client of the CA is answered"),
        pytest.param(Path("ca.crt"), ("kube-apiserver-*",), 0, id="names are given"),
        pytest.param(None, (), 0, id="no certificate is required"),
    ],
)
def test_a_ca_without_names_is_warned_of(client_ca: Path | None, names: tuple[str, ...], warnings: int) -> None:
    with capture_logs() as logs:
        settings = {"client_ca": client_ca, "client_names": names, "extender_profile": "none"}
        _check_clients(frozenset({"no_cluster"}), settings)
    assert [each["event"] for each in logs] == ["--client-ca without --client-name"] * warnings


def test_all_names_of_a_certificate_count_except_other_parts_of_the_subject() -> None:
    subject = ((("organizationName", "example"),), (("commonName", "client\n"),))
    alternatives = (("DNS", "a.example.com"), ("URI", "spiffe://a/b"), ("email", "a@b"), ("IP Address", "10.0.0.1"))

    found = [*_names({"subject": subject, "subjectAltName": (*alternatives, ("DirName", "x"))})]

    assert found == [r"client\n", "a.example.com", "spiffe://a/b", "a@b", "10.0.0.1"]
    assert [*_names({})] == []
