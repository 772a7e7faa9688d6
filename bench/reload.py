"""`make bench-reload`: pods created on a real API server while the policy of the webhook is reloaded under them.

The webhook is registered with `failurePolicy: Fail`: each call that fails is a pod that is not created. Two policies
take turns, written in place, renamed, and by a swap of the symlink that a mounted ConfigMap has; between them comes one
that is not valid. Each stored pod must have the complete injection of one of the two policies.
"""

import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import click
import orjson

from bench.renewal import Webhook, serving
from bench.running.pod_clients import GATED, Creations, Load, created_while, injection_in, policy_of
from bench.running.real_cluster import control_plane_and_folder
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import TYPE, admit_pod
from tests.support.objects.builders import make_pod
from webhook.policy.loader import parse_policy

_POLICY = """\
apiVersion: placement.maip.mxsf.io/v1alpha1
kind: PlacementPolicy
metadata: {{name: reload}}
spec:
  workloadTypes:
    training:
      nodeUsage: {{allow: [training, {usage}], prefer: {{training: {weight}}}}}
      schedulerName: {scheduler}
      binPacking: true
  binPacking: {{labelValue: {label}}}
  tests:
  - name: training
    annotations: {{{type}: training}}
    expect: {{outcome: {outcome}, contains: {{spec: {{schedulerName: {scheduler}}}}}}}
"""
_FIRST = {"usage": "hybrid", "weight": 100, "scheduler": "volcano", "label": "first", "type": TYPE}
_SECOND = {"usage": "other", "weight": 7, "scheduler": "kai-scheduler", "label": "second", "type": TYPE}
_TEXTS = tuple(_POLICY.format(outcome="Patched", **each).encode() for each in (_FIRST, _SECOND))
# Its test case fails, so none of it may be seen in a pod.
_BAD = _POLICY.format(outcome="Unchanged", **{**_FIRST, "label": "bad"}).encode()
_TRAINER = make_pod("load").annotate(TYPE, "training").gpu(1)


@dataclass(frozen=True, slots=True)
class Server:
    """A webhook that follows a policy file."""

    webhook: Webhook
    file: Path

    def policy(self) -> dict[str, Any]:
        """Return what the admin port says of the policy."""
        url = f"http://127.0.0.1:{self.webhook.backend.admin_port}/policy"
        with urllib.request.urlopen(url, timeout=10) as answer:
            found: dict[str, Any] = orjson.loads(answer.read())
        return found


@contextmanager
def following(folder: Path) -> Iterator[Server]:
    """A webhook that follows a policy file in `folder`."""
    (folder / "policy").mkdir()
    file = folder / "policy" / "policy.yaml"
    file.write_bytes(_TEXTS[0])
    with serving(folder, f"--policy={file}") as webhook:
        yield Server(webhook, file)


def _in_place(file: Path, content: bytes) -> None:
    with file.open("wb") as written:
        for start in range(0, len(content), 64):
            written.write(content[start : start + 64])
            written.flush()


def _renamed(file: Path, content: bytes) -> None:
    staged = file.with_name("staged")
    staged.write_bytes(content)
    staged.replace(file)


def _swapped(file: Path, content: bytes) -> None:
    made = Path(tempfile.mkdtemp(prefix="..", dir=file.parent))
    (made / file.name).write_bytes(content)
    for link, target in ((file.with_name("..data"), made.name), (file, f"..data/{file.name}")):
        staged = file.with_name("..staged")
        staged.symlink_to(target)
        staged.replace(link)


def _expected() -> dict[str, dict[str, Any]]:
    """Return the injection of each policy by its identity, as the pure core computes it."""
    found = {}
    for text in _TEXTS:
        policy = parse_policy(text, "policy.yaml")
        verdict = admit_pod(_TRAINER.obj(), policy)
        if verdict.outcome != "Patched":
            raise TypeError(verdict.outcome)
        found[policy.identity] = injection_in(deepcopy(verdict.pod))
    return found


def reloaded_under_load(
    cluster: Cluster, server: Server, creations: int, clients: int, reloads: int, pause_seconds: float = 0.0
) -> Creations:
    """Create at least so many pods by so many clients at a time, while the policy is reloaded that often.

    Before each reload, one policy is rejected. A client pauses after each pod.
    """
    expected = _expected()
    ways: tuple[Callable[[Path, bytes], None], ...] = (_in_place, _renamed, _swapped)
    turns = zip(cycle(ways), cycle((_TEXTS[1], _TEXTS[0])), strict=False)

    def check(pod: dict[str, Any]) -> str:
        injected = injection_in(pod)
        return "" if expected.get(policy_of(pod)) == injected else f"{pod['metadata']['name']}: {injected}"

    def reload() -> None:
        write, text = next(turns)
        _renamed(server.file, _BAD)
        wait_for(lambda: server.policy()["rejected"] is not None, "rejection")
        write(server.file, text)
        revision = parse_policy(text, "policy.yaml").revision
        wait_for(lambda: server.policy()["revision"] == revision, "reload")

    server.webhook.register(cluster)
    load = Load(cluster, clients, pause_seconds, template=_TRAINER.spec(**GATED), check=check)
    return created_while(load, creations, reloads, reload)


@click.command()
@click.option("--creations", type=click.IntRange(1, 20_000), default=5000, show_default=True)
@click.option("--clients", type=click.IntRange(1, 64), default=8, show_default=True)
@click.option("--reloads", type=click.IntRange(1, 100), default=30, show_default=True)
def main(creations: int, clients: int, reloads: int) -> None:
    """Create pods on a real API server while the policy is reloaded; exit with 1 if any fails or mixes policies."""
    with control_plane_and_folder() as (control_plane, folder):
        (folder / "webhook").mkdir()
        control_plane.stop_scheduler()
        with following(folder / "webhook") as server:
            pods = reloaded_under_load(Cluster(control_plane), server, creations, clients, reloads)
    pods.print(clients)
    policies = ", ".join(f"{count} of {policy}" for policy, count in sorted(pods.policies.items()))
    click.echo(f"{policies}; {reloads} policies applied, as many rejected")
    if pods.failures or pods.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
