"""A fake API server at the border: it keeps objects by their paths, over HTTP on loopback."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonpatch

from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.threads import LocalServer, served_in_thread

Object = dict[str, Any]
_JSON_PATCH, _MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"


def merged(content: Any, patch: Any) -> Any:
    """Return `content` with an RFC 7386 patch applied."""
    if not isinstance(patch, dict):
        return patch
    kept = content if isinstance(content, dict) else {}
    changed = {key: merged(kept.get(key), value) for key, value in patch.items() if value is not None}
    return {key: value for key, value in kept.items() if key not in patch} | changed


@dataclass
class FakeConfigurationApi:
    """The objects by path, and the requests that came: the path of each read, and of each write with its query.

    So many `conflicts` are still to come: each time, another client changes the object just before a JSON patch;
    `merge_conflicts` are those of merge patches.
    What is `created_meanwhile` is there, by path, just before the first write to it. The server refuses each path, or
    only `METHOD path`, with the status in `refused`, or else with `refuses` if it is not 0.
    """

    objects: dict[str, Object] = field(default_factory=dict)
    writes: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    conflicts: int = 0
    merge_conflicts: int = 0
    created_meanwhile: dict[str, Object] = field(default_factory=dict)
    refuses: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    refuses_once: int = 0
    url: str = ""

    def answer(self, method: str, target: str, content_type: str, body: bytes) -> tuple[int, Object]:
        """Return status and content."""
        url = urlsplit(target)
        found = self.objects.get(url.path)
        if method == "GET":
            self.reads.append(url.path)
        if self.refuses_once:
            status, self.refuses_once = self.refuses_once, 0
            return status, {"kind": "Status", "message": "because Busy"}
        if status := self.refused.get(f"{method} {url.path}", self.refused.get(url.path, self.refuses)):
            return status, {"kind": "Status", "message": "because Refused"}
        if method == "GET":
            return (200, found) if found else (404, {"kind": "Status", "message": "there is none"})
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.writes.append((url.path, query))
        if url.path in self.created_meanwhile:
            self.objects[url.path] = self.created_meanwhile.pop(url.path)
            return 409, {"kind": "Status", "message": "conflict with another manager"}
        written = json.loads(body)
        if content_type in (_JSON_PATCH, _MERGE_PATCH):
            assert found is not None
            is_list = content_type == _JSON_PATCH
            version = written[0]["value"] if is_list else written["metadata"]["resourceVersion"]
            if self._has_changed(found, version, is_list=is_list):
                return 409, {"kind": "Status", "message": "the object has been modified"}
            written = jsonpatch.apply_patch(found, written) if is_list else merged(found, written)
        written["metadata"]["resourceVersion"] = str(len(self.writes))
        if query.get("dryRun") != "All":
            self.objects[url.path] = written
        return 200, written

    def _has_changed(self, found: Object, version: str, *, is_list: bool) -> bool:
        conflicts = self.conflicts if is_list else self.merge_conflicts
        if conflicts:
            found["metadata"]["resourceVersion"] += "0"
        if is_list:
            self.conflicts = max(conflicts - 1, 0)
        else:
            self.merge_conflicts = max(conflicts - 1, 0)
        changed: bool = version != found["metadata"]["resourceVersion"]
        return changed

    def kubeconfig(self, folder: Path) -> Path:
        """Write a kubeconfig of this server into `folder` and return its path."""
        return write_kubeconfig(folder, self.url)


@contextmanager
def fake_api() -> Iterator[FakeConfigurationApi]:
    """The server, until the block ends."""
    api = FakeConfigurationApi()

    class Handler(BaseHTTPRequestHandler):
        # A command lists forty kinds, which would each take a connection and a thread.
        protocol_version = "HTTP/1.1"
        # Head and body are one packet: a second would wait until the client has acknowledged the first.
        wbufsize = -1

        def do_GET(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            content_type = self.headers.get("content-type") or ""
            status, content = api.answer(self.command, self.path, content_type, self.rfile.read(length))
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PATCH(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with LocalServer(("127.0.0.1", 0), Handler) as server, served_in_thread(server):
        api.url = f"http://127.0.0.1:{server.server_port}"
        yield api
