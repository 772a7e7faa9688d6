"""The admin port sends the audit file of its replica to callers that have the token."""

import asyncio
import io
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import pytest

from tests.support.programs.audit_records import make_record
from tests.support.servers.server import LOOPBACK
from webhook.audit.archive import write_archive
from webhook.audit.writer import AuditWriter
from webhook.runtime.metrics import Metrics
from webhook.serving.http.arrivals import Limits
from webhook.serving.http.audit_archive import AuditArchive
from webhook.serving.http.bearer_token import BearerToken
from webhook.serving.http.health import Health
from webhook.serving.http.listener import Listener

LIMITS = Limits(most=8, most_per_address=8, head_seconds=60.0, keepalive_seconds=60.0)
TOKEN = {"Authorization": "Bearer s3cret"}


def asked(health: Health, *calls: tuple[str, str, dict[str, str]]) -> Sequence[tuple[int, bytes]]:
    """Return status and body of each call: a method, a path and headers."""

    async def run() -> Sequence[tuple[int, bytes]]:
        listener, found = Listener(health.answer, LIMITS), []
        address = await listener.start("--admin-listen", LOOPBACK)
        async with aiohttp.ClientSession() as session:
            for method, path, headers in calls:
                async with session.request(method, f"http://{address}{path}", headers=headers) as response:
                    found.append((response.status, await response.read()))
        await listener.close(0)
        return found

    return asyncio.run(run())


def health_with(folder: Path, path: str) -> Health:
    (folder / "token").write_text("s3cret")
    return Health(Metrics(), str, token=BearerToken(folder / "token"), audit=AuditArchive(path))


@pytest.fixture
def audit_file(tmp_path: Path) -> Path:
    """A file of several rotated ones."""
    path = tmp_path / "audit.jsonl"
    with AuditWriter(path, max_bytes=20_000) as writer:
        for number in range(100):
            writer.write(make_record(number))
    return path


def test_the_archive_is_that_of_audit_export(tmp_path: Path, audit_file: Path) -> None:
    exported = io.BytesIO()
    write_archive(audit_file, exported)

    calls = [("GET", "/audit", TOKEN)] * 2
    answers = asked(health_with(tmp_path, str(audit_file)), *calls)

    assert answers == [(200, exported.getvalue())] * 2
    assert len(exported.getvalue()) > 3 * 20_000


def test_old_files_are_left_out(tmp_path: Path, audit_file: Path) -> None:
    health = health_with(tmp_path, str(audit_file))
    (_, whole), (status, part) = asked(health, ("GET", "/audit", TOKEN), ("GET", "/audit?since=2030-01-01", TOKEN))
    assert status == 200
    assert 0 < len(part) < len(whole)


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        pytest.param("GET", "/audit", {}, 401, id="no token"),
        pytest.param("GET", "/audit", {"Authorization": "Bearer other"}, 401, id="another token"),
        pytest.param("GET", "/audit?since=soon", TOKEN, 400, id="no time"),
        pytest.param("HEAD", "/audit", TOKEN, 405, id="no body"),
    ],
)
def test_other_calls_are_refused(
    tmp_path: Path, audit_file: Path, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    ((found, _),) = asked(health_with(tmp_path, str(audit_file)), (method, path, headers))
    assert found == status


def test_records_that_are_printed_are_not_there(tmp_path: Path) -> None:
    ((status, text),) = asked(health_with(tmp_path, "-"), ("GET", "/audit", TOKEN))
    assert (status, text) == (404, b"the records are printed: read the log of the container\n")


def test_without_a_token_file_no_one_gets_the_records(audit_file: Path) -> None:
    health = Health(Metrics(), str, audit=AuditArchive(str(audit_file)))
    ((status, text),) = asked(health, ("GET", "/audit", TOKEN))
    assert (status, text) == (403, b"the audit file is sent with a token alone: set --admin-token-file\n")


def test_one_archive_is_sent_at_a_time(tmp_path: Path, audit_file: Path) -> None:
    archive = AuditArchive(str(audit_file))
    archive._is_busy = True
    health = health_with(tmp_path, str(audit_file))
    health._audit = archive
    ((status, _),) = asked(health, ("GET", "/audit", TOKEN))
    assert status == 503
