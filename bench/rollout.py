"""`make bench-rollout`, `make bench-crash`: pods are created on a real API server while replicas of the webhook end.

Replicas are replaced in turn, as a Deployment does: no creation fails. Or they are killed in turn (SIGKILL) and started
again: creations fail then, but each pod that was created has its decision in an audit log, and the logs are whole.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from bench.replicas import Created, Load, Replicas, decisions, recorded, replicated, verified
from tests.controlplane.binaries import find_or_build
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane

FLAGS = ("--no-cluster", "--shutdown-delay-seconds=1")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The pods that were created, and the errors of the others."""

    made: list[Created]
    failures: list[str]

    @property
    def not_injected(self) -> int:
        """The pods that were created without the mark of the policy."""
        return sum(not each.is_injected for each in self.made)


def created_while(load: Load, creations: int, turns: int, act: Callable[[], object]) -> Outcome:
    """Create at least `creations` pods, while `act` is called `turns` times."""
    with load:
        for turn in range(turns):
            load.wait_sent(creations * (turn + 1) // (turns + 1))
            act()
        load.wait_sent(creations)
    return Outcome(load.made, load.failures)


@dataclass(frozen=True, slots=True)
class Records:
    """The decisions that clients got, those that are in no audit log, and what `audit verify` says of the logs."""

    decisions: int
    unrecorded: list[str]
    verification: "subprocess.CompletedProcess[str]"


def records_of(cluster: Cluster, replicas: Replicas, outcome: Outcome) -> Records:
    """Compare the audit log of the API server with those of the replicas, which must hold whole lines only."""
    given = decisions(cluster)
    got = [given[each.audit_id] for each in outcome.made]
    written = recorded(replicas.audit_files())
    return Records(len(got), [each for each in got if each not in written], verified(replicas.audit_files()))


@click.command()
@click.option("--kill", is_flag=True, help="Kill replicas instead of replacing them.")
@click.option("--creations", type=click.IntRange(1, 100_000), default=5000, show_default=True)
@click.option("--clients", type=click.IntRange(1, 64), default=8, show_default=True)
@click.option("--turns", type=click.IntRange(1, 50), default=10, show_default=True)
def main(kill: bool, creations: int, clients: int, turns: int) -> None:
    """Create pods on a real API server while two replicas end in turn; exit with 1 if something is lost."""
    programs = find_or_build(os.environ, lambda line: click.echo(line, err=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("control-plane", "webhook"):
            (folder / part).mkdir()
        with (
            ControlPlane(programs, folder / "control-plane") as control_plane,
            replicated(folder / "webhook", 2, *FLAGS) as replicas,
        ):
            control_plane.stop_scheduler()
            cluster = Cluster(control_plane)
            replicas.register(cluster)
            act = replicas.crash if kill else replicas.roll
            outcome = created_while(Load(cluster, clients), creations, turns, act)
            records = records_of(cluster, replicas, outcome)
    latencies = sorted(each.latency_seconds for each in outcome.made)
    click.echo(
        f"{len(outcome.made)} pods created by {clients} clients, {len(outcome.failures)} failed, "
        f"{outcome.not_injected} without injection, {turns} replicas {'killed' if kill else 'replaced'}; "
        f"slowest {latencies[-1]:.3f} s, median {latencies[len(latencies) // 2] * 1000:.1f} ms\n"
        f"{records.decisions} decisions, {len(records.unrecorded)} without an audit record\n"
        f"audit verify: {records.verification.stdout.partition(chr(10))[0]}{records.verification.stderr}"
    )
    for failure in outcome.failures[:10]:
        click.echo(failure, err=True)
    lost = outcome.not_injected or records.unrecorded or records.verification.returncode
    if lost or (outcome.failures and not kill):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
