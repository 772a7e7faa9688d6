"""Each TLS client trusts what Go's clients trust, also where Python is stricter, and nothing else.

From Python 3.13 on, new contexts are strict; these tests make them so on older releases, too.
"""

import asyncio
import base64
import os
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import urllib3.util.ssl_
from aiohttp import web

from certs.pki import KeyPair
from tests.support.servers.http_server import http_server
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.loopback import server_context
from tests.support.tls.pairs import MadePair, pairs
from webhook.cli.inputs import manifests
from webhook.documents.field import InvalidInput
from webhook.watch.api_errors import UnreachableError
from webhook.watch.api_server import ClientConfig

MADE = {pair.name: pair for pair in pairs()}
OF_OPENSSL, OF_EKS = MADE["ca-of-req-x509"], MADE["no-key-identifiers"]
TRUSTED = pytest.mark.parametrize("pair", pairs("trusted"), ids=lambda pair: pair.name)
UNTRUSTED = pytest.mark.parametrize("pair", pairs("untrusted"), ids=lambda pair: pair.name)


@pytest.fixture(autouse=True)
def strict_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make new contexts as Python 3.13 does."""

    def strict(make: Callable[..., ssl.SSLContext]) -> Callable[..., ssl.SSLContext]:
        def made(*args: Any, **kwargs: Any) -> ssl.SSLContext:
            context = make(*args, **kwargs)
            context.verify_flags |= ssl.VERIFY_X509_STRICT
            return context

        return made

    monkeypatch.setattr(ssl, "create_default_context", strict(ssl.create_default_context))
    make_context = strict(urllib3.util.ssl_.create_urllib3_context)
    monkeypatch.setattr("urllib3.connection.create_urllib3_context", make_context)


def tls_of(pair: MadePair) -> ssl.SSLContext:
    return server_context(KeyPair(pair.files["tls.crt"].encode(), pair.files["tls.key"].encode()))


async def answer(_: web.Request) -> web.StreamResponse:
    return web.json_response({"kind": "Node"})


def read(folder: Path, pair: MadePair, ca: str, options: Mapping[str, object] | None = None) -> None:
    """Read an object of a server with the certificate of `pair`."""
    trust = {"certificate-authority-data": base64.b64encode(ca.encode()).decode()} if ca else {}

    async def run() -> None:
        async with http_server(answer, tls_of(pair)) as url:
            kubeconfig = write_kubeconfig(folder, url, cluster=trust | dict(options or {}))
            async with ClientConfig(kubeconfig).connect() as api:
                assert await api.get("/api/v1/nodes/n", {}) == {"kind": "Node"}

    asyncio.run(run())


@TRUSTED
def test_api_server_that_kubectl_trusts_is_read(pair: MadePair, tmp_path: Path) -> None:
    read(tmp_path, pair, pair.files["ca.crt"])


@UNTRUSTED
def test_api_server_that_kubectl_rejects_is_not_read(pair: MadePair, tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="certificate verify failed"):
        read(tmp_path, pair, pair.files["ca.crt"])


@pytest.mark.parametrize("pair", [OF_OPENSSL, OF_EKS], ids=lambda pair: pair.name)
def test_api_server_of_another_ca_or_name_is_not_read(pair: MadePair, tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="certificate verify failed"):
        read(tmp_path, pair, MADE["rsa-pkcs8"].files["ca.crt"])
    with pytest.raises(UnreachableError, match=r"certificate verify failed.*127\.0\.0\.2"):
        read(tmp_path, pair, pair.files["ca.crt"], {"tls-server-name": "127.0.0.2"})


def test_options_of_the_kubeconfig_still_hold(tmp_path: Path) -> None:
    read(tmp_path, MADE["other-name"], "", {"insecure-skip-tls-verify": True})
    with pytest.raises(UnreachableError, match="certificate verify failed"):
        read(tmp_path, OF_OPENSSL, "")


@pytest.fixture
def system_trust(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Make a CA the only one of the system."""

    def trust(ca: str) -> None:
        file = tmp_path / "system.pem"
        file.write_text(ca)
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        monkeypatch.setenv("SSL_CERT_DIR", os.devnull)

    return trust


def called(pair: MadePair, call: Callable[[str], object]) -> None:
    async def run() -> None:
        async with http_server(answer, tls_of(pair)) as url:
            await asyncio.to_thread(call, url)

    asyncio.run(run())


@pytest.mark.parametrize("pair", [OF_OPENSSL, OF_EKS], ids=lambda pair: pair.name)
def test_manifests_are_downloaded_from_a_server_of_a_trusted_ca(
    pair: MadePair, system_trust: Callable[[str], None]
) -> None:
    system_trust(pair.files["ca.crt"])
    called(pair, manifests._download)
    system_trust(MADE["rsa-pkcs8"].files["ca.crt"])
    with pytest.raises(InvalidInput, match="certificate verify failed"):
        called(pair, manifests._download)
