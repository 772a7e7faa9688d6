"""`python -m bench.scorer.free_cards`: the time to count the free cards for the metrics, by the size of the cluster."""

import statistics
import time
from collections.abc import Callable
from functools import partial

import click
from rich.console import Console
from rich.table import Table

from tests.support.admission import USAGE
from tests.support.objects.clusters import cluster_documents
from webhook.cluster.cache.cluster_cache import ClusterCache
from webhook.placement.packing.free_cards import FreeCardsByProduct
from webhook.placement.packing.typical_pods import ExpectedMixes
from webhook.placement.profiles.policy_profiles import card_mixes
from webhook.policy.loader import built_in_policy


@click.command()
@click.option("--nodes", multiple=True, type=int, default=[1000, 5000, 15000], show_default=True)
@click.option("--pods-per-node", default=10, show_default=True, help="Running pods a node.")
@click.option("--repeats", default=21, show_default=True, help="Counts of each sort; the medians are printed.")
def main(nodes: tuple[int, ...], pods_per_node: int, repeats: int) -> None:
    """Measure the first count, which reads every pod, and one after the pods of some nodes have changed."""
    table = Table("nodes", "pods", "first ms", "after events ms")
    for count in nodes:
        objects = [dict(document.content) for document in cluster_documents(count, pods_per_node)]
        cache = ClusterCache()
        for kind in ("Node", "Pod"):
            cache.replace(kind, [each for each in objects if each["kind"] == kind])
        spec = built_in_policy().spec
        counted = FreeCardsByProduct(USAGE, spec.accelerators, ExpectedMixes(card_mixes(spec)))
        first = _milliseconds(partial(counted.of, cache.snapshot()))
        later = []
        running = [each for each in objects if each["kind"] == "Pod"]
        for number in range(repeats):
            for pod in running[number * 100 : number * 100 + 100]:
                cache.apply("Pod", "DELETED", pod)
            later.append(_milliseconds(partial(counted.of, cache.snapshot())))
        table.add_row(f"{count:,}", f"{len(running):,}", f"{first:.1f}", f"{statistics.median(later):.1f}")
    Console().print(table)


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
