"""Part of `make abuse`: the attacked server, and what its clients see of it."""

import asyncio
import os
import ssl
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Target:
    """A running server."""

    port: int
    admin_port: int
    pid: int
    ca_file: Path

    @property
    def trust(self) -> ssl.SSLContext:
        """The client's side of its TLS."""
        return ssl.create_default_context(cafile=str(self.ca_file))

    def peak_mib(self) -> float:
        """The most memory that the process ever had resident."""
        return self._status_kib("VmHWM") / 1024

    def resident_mib(self) -> float:
        """The memory that it has resident now."""
        return self._status_kib("VmRSS") / 1024

    def is_running(self) -> bool:
        """Return whether the process is running."""
        return Path(f"/proc/{self.pid}/exe").exists()

    def cpu_seconds(self) -> float:
        """The processor time that it has had."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _status_kib(self, name: str) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


@dataclass(slots=True)
class Seen:
    """Answers by status (`-` where none came), and how long each took in seconds."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    unpatched: int = 0

    def quantile_ms(self, share: float) -> float:
        """The latency that this share of the answers stays within."""
        ordered = sorted(self.seconds)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000 if ordered else float("nan")

    def text(self) -> str:
        """One cell of a table."""
        statuses = ", ".join(f"{count}x {status}" for status, count in self.statuses.most_common())
        p50, p99, most = (self.quantile_ms(share) for share in (0.5, 0.99, 1))
        return f"{statuses}; p50 {p50:.0f}, p99 {p99:.0f}, max {most:.0f} ms"


async def post(
    target: Target,
    trust: ssl.SSLContext,
    body: bytes,
    seen: Seen,
    *headers: str,
    give_up: float = 30.0,
    source: str = "127.0.0.1",
) -> None:
    """Post one review on a connection of its own, from the address `source`, and note what came back."""
    began = time.perf_counter()
    status, answer = "-", b""
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(give_up):
            status, answer = await _exchange(target, trust, body, headers, source)
    seen.statuses[status] += 1
    seen.seconds.append(time.perf_counter() - began)
    seen.unpatched += b'"patch"' not in answer


async def _exchange(
    target: Target, trust: ssl.SSLContext, body: bytes, headers: tuple[str, ...], source: str
) -> tuple[str, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, ssl=trust, local_addr=(source, 0))
    try:
        lines = ["POST /mutate?timeout=5s HTTP/1.1", "Host: abuse", "Content-Type: application/json", *headers]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "Connection: close", "", ""])
        writer.write(head.encode() + body)
        answer = await reader.read(-1)
        return answer[9:12].decode() or "-", answer
    finally:
        writer.transport.abort()


HEAD = (
    b"POST /mutate?timeout=5s HTTP/1.1\r\nHost: abuse\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)
