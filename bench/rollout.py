"""`make bench-rollout`, `make bench-crash`: pods are created on a real API server while replicas of the webhook end.

Replicas are replaced in turn, as a Deployment does: no creation fails. Or they are killed in turn (SIGKILL) and started
again: creations fail then, but each pod that was created has its decision in an audit log, and the logs are whole.
"""

import subprocess
from dataclasses import dataclass

import click

from bench.running.pod_clients import Creations, Load, created_while
from bench.running.real_cluster import control_plane_and_folder
from bench.running.replicas import Replicas, decisions, recorded, replicated, verified
from tests.controlplane.cluster import Cluster

FLAGS = ("--no-cluster", "--shutdown-delay-seconds=1")


@dataclass(frozen=True, slots=True)
class Records:
    """The decisions that clients got, those that are in no audit log, and what `audit verify` says of the logs."""

    decisions: int
    unrecorded: list[str]
    verification: "subprocess.CompletedProcess[str]"


def records_of(cluster: Cluster, replicas: Replicas, outcome: Creations) -> Records:
    """Compare the audit log of the API server with those of the replicas, which must hold whole lines only."""
    given = decisions(cluster.control_plane.audit_log)
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
    with control_plane_and_folder() as (control_plane, folder), replicated(folder, 2, *FLAGS) as replicas:
        control_plane.stop_scheduler()
        cluster = Cluster(control_plane)
        replicas.register(cluster)
        act = replicas.crash if kill else replicas.roll
        outcome = created_while(Load(cluster, clients), creations, turns, act)
        records = records_of(cluster, replicas, outcome)
    outcome.print(clients)
    click.echo(
        f"{turns} replicas {'killed' if kill else 'replaced'}\n"
        f"{records.decisions} decisions, {len(records.unrecorded)} without an audit record\n"
        f"audit verify: {records.verification.stdout.partition(chr(10))[0]}{records.verification.stderr}"
    )
    lost = outcome.faults or records.unrecorded or records.verification.returncode
    if lost or (outcome.failures and not kill):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
