"""The parts of `capacity` that move running pods: --drain and --make-room."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from webhook.cli.capacity_counts import Counted, Counts
from webhook.cli.capacity_drain import check_nodes, drain_to_json, print_drain
from webhook.cli.capacity_room import print_room, room_to_json
from webhook.cli.check_text import text_console
from webhook.cli.clusters import read_cluster_or_live, read_cluster_with_disruptions
from webhook.cli.pending import PendingQueue, place_pending_pods
from webhook.cli.profiles import PolicySchedulers
from webhook.cli.progress import Progress
from webhook.cli.terminal import echo_json
from webhook.cluster.bound_pods import BoundPods
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.snapshot import Snapshot
from webhook.kube.release import Release
from webhook.placement.assumed_pods import AssumedPods
from webhook.placement.capacity.drain import drain
from webhook.placement.capacity.make_room import Room, make_room
from webhook.placement.capacity.moves import cordoned
from webhook.policy.policy import Policy


@dataclass
class Moving:
    """Moves pods of one cluster, in a simulation, and prints the results.

    The pods of the cluster are placed as `policy` configures it, a counted pod as its own policy does.
    """

    schedulers: PolicySchedulers
    policy: Policy
    max_nodes: int
    with_room: bool
    counts_pending: bool
    is_json: bool
    console: Console = field(default_factory=text_console)
    progress: Progress = field(default_factory=Progress)
    _disruptions: Disruptions = field(default_factory=lambda: Disruptions(BoundPods({}), None))

    def read(
        self,
        drained: tuple[str, ...],
        cluster: str | None,
        kubeconfig: Path | None,
        context: str | None,
        release: Release | None,
    ) -> PendingQueue:
        """Return the pending pods, on a snapshot of the cluster.

        If nodes are `drained`, print what becomes of their pods. The snapshot is that after the drain, on which the
        pending pods are bound.

        Raises:
            InvalidInput: it cannot be read, a node is not in it, or a field of a pod that is read is malformed.
            click.ClickException: a file and a live cluster are given, or the API server does not answer the request.
        """
        if not drained and not self.with_room:
            return self._pending(read_cluster_or_live(cluster, kubeconfig, context, release))
        snapshot, self._disruptions = read_cluster_with_disruptions(cluster, kubeconfig, context, release)
        return self._drain(drained, snapshot) if drained else self._pending(snapshot)

    def _pending(self, snapshot: Snapshot) -> PendingQueue:
        return place_pending_pods(snapshot, self.schedulers.of(self.policy).for_pending(), counts=self.counts_pending)

    def _drain(self, names: tuple[str, ...], snapshot: Snapshot) -> PendingQueue:
        def show(done: int, total: int) -> None:
            self.progress.show(f"drain: {done} of {total} pods placed")

        nodes = check_nodes(names, snapshot)
        # Pods that wait now are bound, to other nodes than the cordoned ones, before a pod is evicted.
        pending = self._pending(cordoned(snapshot, nodes))
        before = pending.assumed.all_shown
        schedulers = self.schedulers.of(self.policy)
        found = drain(before, self._disruptions.bound, self._disruptions.budgets, nodes, schedulers, show)
        self.progress.end()
        if self.is_json:
            echo_json(drain_to_json(found, pending.reserved))
        else:
            print_drain(self.console, found, pending.reserved, self.max_nodes)
        return PendingQueue(AssumedPods(found.snapshot))

    def room(self, counts: Counts, counted: Counted) -> Room | None:
        """Return how to make room for a counted pod; None unless that is asked for and the pod was evaluated.

        Raises:
            InvalidInput: a field of a pod that is read is malformed.
        """
        stopped = counted.count.stopped
        is_unknown = counted.workload.pods is None or (stopped is not None and stopped.verdict == "Unknown")
        if not self.with_room or counted.is_refused or is_unknown:
            return None

        def show(moves: int, sets: int) -> None:
            self.progress.show(f"{counted.workload.name}: {sets} sets of pods tried, of {moves} pods now")

        pod, snapshot = counts.next_pod(counted)
        schedulers = self.schedulers.of(counted.workload.policy)
        found = make_room(snapshot, self._disruptions.bound, self._disruptions.budgets, pod, schedulers, show)
        self.progress.end()
        return found

    def room_to_json(self, room: Room | None) -> dict[str, Any]:
        """Return the fields that --make-room adds to the line of a pod."""
        if not self.with_room:
            return {}
        return {"makeRoom": room and room_to_json(room, self._disruptions.budgets)}

    def print_room(self, room: Room | None) -> None:
        """Print how to make room, if the pod needs it."""
        if room is not None:
            print_room(self.console, room, self._disruptions.budgets)
