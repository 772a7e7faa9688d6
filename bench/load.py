"""A load client that costs little: raw HTTP/1.1 over kept-alive TLS connections, one request in flight on each."""

import asyncio
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """The result of a load: requests per second, and the sorted latencies in seconds."""

    requests_per_second: float
    latencies_seconds: list[float]

    def quantile_ms(self, share_ratio: float) -> float:
        """The latency that this share of the requests stays within, in milliseconds."""
        return (
            self.latencies_seconds[min(int(len(self.latencies_seconds) * share_ratio), len(self.latencies_seconds) - 1)]
            * 1000
        )


async def drive(port: int, trust: ssl.SSLContext, bodies: Iterator[bytes], connections: int, seconds: float) -> Load:
    """Post `bodies` on each of `connections` for so many seconds; every answer must be 200."""
    latencies: list[float] = []
    opened = [await asyncio.open_connection("127.0.0.1", port, ssl=trust) for _ in range(connections)]
    started = time.perf_counter()
    ends = started + seconds

    async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (sent := time.perf_counter()) < ends:
            body = next(bodies)
            writer.write(b"POST /mutate?timeout=10s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"the server answered {head!r}")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            latencies.append(time.perf_counter() - sent)
            if b"connection: close" in head.lower():
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        writer.close()

    await asyncio.gather(*(post(*connection) for connection in opened))
    elapsed_seconds = time.perf_counter() - started
    return Load(len(latencies) / elapsed_seconds, sorted(latencies))
