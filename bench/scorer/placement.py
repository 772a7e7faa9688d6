"""`python -m bench.scorer.placement`: what the placement of one pod takes, by the size of the cluster.

Three questions: a cold one (a pod of a shape never seen), one repeated, and one after a pod event: what is asked was
asked before, but the view has changed by one pod and is made first. Three kinds of pods: without inter-pod terms;
with them, in a cluster where a third of the running pods have some, too; and with topology spread constraints. Each is
read from the raw object of the API on. The plain oracle of the tests answers the same question on up to 100 nodes.
"""

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table

from tests.oracles import oracle
from tests.support.objects.clusters import cluster_documents
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.placement.scheduler import Scheduler

Object = dict[str, Any]

_ZONE = "topology.kubernetes.io/zone"
_HOSTNAME = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_BINPACKED = {"jobtype": "binpacked"}
_PACK = {
    "weight": 100,
    "podAffinityTerm": {
        "labelSelector": {"matchLabels": _BINPACKED},
        "topologyKey": _HOSTNAME,
        "namespaceSelector": {},
    },
}
_APART = {"labelSelector": {"matchLabels": {"app": "noisy"}}, "topologyKey": _ZONE}
_SPREAD = [
    {
        "maxSkew": 5,
        "topologyKey": key,
        "whenUnsatisfiable": what,
        "labelSelector": {"matchLabels": {"app": "running"}},
    }
    for key, what in ((_ZONE, "DoNotSchedule"), (_HOSTNAME, "ScheduleAnyway"))
]
_KINDS: dict[str, Object] = {
    "plain": {},
    "pod terms": {"affinity": {"podAffinity": {_PREFERRED: [_PACK]}, "podAntiAffinity": {_REQUIRED: [_APART]}}},
    "spread": {"topologySpreadConstraints": _SPREAD},
}
_ORACLE_REPEATS = 3
# It takes minutes on many more.
_ORACLE_NODES = 100


class _Times(NamedTuple):
    """Medians, in milliseconds."""

    cold: float
    repeated: float
    after_event: float


@click.command()
@click.option("--nodes", multiple=True, type=int, default=[100, 1000, 5000, 15000], show_default=True)
@click.option("--pods-per-node", default=10, show_default=True, help="Running pods a node.")
@click.option("--repeats", default=41, show_default=True, help="Questions of each sort; the medians are printed.")
def main(nodes: tuple[int, ...], pods_per_node: int, repeats: int) -> None:
    """Measure the placement of one pod, and its ratio to the plain oracle on up to 100 nodes."""
    table = Table("nodes", "pod", "cold ms", "repeated µs", "after event ms", "oracle ms", "oracle / cold")
    for count, (kind, fields) in itertools.product(nodes, _KINDS.items()):
        objects = _objects(count, pods_per_node, with_terms=bool(fields))
        times = _measured(objects, fields, repeats)
        plain = _oracle_ms(objects, fields) if count <= _ORACLE_NODES else None
        table.add_row(
            f"{count:,}",
            kind,
            f"{times.cold:.3f}",
            f"{times.repeated * 1000:.0f}",
            f"{times.after_event:.3f}",
            "" if plain is None else f"{plain:.1f}",
            "" if plain is None else f"{plain / times.cold:.0f}",
        )
    Console().print(table)


def _objects(nodes: int, pods_per_node: int, *, with_terms: bool) -> list[Object]:
    """The raw objects of a cluster of twelve zones; `with_terms`, a third of its pods draw or repel others."""
    objects = []
    for number, document in enumerate(cluster_documents(nodes, pods_per_node)):
        content, node = dict(document.content), number // (pods_per_node + 1)
        if content["kind"] == "Node":
            content["metadata"]["labels"][_ZONE] = f"zone-{node % 12}"
        elif with_terms and number % 3 == 0:
            content["metadata"]["labels"] |= _BINPACKED
            content["spec"]["affinity"] = {
                "podAffinity": {_PREFERRED: [_PACK]},
                "podAntiAffinity": {_REQUIRED: [_APART]},
            }
        objects.append(content)
    return objects


def _measured(objects: list[Object], fields: Object, repeats: int) -> _Times:
    cache = ClusterCache()
    for kind in ("Node", "Pod"):
        cache.replace(kind, [each for each in objects if each["kind"] == kind])
    cache.replace("Namespace", [{"metadata": {"name": "team-a", "labels": {"team": "a"}}}])
    snapshot, framework = cache.snapshot(), Scheduler()
    gc.freeze()  # as the server does
    pods = (_pod(f"{8000 + shape}m", fields) for shape in itertools.count())
    framework.place(next(pods), snapshot)
    cold = [_milliseconds(partial(framework.place, pod, snapshot)) for pod in itertools.islice(pods, repeats)]
    same = next(pods)
    framework.place(same, snapshot)
    repeated = [_milliseconds(lambda: framework.place(same, snapshot)) for _ in range(repeats * 10)]
    after_event = []
    for pod in _arriving(objects, repeats):
        cache.apply("Pod", "ADDED", pod)
        after_event.append(_milliseconds(lambda: framework.place(same, cache.snapshot())))
    return _Times(*(statistics.median(times) for times in (cold, repeated, after_event)))


def _arriving(objects: list[Object], count: int) -> Iterator[Object]:
    """Pods that have just been bound, like those that run."""
    running = [each for each in objects if each["kind"] == "Pod"]
    for number in range(count):
        like = running[number * 7919 % len(running)]
        yield like | {"metadata": like["metadata"] | {"name": f"arrived-{number}"}}


def _pod(cpu: str, fields: Object) -> Object:
    requests = {"cpu": cpu, "memory": "64Gi", "nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "trainer:1", "resources": {"requests": requests, "limits": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "trainer", "namespace": "team-a", "labels": {"app": "running", **_BINPACKED}},
        "spec": {"containers": [container], "tolerations": [{"operator": "Exists"}], **fields},
    }


def _oracle_ms(objects: list[Object], fields: Object) -> float:
    nodes = [each for each in objects if each["kind"] == "Node"]
    pods = [each for each in objects if each["kind"] == "Pod"]
    pod = _pod("8", fields)
    return statistics.median(_milliseconds(lambda: oracle.place(pod, nodes, pods)) for _ in range(_ORACLE_REPEATS))


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
