"""A process of `serve`, and a client of it."""

import json
import os
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.programs.programs import forked
from tests.support.servers.server import write_certificate

LOOPBACK = "127.0.0.1:0"


@pytest.fixture(scope="module")
def tls_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    write_certificate(folder)
    return folder


@dataclass(frozen=True, slots=True)
class Served:
    """A running server and its addresses."""

    process: subprocess.Popen[bytes]
    url: str
    admin_url: str
    event: dict[str, Any]


@contextmanager
def serving(tls_dir: Path, *arguments: object, program: Sequence[str] = (), **environment: str) -> Iterator[Served]:
    """`serve` on free ports of loopback, until the end of the block."""
    command = [*(program or [forked()]), "serve", "--listen", LOOPBACK, "--admin-listen", LOOPBACK]
    with subprocess.Popen(
        [*command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PLACEMENT_WEBHOOK_TLS_DIR": str(tls_dir)} | environment,
    ) as process:
        assert process.stderr is not None
        try:
            event = json.loads(process.stderr.readline())
            assert event["event"] == "serving"
            yield Served(process, f"https://{event['webhook']}/mutate", f"http://{event['admin']}", event)
        finally:
            process.kill()


def post(served: Served, tls_dir: Path, body: bytes) -> dict[str, Any]:
    request = urllib.request.Request(served.url + "?timeout=5s", body, {"Content-Type": "application/json"})
    trust = ssl.create_default_context(cafile=str(tls_dir / "ca.crt"))
    with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
        response: dict[str, Any] = orjson.loads(answer.read())["response"]
    return response
