"""`make bench-reload`: pods created on a real API server while the policy of the webhook is reloaded under them.

The webhook is registered with `failurePolicy: Fail`: each call that fails is a pod that is not created. Two policies
take turns, written in place, renamed, and by a swap of the symlink that a mounted ConfigMap has; between them comes one
that is not valid. Each stored pod must have the complete injection of one of the two policies.
"""

import os
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import click
import orjson

from bench.mounted_secret import wait
from bench.renewal import Webhook, serving
from tests.controlplane.binaries import find_or_build
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.support.admission import DOMAIN, TYPE, admit_pod
from tests.support.builders import make_pod
from webhook.policy.loader import parse_policy
from webhook.verdict import Patched

_POLL_SECONDS = 0.1
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


@dataclass(slots=True)
class Outcome:
    """The result: `failures` are the errors of pods, `mixed` the pods without the injection of one of the policies."""

    seconds: float = 0.0
    latencies_seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    revisions: Counter[str] = field(default_factory=Counter)
    reloads: int = 0
    rejections: int = 0

    @property
    def created(self) -> int:
        """The pods that were created."""
        return len(self.latencies_seconds)


@dataclass(frozen=True, slots=True)
class Server:
    """A webhook that follows a policy file."""

    webhook: Webhook
    file: Path

    def policy(self) -> dict[str, Any]:
        """Return what the admin port says of the policy."""
        line = (self.webhook.folder / "webhook.log").read_bytes().splitlines()[0]
        with urllib.request.urlopen(f"http://{orjson.loads(line)['admin']}/policy", timeout=10) as answer:
            found: dict[str, Any] = orjson.loads(answer.read())
        return found


@contextmanager
def following(folder: Path) -> Iterator[Server]:
    """A webhook that follows a policy file in `folder`."""
    (folder / "policy").mkdir()
    file = folder / "policy" / "policy.yaml"
    file.write_bytes(_TEXTS[0])
    with serving(folder, f"--policy={file}", f"--policy-poll-seconds={_POLL_SECONDS}") as webhook:
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


def _pod(name: str) -> dict[str, Any]:
    return make_pod(name).annotate(TYPE, "training").gpu(1).obj()


def _injected(pod: dict[str, Any]) -> dict[str, Any]:
    """Return what a policy injects into a pod, without what the API server adds."""
    metadata, spec = pod["metadata"], pod["spec"]
    tolerations = [each for each in spec["tolerations"] if not str(each.get("key")).startswith("node.kubernetes.io/")]
    return {
        "annotations": metadata["annotations"],
        "labels": metadata.get("labels"),
        "affinity": spec.get("affinity"),
        "scheduler": spec["schedulerName"],
        "tolerations": tolerations,
    }


def _expected() -> dict[str, dict[str, Any]]:
    """Return the injection of each policy by its identity, as the pure core computes it."""
    found = {}
    for text in _TEXTS:
        policy = parse_policy(text, "policy.yaml")
        verdict = admit_pod(_pod("any"), policy)
        if not isinstance(verdict, Patched):
            raise TypeError(verdict.outcome)
        found[policy.identity] = _injected(deepcopy(verdict.pod))
    return found


def reloaded_under_load(cluster: Cluster, server: Server, creations: int, clients: int, reloads: int) -> Outcome:
    """Create so many pods by so many clients at a time, or more, until the policy is reloaded that often."""
    outcome, ended, expected, numbers = Outcome(), threading.Event(), _expected(), count()
    webhook = server.webhook
    cluster.register_webhook(f"https://127.0.0.1:{webhook.port}/mutate", webhook.ca.certificate.decode())
    reloading = threading.Thread(target=_reload, args=(server, outcome, creations, reloads, ended), name="reloads")

    def create(_: int) -> None:
        while (number := next(numbers)) < creations or reloading.is_alive():
            _create(cluster, outcome, expected, number)

    began = time.monotonic()
    reloading.start()
    try:
        with ThreadPoolExecutor(clients, thread_name_prefix="client") as creating:
            for _ in creating.map(create, range(clients)):
                pass
        outcome.seconds = time.monotonic() - began
        reloading.join()
    finally:
        ended.set()
        reloading.join()
    outcome.latencies_seconds.sort()
    return outcome


def _create(cluster: Cluster, outcome: Outcome, expected: dict[str, dict[str, Any]], number: int) -> None:
    sent = time.monotonic()
    try:
        made: dict[str, Any] = cluster.client.create(_pod(f"reload-{number}"), namespace=cluster.namespace).object
    except ApiError as error:
        outcome.failures.append(str(error))
        return
    outcome.latencies_seconds.append(time.monotonic() - sent)
    revision = made["metadata"]["annotations"].get(f"{DOMAIN}/placement-policy", "none")
    outcome.revisions[revision] += 1
    if expected.get(revision) != _injected(made):
        outcome.mixed.append(f"{made['metadata']['name']}: {_injected(made)}")


def _reload(server: Server, outcome: Outcome, creations: int, reloads: int, ended: threading.Event) -> None:
    """Replace the policy each time that so many more pods are there, after one that is rejected."""
    ways: tuple[Callable[[Path, bytes], None], ...] = (_in_place, _renamed, _swapped)
    turns = zip(cycle(ways), cycle((_TEXTS[1], _TEXTS[0])), strict=False)
    for turn, (write, text) in enumerate(islice(turns, reloads), start=1):
        while outcome.created + len(outcome.failures) < creations * turn // (reloads + 1) and not ended.is_set():
            time.sleep(_POLL_SECONDS / 4)
        _renamed(server.file, _BAD)
        wait(lambda: server.policy()["rejected"] is not None, "rejection")
        outcome.rejections += 1
        write(server.file, text)
        revision = parse_policy(text, "policy.yaml").revision
        wait(lambda wanted=revision: server.policy()["revision"] == wanted, "reload")  # type: ignore[misc]
        outcome.reloads += 1


@click.command()
@click.option("--creations", type=click.IntRange(1, 20_000), default=5000, show_default=True)
@click.option("--clients", type=click.IntRange(1, 64), default=8, show_default=True)
@click.option("--reloads", type=click.IntRange(1, 100), default=30, show_default=True)
def main(creations: int, clients: int, reloads: int) -> None:
    """Create pods on a real API server while the policy is reloaded; exit with 1 if any fails or mixes policies."""
    programs = find_or_build(os.environ, lambda line: click.echo(line, err=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("control-plane", "server"):
            (folder / part).mkdir()
        with ControlPlane(programs, folder / "control-plane") as control_plane, following(folder / "server") as server:
            control_plane.stop_scheduler()
            outcome = reloaded_under_load(Cluster(control_plane), server, creations, clients, reloads)
    revisions = ", ".join(f"{count} of {revision}" for revision, count in sorted(outcome.revisions.items()))
    click.echo(
        f"{outcome.created} pods created in {outcome.seconds:.1f} s by {clients} clients, "
        f"{len(outcome.failures)} failed, {len(outcome.mixed)} without the whole injection of one policy; {revisions}; "
        f"slowest {outcome.latencies_seconds[-1]:.3f} s, "
        f"median {outcome.latencies_seconds[outcome.created // 2] * 1000:.1f} ms\n"
        f"{outcome.reloads} of {reloads} policies applied, {outcome.rejections} rejected"
    )
    for failure in [*outcome.failures, *outcome.mixed][:10]:
        click.echo(failure, err=True)
    if outcome.failures or outcome.mixed or outcome.reloads < reloads:
        sys.exit(1)


if __name__ == "__main__":
    main()
