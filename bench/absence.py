"""`make bench-absence`: pods created on a real API server while no replica of the webhook runs.

The webhook is registered with `failurePolicy: Ignore`, and its leader has exported the policy. All replicas are killed,
and clients create pods: each must be stored, with exactly the injection that the webhook makes. Then the replicas come
back: `missed` finds no pod, and later pods have verdicts again.
"""

import math
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import click
import orjson

from bench.running.pod_clients import Creations, Load, created_while, injection_in, policy_of
from bench.running.real_cluster import control_plane_and_folder
from bench.running.replicas import Replicas, replicated
from certs.registration import Target
from certs.webhook_rules import PODS
from tests.controlplane.client import Client
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import DOMAIN, TYPE, admit_pod
from tests.support.objects.builders import make_pod
from tests.support.servers import processes
from webhook.policy.loader import built_in_policy

_TRAINER = make_pod("load").annotate(TYPE, "training").gpu(1)
_AFTERWARDS = 10
_MISSED, _IN_STEP = "placement_webhook_missed_pods ", "placement_webhook_exported_policy_in_step "


@dataclass(frozen=True, slots=True)
class Absence:
    """The pods created without a replica; what `missed` and the metric report afterwards, and the verdicts then."""

    pods: Creations
    missed: "subprocess.CompletedProcess[str]"
    missed_pods: float
    verdicts: Counter[str]

    @property
    def is_survived(self) -> bool:
        """Return whether nothing is lost."""
        lost = self.pods.failures or self.pods.faults or self.missed.returncode or self.missed_pods
        return not lost and self.verdicts.total() == self.verdicts["Unchanged, Feasible"] == _AFTERWARDS


def exporting(client: Client) -> tuple[str, ...]:
    """Make what a replica needs that exports the policy; return its flags on the cluster of the kubeconfig."""
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": Target().namespace}})
    return ("--export-policy=on", "--webhook-configuration=placement-webhook")


def wait_exported(cluster: Cluster, *, acts: bool = True) -> None:
    """Return once the API server injects by itself, or no longer does; no replica may run.

    Then it has compiled the policy, which takes it a second of processor time.
    """
    probe = make_pod("probe").annotate(TYPE, "training").gpu(1).obj()

    def is_in_force() -> bool:
        made = cluster.client.create(probe, namespace=cluster.namespace, dry_run=True).object
        return bool(policy_of(made)) is acts

    wait_for(is_in_force, "the exported policy", deadline_seconds=120)


def expected_injection() -> dict[str, Any]:
    """Return the injection of the webhook, as the pure core computes it."""
    verdict = admit_pod(_TRAINER.obj(), built_in_policy())
    if verdict.outcome != "Patched":
        raise TypeError(verdict.outcome)
    return injection_in(deepcopy(verdict.pod))


def checked() -> Callable[[dict[str, Any]], str]:
    """Return a check for stored pods: exactly the injection of the webhook, but for its own annotations."""
    expected = _without_marks(expected_injection())

    def check(pod: dict[str, Any]) -> str:
        found = injection_in(pod)
        is_marked = bool(policy_of(pod))
        return "" if is_marked and _without_marks(found) == expected else f"{pod['metadata']['name']}: {found}"

    return check


def _without_marks(injection: dict[str, Any]) -> dict[str, Any]:
    policy = built_in_policy()
    marks = (policy.policy_annotation, policy.rules_annotation)
    others = {key: value for key, value in injection["annotations"].items() if key not in marks}
    return injection | {"annotations": others}


def absent_under_load(cluster: Cluster, replicas: Replicas, creations: int, clients: int) -> Absence:
    """Create at least so many pods by so many clients while no replica runs, then let them come back."""
    replicas.register(cluster, name=PODS, failurePolicy="Ignore", timeoutSeconds=1)
    wait_in_step(replicas)
    slots = [each.slot for each in replicas.running]
    for replica in list(replicas.running):
        replicas.kill(replica)
    wait_exported(cluster)
    pods = created_while(Load(cluster, clients, template=_TRAINER, check=checked()), creations, 1, lambda: None)
    for slot in slots:
        replicas.start(slot)
    replicas.wait_ready(len(slots))
    kubeconfig = str(cluster.control_plane.kubeconfig)
    command = [*processes.PROGRAM, "missed", "--kubeconfig", kubeconfig]
    missed = subprocess.run(command, capture_output=True, text=True, check=False)
    missed_pods = max(_metric(each.backend.admin_port, _MISSED) for each in replicas.running)
    return Absence(pods, missed, missed_pods, _verdicts(cluster, replicas))


def _verdicts(cluster: Cluster, replicas: Replicas) -> Counter[str]:
    """Create some pods; return the outcomes and verdicts in their audit records."""
    names = {f"afterwards-{number}" for number in range(_AFTERWARDS)}
    for name in sorted(names):
        pod = _TRAINER.obj()
        pod["metadata"]["name"] = name
        cluster.client.create(pod, namespace=cluster.namespace)
    records = [orjson.loads(line) for file in replicas.audit_files() for line in file.read_bytes().splitlines()]
    found = {each["name"]: each for each in records if each["name"] in names}
    return Counter(f"{each['outcome']}, {each['placement']['verdict']}" for each in found.values())


def wait_in_step(replicas: Replicas) -> None:
    """Return once the leader of the replicas has exported the policy."""
    wait_for(
        lambda: any(_metric(each.backend.admin_port, _IN_STEP) == 1 for each in replicas.running),
        "the exported policy",
        deadline_seconds=60,
    )


def _metric(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next((float(line.removeprefix(name)) for line in lines if line.startswith(name)), math.nan)


def make_training_node(cluster: Cluster) -> None:
    """Make a node that takes all pods of the trial."""
    amounts: dict[str, str | int] = {"nvidia.com/gpu": 1_000_000, "pods": 1_000_000, "cpu": 1_000_000, "memory": "1Pi"}
    cluster.make_node("training-1", labels={f"{DOMAIN}/node.usage": "training"}, capacity=amounts, allocatable=amounts)


@click.command()
@click.option("--creations", type=click.IntRange(1, 100_000), default=5000, show_default=True)
@click.option("--clients", type=click.IntRange(1, 64), default=8, show_default=True)
def main(creations: int, clients: int) -> None:
    """Create pods on a real API server while no replica runs; exit with 1 if one lacks the injection."""
    with control_plane_and_folder() as (control_plane, folder):
        control_plane.stop_scheduler()
        cluster = Cluster(control_plane)
        make_training_node(cluster)
        flags = (f"--kubeconfig={control_plane.kubeconfig}", *exporting(cluster.client))
        with replicated(folder, 2, *flags) as replicas:
            outcome = absent_under_load(cluster, replicas, creations, clients)
    outcome.pods.print(clients)
    click.echo(
        f"missed: {outcome.missed.stdout}{outcome.missed.stderr}"
        f"placement_webhook_missed_pods: {outcome.missed_pods:g}\n"
        f"afterwards: {', '.join(f'{count} {verdict}' for verdict, count in outcome.verdicts.items())}"
    )
    if not outcome.is_survived:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
