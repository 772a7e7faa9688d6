"""A load client that costs little: raw HTTP/1.1 over kept-alive TLS connections, one request in flight on each."""

import asyncio
import math
import ssl
import time
from collections.abc import Callable, Iterator
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


def during(seconds: float, bodies: Iterator[bytes]) -> Iterator[bytes]:
    """Yield `bodies` for so many seconds."""
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        yield next(bodies)


async def drive(
    port: int,
    trust: ssl.SSLContext,
    bodies: Iterator[bytes],
    connections: int,
    *,
    per_second: float = math.inf,
    answered: Callable[[bytes, bytes], None] = lambda _body, _answer: None,
) -> Load:
    """Post all `bodies` over so many connections, at most so many a second; every answer must allow the object.

    `answered` is called with each body and the answer to it.
    """
    latencies: list[float] = []
    opened = [await asyncio.open_connection("127.0.0.1", port, ssl=trust) for _ in range(connections)]
    started = time.perf_counter()
    numbered = enumerate(bodies)

    async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number, body in numbered:
            if (early := started + number / per_second - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            sent = time.perf_counter()
            writer.write(b"POST /mutate?timeout=10s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            answer = await reader.readexactly(length)
            latencies.append(time.perf_counter() - sent)
            if not head.startswith(b"HTTP/1.1 200") or b'"allowed":true' not in answer:
                raise RuntimeError(f"the server answered {head + answer!r}")
            answered(body, answer)
            if b"connection: close" in head.lower():
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
        writer.close()

    await asyncio.gather(*(post(*connection) for connection in opened))
    return Load(len(latencies) / (time.perf_counter() - started), sorted(latencies))
