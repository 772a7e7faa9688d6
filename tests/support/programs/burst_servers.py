"""The processes of bursts of pods: a webhook that also writes the best set of each prediction, and a TCP proxy.

`python -m tests.support.programs.burst_servers webhook FILE serve …` is `placement-webhook serve …`. At its end it
writes FILE: a JSON object from the UID of a request to the names of the nodes that had the best score. They are
computed at the end, so that the admissions cost what they cost without it.

`python -m tests.support.programs.burst_servers proxy PORT BACKEND…` gives each new connection to the next backend port.
"""

import asyncio
import itertools
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import orjson
import uvloop

from webhook import cli
from webhook.admission.cluster_view import ClusterView
from webhook.cluster.node_info import NodeInfo
from webhook.kube.api.admission import AdmissionRequest
from webhook.placement.framework.result import Placement
from webhook.policy.policy import Policy
from webhook.serving.observed.predictions import PredictionRecorder

_CHUNK_BYTES = 64 * 1024


def best_set(placement: Placement, nodes: Sequence[NodeInfo]) -> list[str]:
    """Return those of `nodes` that have, or can have, the best total score for the pod with `placement`."""
    rows = [] if placement.best_rows is None else placement.best_rows.tolist()
    return [*(nodes[row].node.name for row in rows), *placement.possible_nodes]


def _serve(file: Path, arguments: list[str]) -> None:
    placements: dict[str, tuple[Placement, Sequence[NodeInfo]]] = {}
    record = PredictionRecorder.record

    def keep(
        recorder: PredictionRecorder,
        request: AdmissionRequest,
        placement: Placement,
        cluster: ClusterView | None,
        policy: Policy,
    ) -> None:
        placements[request.uid] = placement, cluster.snapshot.nodes if cluster else ()
        record(recorder, request, placement, cluster, policy)

    with patch.object(sys, "argv", ["placement-webhook", *arguments]), patch.object(PredictionRecorder, "record", keep):
        try:
            cli.main()
        finally:
            file.write_bytes(orjson.dumps({uid: best_set(*each) for uid, each in placements.items()}))


async def _forward(port: int, backends: list[int]) -> None:
    turns = itertools.cycle(backends)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            answers, requests = await asyncio.open_connection("127.0.0.1", next(turns))
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, requests))
                group.create_task(_copy(answers, writer))

    async with await asyncio.start_server(accept, "127.0.0.1", port) as server:
        await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


def main() -> None:
    """Run the server that the first argument names."""
    kind, *arguments = sys.argv[1:]
    if kind == "proxy":
        port, *backends = map(int, arguments)
        uvloop.run(_forward(port, backends))
    else:
        _serve(Path(arguments[0]), arguments[1:])


if __name__ == "__main__":
    main()
