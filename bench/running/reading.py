"""`python -m bench.running.reading`: the processor time to read the running pods of a list, and their watch events.

The pods are as large as real ones. With `--beside`, the webhook of another checkout reads the same pods in turns, each
time in a new process.
"""

import gc
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson
from msgspec import Raw
from msgspec.json import decode
from rich.console import Console
from rich.table import Table

from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.kube.pod.stored_pod import StoredPod
from webhook.watch.watch_event import read_event

Object = dict[str, Any]

_FIELDS: Object = {f"f:field{index}": {f"f:inner{inner}": {} for inner in range(4)} for index in range(40)}
_PODS_OF_OWNER = 8
_TEMPLATES = 500
_PAGE = 500
_COLUMNS = ("µs a pod of a list", "µs an event", "bytes a pod")


@click.command()
@click.option("--pods", default=5000, show_default=True, help="Running pods; each has one event.")
@click.option("--turns", default=9, show_default=True, help="Processes a checkout; the medians are printed.")
@click.option("--beside", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Another checkout.")
@click.option("--once", is_flag=True, help="Measure in this process and print plain figures.")
def main(pods: int, turns: int, beside: Path | None, *, once: bool) -> None:
    """Measure how long the live view reads running pods."""
    if once:
        click.echo(" ".join(f"{each:.2f}" for each in _measured(pods)))
        return
    folders = [Path(__file__).parents[2], *([beside.resolve()] if beside else [])]
    found: dict[Path, list[list[float]]] = {each: [] for each in folders}
    for turn in range(turns):
        for folder in folders[:: -1 if turn % 2 else 1]:
            found[folder].append(_in_process(folder, pods))
    table = Table("checkout", *_COLUMNS)
    medians = [[statistics.median(each) for each in zip(*found[folder], strict=True)] for folder in folders]
    for folder, figures in zip(folders, medians, strict=True):
        table.add_row(folder.name, *(f"{each:.1f}" for each in figures))
    if beside:
        table.add_row("ratio", *(f"{here / there:.3f}" for here, there in zip(*medians, strict=True)))
    Console().print(table)


def _in_process(folder: Path, pods: int) -> list[float]:
    command = [sys.executable, __file__, "--once", "--pods", str(pods)]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return [float(each) for each in ran.stdout.split()]


def _measured(count: int) -> tuple[float, float, float]:
    pages = [orjson.dumps([_pod(at, 0) for at in range(first, first + _PAGE)]) for first in range(0, count, _PAGE)]
    events = [orjson.dumps({"type": "MODIFIED", "object": _pod(at, 1)}) for at in range(count)]
    gc.freeze()
    cache = ClusterCache()
    listed = _seconds(_list(cache, pages))
    cache.snapshot()
    applied = _seconds(_apply(cache, events))
    tracemalloc.start()
    stored = ClusterCache()
    for _ in _list(stored, pages):
        pass
    size, _ = tracemalloc.get_traced_memory()
    return listed / count * 1e6, applied / count * 1e6, size / count


def _seconds(steps: Iterator[None]) -> float:
    began = time.thread_time()
    for _ in steps:
        pass
    return time.thread_time() - began


def _list(cache: ClusterCache, pages: list[bytes]) -> Iterator[None]:
    listing = cache.listing("Pod")
    for page in pages:
        for item in decode(page, type=list[Raw]):
            listing.add((StoredPod.in_list(item),))
        yield
    listing.finish()


def _apply(cache: ClusterCache, events: list[bytes]) -> Iterator[None]:
    for event in events:
        kind, content, _ = read_event(event, "Pod")
        cache.apply("Pod", kind, content)
        yield


def _pod(number: int, heartbeat: int) -> Object:
    """Return a running pod; `heartbeat` changes its resource version and the time of a condition."""
    owner = number // _PODS_OF_OWNER
    template = owner % _TEMPLATES
    second = f"{owner % 86400 // 3600:02}:{owner % 3600 // 60:02}:{owner % 60:02}"
    start = f"2026-01-{1 + owner % 28:02}T{second}Z"
    name = f"train-{owner}-{number % _PODS_OF_OWNER}"
    owners = {"apiVersion": "batch/v1", "kind": "Job", "name": f"train-{owner}", "uid": f"{owner:036}"}
    conditions = [
        {"type": each, "status": "True", "lastProbeTime": None, "lastTransitionTime": start}
        for each in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    conditions[2]["lastTransitionTime"] = f"2026-02-{1 + heartbeat:02}T{second}Z"
    requests = {"cpu": "8", "memory": f"{template + 1}Gi", "nvidia.com/gpu": "1"}
    container = {
        "name": "main",
        "image": "trainer:1",
        "env": [{"name": f"VARIABLE_{index}", "value": "x" * 40} for index in range(20)],
        "resources": {"limits": requests, "requests": requests},
        "volumeMounts": [{"name": f"kube-api-access-{number:05}", "mountPath": "/var/run/secrets"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": f"team-{template % 50}",
            "uid": f"{number:036}",
            "resourceVersion": str(1_000_000 * (heartbeat + 1) + number),
            "creationTimestamp": start,
            "labels": {"app": f"train-{template}", "batch.kubernetes.io/job-name": f"train-{owner}"},
            "ownerReferences": [{**owners, "controller": True, "blockOwnerDeletion": True}],
            "managedFields": [{"manager": f"manager-{each}", "fieldsV1": _FIELDS} for each in range(2)],
        },
        "spec": {
            "nodeName": f"node-{number % 1000:05}",
            "containers": [container],
            "priority": 100,
            "priorityClassName": "batch",
            "restartPolicy": "Never",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": f"node.kubernetes.io/{each}", "operator": "Exists", "effect": "NoExecute"}
                for each in ("not-ready", "unreachable")
            ],
            "volumes": [
                {"name": f"kube-api-access-{number:05}", "projected": {"sources": [{"serviceAccountToken": {}}]}}
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "podIP": "10.0.0.1",
            "startTime": start,
            "containerStatuses": [
                {
                    "name": "main",
                    "state": {"running": {"startedAt": start}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": "trainer:1",
                    "imageID": "sha256:" + "0" * 64,
                    "containerID": f"containerd://{number:064}",
                    "started": True,
                    "allocatedResources": requests,
                    "resources": {"limits": requests, "requests": requests},
                }
            ],
        },
    }


if __name__ == "__main__":
    main()
