"""`make bench-exported-cost`: the cost of the exported policy in the API server, beside that of the webhook.

Pods are created without anything, with the exported policy, with the webhook, and with both, in turn and in several
rounds. A round of one state is compared with that of another in the same turn, so a machine that gets slower counts for
all of them. Pods with a workload type are injected; plain pods have no annotation, and are left alone. One with a card
could have a type by default of its namespace.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import click

from bench.absence import exporting, wait_exported, wait_in_step
from bench.running.pod_clients import Load, created_while
from bench.running.real_cluster import control_plane_and_folder
from bench.running.replicas import Replicas, replicated
from tests.controlplane.cluster import Cluster
from tests.support.admission import TYPE
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.on_cluster.exported import stored
from tests.support.servers.processes import cpu_seconds
from webhook.documents.documents import JsonObject

NOTHING, EXPORTED, WEBHOOK, BOTH = "nothing", "exported policy", "webhook", "both"
STATES = (NOTHING, EXPORTED, WEBHOOK, BOTH)
PODS = {
    "plain": make_pod("load"),
    "plain with a card": make_pod("load").gpu(1),
    "training": make_pod("load").annotate(TYPE, "training").gpu(1),
}
_MOST_SHARE_OF_PLAIN = 0.03


@dataclass(frozen=True, slots=True)
class Round:
    """The pods of one round: the API server's processor time for each, and their latencies, in milliseconds."""

    cpu_ms: float
    latencies_ms: Sequence[float]


def _round(cluster: Cluster, template: PodBuilder, pods: int, clients: int) -> Round:
    load = Load(cluster, clients, template=template, check=lambda _: "")
    pid = cluster.control_plane.pid("kube-apiserver")
    before = cpu_seconds(pid)
    made = created_while(load, pods, 1, lambda: None)
    spent = cpu_seconds(pid) - before
    cluster.client.delete_collection("Pod", cluster.namespace)
    if made.failures:
        raise click.ClickException(made.failures[0])
    return Round(spent * 1000 / len(made.made), [each.latency_seconds * 1000 for each in made.made])


class States:
    """Puts one of the states into force after the other; the exported objects are those that a replica has written."""

    def __init__(self, cluster: Cluster, replicas: Replicas, exported: Sequence[JsonObject]) -> None:
        self._cluster, self._replicas, self._exported = cluster, replicas, exported

    @contextmanager
    def in_force(self, state: str) -> Iterator[None]:
        """Let the state be in force until the block ends."""
        with ExitStack() as stack:
            if state in (EXPORTED, BOTH):
                stack.enter_context(self._objects())
            if state in (WEBHOOK, BOTH):
                self._replicas.register(self._cluster)
                stack.callback(self._cluster.remove_registrations)
            yield

    @contextmanager
    def _objects(self) -> Iterator[None]:
        client = self._cluster.client
        for each in self._exported:
            client.create(each)
        wait_exported(self._cluster)
        try:
            yield
        finally:
            for each in reversed(self._exported):
                client.delete(each["kind"], each["metadata"]["name"], api_version=each["apiVersion"])
            wait_exported(self._cluster, acts=False)


def exported_objects(cluster: Cluster, replicas: Replicas) -> list[JsonObject]:
    """Return what the leader of the replicas has exported, as it can be created again; nothing of it is left."""
    client = cluster.client
    wait_in_step(replicas)
    for replica in list(replicas.running):
        replicas.stop(replica)
    found = list(stored(client).values())
    for each in reversed(found):
        client.delete(each["kind"], each["metadata"]["name"], api_version=each["apiVersion"])
    wait_exported(cluster, acts=False)
    return [each | {"metadata": _given(each["metadata"])} for each in found]


def _given(metadata: JsonObject) -> JsonObject:
    return {key: metadata[key] for key in ("name", "labels", "annotations") if key in metadata}


Figures = dict[tuple[str, str], list[Round]]


def measured(cluster: Cluster, states: States, rounds: int, pods: int, clients: int) -> Figures:
    """Return the rounds by state and kind of pod. The first turn, in which everything is cold, does not count."""
    found: Figures = defaultdict(list)
    for turn in range(rounds + 1):
        # Another order in each turn: no state always comes after the same one.
        for state in STATES if turn % 2 else reversed(STATES):
            with states.in_force(state):
                for kind, template in PODS.items():
                    outcome = _round(cluster, template, pods, clients)
                    if turn:
                        found[state, kind].append(outcome)
        click.echo(f"turn {turn} of {rounds}", err=True)
    return found


def _line(state: str, kind: str, figures: Figures) -> str:
    rounds = figures[state, kind]
    latencies = sorted(each for one in rounds for each in one.latencies_ms)
    cpu = statistics.median(each.cpu_ms for each in rounds)
    p50, p99 = (latencies[min(int(len(latencies) * share), len(latencies) - 1)] for share in (0.5, 0.99))
    more = more_cpu(figures, state, kind)
    return f"{kind:19}{state:18}{cpu:9.2f} {more:+8.1%} {p50:9.2f} {p99:9.2f}"


def more_cpu(figures: Figures, state: str, kind: str) -> float:
    """Return the share of processor time that the state adds to that without anything: the median over the turns."""
    pairs = zip(figures[state, kind], figures[NOTHING, kind], strict=True)
    return statistics.median(each.cpu_ms / base.cpu_ms for each, base in pairs) - 1


@click.command()
@click.option("--rounds", type=click.IntRange(1, 100), default=9, show_default=True)
@click.option("--pods", type=click.IntRange(10, 10_000), default=500, show_default=True, help="Pods of a round.")
@click.option("--clients", type=click.IntRange(1, 64), default=4, show_default=True)
def main(rounds: int, pods: int, clients: int) -> None:
    """Measure the API server; exit with 1 if the exported policy costs plain pods more than 3 %."""
    with control_plane_and_folder() as (control_plane, folder):
        control_plane.stop_scheduler()
        cluster = Cluster(control_plane)
        flags = (f"--kubeconfig={control_plane.kubeconfig}", *exporting(cluster.client))
        with replicated(folder, 1, *flags) as replicas:
            exported = exported_objects(cluster, replicas)
        (folder / "servers").mkdir()
        with replicated(folder / "servers", 1, f"--kubeconfig={control_plane.kubeconfig}") as replicas:
            figures = measured(cluster, States(cluster, replicas, exported), rounds, pods, clients)
    click.echo(f"{'pods':19}{'state':18}{'CPU ms':>9} {'more':>8} {'p50 ms':>9} {'p99 ms':>9}")
    for kind in PODS:
        for state in STATES:
            click.echo(_line(state, kind, figures))
    if more_cpu(figures, EXPORTED, "plain") > _MOST_SHARE_OF_PLAIN:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
