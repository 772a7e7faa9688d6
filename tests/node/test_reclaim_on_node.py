"""What `reclaim` reports of the pods of a real kubelet: an image that is not pulled, a crash loop, a pod that stays."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.client import NotFound, Object
from tests.controlplane.polling import wait_for
from tests.node.installation import TEAM, Installation, pod

ABSENT_IMAGE = "localhost:1/absent:1"
SHIM = b"containerd-shim-runc-v2"


def shims() -> set[int]:
    """Return the processes of containerd that hold a pod each."""
    found = set()
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                command = (each / "cmdline").read_bytes()
            except OSError:
                continue
            if SHIM in command.partition(b"\0")[0]:
                found.add(int(each.name))
    return found


@contextmanager
def hung(processes: set[int]) -> Iterator[None]:
    """Stop the processes, as a runtime that hangs."""
    for each in processes:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in processes:
            os.kill(each, signal.SIGCONT)


def reclaim(installation: Installation, options: str = "") -> dict[str, Any]:
    """Return the report of `reclaim` about the team."""
    command = f"placement-webhook reclaim --kubeconfig {installation.node.kubeconfig} -n {TEAM} -o json {options}"
    found: dict[str, Any] = json.loads(installation.shell(command, check=False).stdout)
    return found


def classes(installation: Installation) -> dict[str, str]:
    """Return the class of each pod that is reported, by its name."""
    return {each["name"]: each["class"] for each in reclaim(installation, "--older-than 1s")["held"]}


def evicted(installation: Installation, *names: str) -> bool:
    """Evict the pods that do not start, and return whether the pods `names` are gone.

    A pull that has just failed has no begin, so its pod is left alone until the kubelet backs off.
    """
    policy = {
        "apiVersion": "placement.maip.mxsf.io/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": "default"},
    }
    spec = {"reclaim": {"namespaces": [TEAM]}}
    file = installation.shell.folder / "reclaim.yaml"
    file.write_text(yaml.safe_dump({**policy, "spec": spec}))
    chosen = f"--older-than 1s --class image-pull,crash-loop --policy {file} -n {TEAM}"
    confirmed = f"--evict --confirm --pause 0s --audit {file.with_name('audit.jsonl')}"
    command = f"placement-webhook reclaim --kubeconfig {installation.node.kubeconfig} {chosen} {confirmed}"
    print(installation.shell(command, check=False).stdout)
    return all(is_gone(installation, name) for name in names)


def holder(name: str, cards: int = 2, **container: object) -> Object:
    """Return a pod with cards whose container differs by these fields."""
    made = pod(name, cards)
    made["metadata"]["annotations"] = {}
    made["spec"]["containers"][0].update(container)
    return made


def is_gone(installation: Installation, name: str) -> bool:
    try:
        installation.client.get("Pod", name, TEAM)
    except NotFound:
        return True
    return False


def test_pods_that_a_kubelet_cannot_start_or_end_are_reported_and_evicted(installation: Installation) -> None:
    """Two of eight cards are used and six held. A pod that asks for four starts when two holders are evicted."""
    others = shims()
    with installation.team():
        installation.create(holder("stays"))
        installation.wait_running("stays")
        with hung(shims() - others):
            installation.shell(f"kubectl -n {TEAM} delete pod stays --wait=false")
            installation.create(holder("works"))
            installation.create(holder("pulls", image=ABSENT_IMAGE))
            installation.create(holder("crashes", command=["/absent"]))
            installation.wait_running("works")
            installation.create(holder("waits", cards=4))
            installation.wait_unschedulable("waits")

            expected = {"stays": "terminating", "pulls": "image-pull", "crashes": "crash-loop"}
            wait_for(
                lambda: classes(installation) == expected or None,
                lambda: f"{expected} beside {reclaim(installation, '--older-than 1s')}",
                deadline_seconds=150,
            )
            wait_for(lambda: evicted(installation, "pulls", "crashes"), "the end of both", deadline_seconds=90)
            installation.wait_running("waits")
            assert classes(installation) == {"stays": "terminating"}
        wait_for(lambda: is_gone(installation, "stays") or None, "the end of stays", deadline_seconds=90)
        assert classes(installation) == {}
