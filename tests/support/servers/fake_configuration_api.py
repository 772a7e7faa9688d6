"""A fake API server at the border: it keeps objects by their paths, over HTTP on loopback."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socketserver import StreamRequestHandler
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

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            """Answer until the client closes the connection. `http.server` reads heads with `email`, which is slow."""
            while line := self.rfile.readline():
                method, target, _ = line.decode().split()
                headers = dict(self._headers())
                body = self.rfile.read(int(headers.get("content-length", 0)))
                status, content = api.answer(method, target, headers.get("content-type", ""), body)
                answer = json.dumps(content).encode()
                head = f"HTTP/1.1 {status} \r\ncontent-type: application/json\r\ncontent-length: {len(answer)}\r\n\r\n"
                self.wfile.write(head.encode() + answer)

        def _headers(self) -> Iterator[tuple[str, str]]:
            while line := self.rfile.readline().strip().decode():
                name, _, value = line.partition(":")
                yield name.lower(), value.strip()

    with LocalServer(("127.0.0.1", 0), Handler) as server, served_in_thread(server):
        api.url = f"http://127.0.0.1:{server.server_port}"
        yield api
