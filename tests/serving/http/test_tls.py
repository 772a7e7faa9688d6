"""The TLS of the server, the pairs of files that it takes, and the CAs of its clients."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from certs.pki import issue_ca
from tests.serving.story import with_server
from tests.support.servers.server import (
    Running,
    utc_now,
)
from tests.support.tls.certificates import encrypted, make_artifacts
from tests.support.tls.pairs import MadePair, pairs
from webhook.documents.field import InvalidInput
from webhook.runtime.metrics import Metrics
from webhook.serving.http.certificate import Certificate
from webhook.serving.http.tls import Pair, load, read_client_ca, read_pair, server_context, validity


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1], ids=lambda version: version.name)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls_before_1_2_is_rejected(tmp_path: Path, version: ssl.TLSVersion) -> None:
    async def story(server: Running, _: aiohttp.ClientSession) -> None:
        old = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = version
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection(server.address.host, server.address.port, ssl=old)

    with_server(story, tmp_path)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("sha-1", "the certificate is signed with SHA-1 or MD5, which API servers reject; sign it with SHA-256"),
        ("intermediate-first", "the server certificate must be the first in tls.crt"),
    ],
)
def test_pair_that_cannot_be_served_names_the_remedy(tmp_path: Path, name: str, remedy: str) -> None:
    (pair,) = [each for each in pairs("not served") if each.name == name]
    with pytest.raises(InvalidInput, match=remedy):
        Certificate(pair.write(tmp_path), Metrics(), utc_now)


@pytest.mark.parametrize("pair", pairs("trusted"), ids=lambda pair: pair.name)
def test_pair_of_other_tools_is_served(tmp_path: Path, pair: MadePair) -> None:
    certificate = Certificate(pair.write(tmp_path), Metrics(), utc_now)
    assert certificate.invalid_reason() == ""


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Make a handshake in memory.

    Raises:
        ssl.SSLError: one of the two rejects the other.
    """
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [server.wrap_bio(one, other, server_side=True), client.wrap_bio(other, one)]
    while sides:
        for side in tuple(sides):
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                continue


@pytest.mark.parametrize("name", ["ca-is-an-intermediate", "self-signed-of-req-x509"])
def test_a_client_needs_no_ca_above_those_in_the_file(tmp_path: Path, name: str) -> None:
    """Go verifies clients in the same way, so the CA file of an API server works here, too."""
    (made,) = [each for each in pairs("trusted") if each.name == name]
    folder = made.write(tmp_path)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.load_cert_chain(folder / "tls.crt", folder / "tls.key")

    handshake(server_context(read_pair(folder), read_client_ca(folder / "ca.crt")), client)

    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server_context(read_pair(folder), issue_ca(now=utc_now()).certificate.decode()), client)


@pytest.mark.parametrize(
    ("dns_names", "ip_addresses", "called", "is_valid"),
    [
        (("*.team.svc",), (), "webhook.team.svc", True),
        (("*.team.svc",), (), "a.webhook.team.svc", False),
        (("webhook.team.svc",), (), "Webhook.Team.svc", True),
        (("localhost",), ("10.0.0.1",), "10.0.0.1", True),
        (("localhost",), ("10.0.0.1",), "10.0.0.2", False),
        pytest.param(("localhost",), (), "", True, id="no name is required"),
    ],
)
def test_a_certificate_is_for_the_name_by_which_api_servers_call(
    dns_names: tuple[str, ...], ip_addresses: tuple[str, ...], called: str, is_valid: bool
) -> None:
    made = make_artifacts(dns_names=dns_names, ip_addresses=ip_addresses)
    pair = Pair(Path("tls"), made.certificate or b"", made.key or b"")

    fault = validity(pair, called).fault

    assert fault.startswith("" if is_valid else f"the certificate is not valid for {called}, which API servers call")
    assert bool(fault) is not is_valid


def test_all_files_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_pair(tmp_path)

    named = [str(each).partition("; ")[0] for each in caught.value.errors]
    assert named == [f'--tls-dir: Invalid value: "{tmp_path / name}"' for name in ("tls.crt", "tls.key")]


def test_a_passphrase_is_never_asked_for_on_the_terminal() -> None:
    """OpenSSL asks for that of an encrypted key if no password is given, and the server would wait."""
    given: list[str | None] = []

    class Context(ssl.SSLContext):
        def load_cert_chain(self, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
            given.append(password)
            super().load_cert_chain(certfile, keyfile, password)

    made = make_artifacts()
    pair = Pair(Path("tls"), made.certificate or b"", encrypted(made.key))
    with pytest.raises(InvalidInput, match="the key unencrypted: "):
        load(Context(ssl.PROTOCOL_TLS_SERVER), pair)
    assert given == [""]
