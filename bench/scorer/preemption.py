"""`python -m bench.scorer.preemption`: the time to predict the victims for a pod that no node can take.

Each row is a cluster in which every node is full of pods of lower priority, so that all nodes are potential nodes. The
time is that of the search only, without the filters that find that no node can take the pod.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table

from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.cluster.objects.disruption_budget import DISRUPTION_BUDGET_KIND
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

Object = dict[str, Any]

_NAMESPACE = "team-a"
_HOSTNAME = "kubernetes.io/hostname"
_ZONE = "topology.kubernetes.io/zone"
_ZONES = 10
_APPS = 10
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_OF_APP = {"matchLabels": {"app": "app-1"}}
_ANTI_AFFINITY = {
    "cpu": "4",
    "affinity": {"podAntiAffinity": {_REQUIRED: [{"labelSelector": _OF_APP, "topologyKey": _HOSTNAME}]}},
}


class _Case(NamedTuple):
    """A cluster and a pod that it cannot take.

    `running` returns the fields of a running pod by its number on its node and the number of the node; `pending` are
    those of the pod.
    """

    running: Callable[[int, int], Object]
    pending: Mapping[str, Any] = {"cpu": "4"}
    budgets: Callable[[], Iterator[Object]] = lambda: iter(())


def _equal(_number: int, _node: int) -> Object:
    return {}


def _mixed(number: int, node: int) -> Object:
    return {"priority": number % 7, "start": 1000 * node + number}


def _of_sizes(number: int, _node: int) -> Object:
    return {"cpu": f"{500 + number % 3 * 500}m"}


def _few_of_sizes(number: int, _node: int) -> Object:
    return {"cpu": f"{700 + number % 4 * 200}m"} if number < 4 else {"priority": 1, "start": number}


def _with_port(number: int, node: int) -> Object:
    return {**_mixed(number, node), "ports": [{"containerPort": 80, "hostPort": 8000 + number}]}


def _with_own_label(number: int, node: int) -> Object:
    return {**_mixed(number, node), "labels": {"app": f"app-{number % _APPS}", "index": f"{node}-{number}"}}


def _of_tier(number: int, node: int) -> Object:
    return {**_mixed(number, node), "labels": {"app": f"app-{number % _APPS}", "tier": f"{number % 3}"}}


def _of_few(number: int, node: int) -> Object:
    return {**_mixed(number, node), "labels": {"app": f"app-{number}-{node // 10}"}}


def _budgets_of_apps() -> Iterator[Object]:
    return (_budget(f"app-{number}", {"app": f"app-{number}"}) for number in range(_APPS))


def _budgets_of_apps_and_tiers() -> Iterator[Object]:
    yield from _budgets_of_apps()
    for number in range(3):
        yield _budget(f"tier-{number}", {"tier": f"{number}"})


def _budgets_of_few() -> Iterator[Object]:
    for number in range(1000):
        yield _budget(f"few-{number}", {"app": f"app-{number % 100}-{number // 100}"})


def _spread(key: str) -> Object:
    spread = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": _OF_APP}
    return {"cpu": "4", "topologySpreadConstraints": [spread]}


_CASES = {
    "mixed priorities": _Case(_mixed),
    "equal pods": _Case(_equal),
    "equal pods, all evicted": _Case(_equal, {"cpu": "100"}),
    "equal priorities, other sizes": _Case(_of_sizes),
    "the same, of the least important four": _Case(_few_of_sizes, {"cpu": "1"}),
    "10 budgets": _Case(_mixed, budgets=_budgets_of_apps),
    "10 budgets, equal pods": _Case(_equal, budgets=_budgets_of_apps),
    "1,000 budgets of 10 pods": _Case(_of_few, budgets=_budgets_of_few),
    "10 budgets, a label of each pod": _Case(_with_own_label, budgets=_budgets_of_apps),
    "2 budgets a pod": _Case(_of_tier, budgets=_budgets_of_apps_and_tiers),
    "host ports": _Case(_with_port, {"cpu": "4", "ports": [{"containerPort": 80, "hostPort": 8042}]}),
    "anti-affinity": _Case(_mixed, _ANTI_AFFINITY),
    "anti-affinity, a label of each pod": _Case(_with_own_label, _ANTI_AFFINITY),
    "topology spread over nodes": _Case(_mixed, _spread(_HOSTNAME)),
    "topology spread over zones": _Case(_mixed, _spread(_ZONE)),
}


@click.command()
@click.option("--nodes", default=100, show_default=True)
@click.option("--pods-per-node", default=100, show_default=True, help="Running pods a node.")
@click.option("--repeats", default=5, show_default=True, help="Searches for each case; the shortest is printed.")
@click.option("--case", "only", multiple=True, type=click.Choice([*_CASES]), help="Only these cases.")
def main(nodes: int, pods_per_node: int, repeats: int, only: tuple[str, ...]) -> None:
    """Measure the search for the victims of one pod, by the kind of running pods."""
    table = Table("running pods", "ms", "answer")
    for name in only or _CASES:
        case = _CASES[name]
        snapshot = _cluster(case, nodes, pods_per_node)
        signature = PodSignature.of(_pod("waiting", {"priority": 1000, **case.pending}))
        times, answers = zip(*(_measured(signature, snapshot) for _ in range(repeats)), strict=True)
        table.add_row(name, f"{min(times):.1f}", _in_words(answers[0]))
    Console().print(table)


def _measured(signature: PodSignature, snapshot: Snapshot) -> tuple[float, PredictedPreemption]:
    began = time.thread_time()
    found = Scheduler().preemption(signature, snapshot)
    milliseconds = (time.thread_time() - began) * 1000
    assert found is not None
    return milliseconds, found


def _in_words(found: PredictedPreemption) -> str:
    if not found.evicts:
        return found.why or found.message
    return f"{found.count} on {'1 node' if len(found.nodes) == 1 else f'one of {len(found.nodes)} nodes'}"


def _cluster(case: _Case, nodes: int, pods_per_node: int) -> Snapshot:
    cache = ClusterCache()
    names = [f"node-{number:05}" for number in range(nodes)]
    cache.replace("Node", [_node(name, number) for number, name in enumerate(names)])
    pods = [
        _pod(f"running-{row}-{number}", {"nodeName": node, **case.running(number, row)}, number)
        for row, node in enumerate(names)
        for number in range(pods_per_node)
    ]
    cache.replace("Pod", pods)
    cache.replace(DISRUPTION_BUDGET_KIND, [*case.budgets()])
    snapshot = cache.snapshot()
    gc.freeze()  # as the server does
    return snapshot


def _node(name: str, number: int) -> Object:
    amounts = {"cpu": "100", "memory": "1Ti", "pods": "200"}
    labels = {_HOSTNAME: name, _ZONE: f"zone-{number % _ZONES}"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"capacity": amounts, "allocatable": amounts}}


def _pod(name: str, fields: Object, number: int = 0) -> Object:
    own: Object = {"cpu": "1", "ports": [], "start": 0, "labels": {"app": f"app-{number % _APPS}"}, **fields}
    requests = {"cpu": own.pop("cpu"), "memory": "1Gi"}
    container = {"name": "main", "image": "main:1", "ports": own.pop("ports"), "resources": {"requests": requests}}
    metadata = {"name": name, "namespace": _NAMESPACE, "labels": own.pop("labels")}
    start = own.pop("start")
    status = {"startTime": f"2026-01-{1 + start // 86400 % 28:02}T{time.strftime('%H:%M:%S', time.gmtime(start))}Z"}
    return {
        "metadata": metadata,
        "spec": {"containers": [container], **own},
        "status": {"phase": "Running", **(status if start else {})},
    }


def _budget(name: str, labels: Object) -> Object:
    return {
        "metadata": {"name": name, "namespace": _NAMESPACE, "generation": 1},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": 1, "observedGeneration": 1},
    }


if __name__ == "__main__":
    main()
