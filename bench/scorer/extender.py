"""Measure the calls of a kube-scheduler to the extender: `python -m bench.scorer.extender [NODES] [PODS_PER_NODE]`.

One client on one connection asks for one pod after the other, as kube-scheduler does: filter, then prioritize, with the
names of all nodes. Each pod differs, and is assumed on its node, so nothing is reused. The view does not change.
"""

import http.client
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson

from tests.controlplane.process import HeldPort
from tests.support.servers.processes import await_port, certificate

_PODS = 200


def _args(number: int, names: list[str]) -> bytes:
    amounts = {"cpu": f"{8000 + number}m", "memory": "64Gi", "nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "trainer:1", "resources": {"requests": amounts, "limits": amounts}}
    # The nodes of `tests.support.objects.clusters` have taints.
    spec = {"containers": [container], "tolerations": [{"operator": "Exists"}]}
    pod = {"metadata": {"name": f"pod-{number}", "namespace": "team-a"}, "spec": spec}
    return orjson.dumps({"Pod": pod, "Nodes": None, "NodeNames": names})


def _call(connection: http.client.HTTPSConnection, verb: str, body: bytes) -> float:
    """Return the duration of one call in milliseconds."""
    began = time.perf_counter()
    connection.request("POST", f"/extender/{verb}", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200
    return 1000 * (time.perf_counter() - began)


def _measure(port: int, trust: ssl.SSLContext, nodes: int) -> None:
    names = [f"node-{number:05}" for number in range(nodes)]
    connection = http.client.HTTPSConnection("localhost", port, context=trust)
    took: dict[str, list[float]] = {"filter": [], "prioritize": []}
    body = b""
    for number in range(_PODS):
        body = _args(number, names)
        for verb, durations in took.items():
            durations.append(_call(connection, verb, body))
    for verb, durations in took.items():
        durations.sort()
        median, p99 = durations[_PODS // 2], durations[_PODS * 99 // 100]
        print(f"{verb}: median {median:.1f} ms, p99 {p99:.1f} ms, {len(body) / 1024:.0f} KiB")


def main(nodes: int = 5000, pods_per_node: int = 10) -> None:
    """Print the median and the p99 of each verb."""
    with tempfile.TemporaryDirectory() as name, HeldPort() as held:
        folder, port = Path(name), held.number
        trust = certificate(folder)
        command = [sys.executable, "-m", "bench.running.servers", name, str(port), str(nodes), str(pods_per_node)]
        process = subprocess.Popen(command)
        try:
            await_port(port, "the webhook")
            _measure(port, trust, nodes)
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
