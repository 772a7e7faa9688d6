"""`make soak`: two replicas under steady load, while pods come and go, and policy and certificate change.

The load is on a real API server and kube-scheduler, with `failurePolicy: Fail` and a live view. Every ten seconds
something changes, in turn: another valid policy, a rotation of the certificate or the CA by the certs controller, a
policy that is invalid and must not be used. Prints a row for each minute, and fails if memory grows, if the tail
latency doubles, or if anything is lost.
"""

import http.client
import re
import socket
import ssl
import statistics
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count, cycle
from pathlib import Path

import click

from bench.attackers.abuse_connections import costly_review
from bench.rotation import Installation
from bench.running.kept_certificates import certificates_kept
from bench.running.pod_clients import Created, Load
from bench.running.real_cluster import control_plane_and_folder
from bench.running.replicas import Replicas, decisions, recorded, replicated, verified
from certs import pem
from certs.pki import KeyPair
from certs.plan import Request
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import DOMAIN, TYPE
from tests.support.attacks import partial_handshakes
from tests.support.mutations import mutated
from tests.support.objects.builders import make_node_object, make_pod
from webhook.policy.spec.document import API_VERSION, KIND

_CHANGE_SECONDS = 10.0
_SAMPLE_SECONDS = 2.0
# Four clients with this pause create about 40 pods a second.
_CLIENTS = 4
_PAUSE_SECONDS = 0.1
_NODES = 20
_WARM_UP_SECONDS = 60.0
_MIB = 1024 * 1024
_ATTACK_PAUSE_SECONDS = 0.2
# An odd number, so that each replica has its turn.
_HALF_OPEN = 51

MOST_GROWTH_MIB_PER_MINUTE = 2.0
"""The slope of a replica's resident memory after the first minute, by least squares, that is no growth."""
MOST_TAIL_RATIO = 2.0
"""The p99 of the last minute, to the median of those of the minutes before."""
MOST_LATE_GROWTH = 0.05
"""The share by which a replica may grow in the second half, in runs of half an hour and more."""
LEAST_TAIL_SECONDS = 0.05
"""A p99 below this is the noise of the machine."""

_POLICIES = tuple(
    f"apiVersion: {API_VERSION}\nkind: {KIND}\nspec: {{placementCheck: {{mode: '{mode}'}}}}\n"
    for mode in ("warn", "off")
)
_INVALID_POLICY = _POLICIES[0].replace("warn", "nonsense")


@dataclass(frozen=True, slots=True)
class Sample:
    """The resident memory of each replica at a time since the start."""

    seconds: float
    resident_bytes: tuple[int, ...]


@dataclass(slots=True)
class Changes:
    """The changes that were made, and those that the replicas report in their metrics."""

    policies: int = 0
    certificates: int = 0
    cas: int = 0
    invalid_policies: int = 0
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Minute:
    """The pods that were created in one minute, their latencies, and the memory of the replicas at its end."""

    pods: int
    median_seconds: float
    tail_seconds: float
    resident_mib: tuple[float, ...]


def minutes_of(made: Sequence[Created], samples: Sequence[Sample], began_seconds: float, count: int) -> list[Minute]:
    """Return the whole minutes of a run."""
    found = []
    for number in range(count):
        latencies = sorted(
            each.latency_seconds for each in made if int((each.sent_seconds - began_seconds) // 60) == number
        )
        last = [each for each in samples if int(each.seconds // 60) == number]
        if latencies and last:
            resident = tuple(each / _MIB for each in last[-1].resident_bytes)
            tail = latencies[int(len(latencies) * 0.99)]
            found.append(Minute(len(latencies), latencies[len(latencies) // 2], tail, resident))
    return found


def growth_mib_per_minute(samples: Sequence[Sample]) -> list[float]:
    """Return the slope of each replica's memory after the warm-up."""
    warm = [each for each in samples if each.seconds >= min(_WARM_UP_SECONDS, samples[-1].seconds / 2)]
    minutes = [each.seconds / 60 for each in warm]
    columns = zip(*(each.resident_bytes for each in warm), strict=True)
    return [statistics.linear_regression(minutes, [each / _MIB for each in column]).slope for column in columns]


def late_growth(samples: Sequence[Sample]) -> list[float]:
    """Return the share by which each replica's memory grew from the third quarter of the run to the last one."""
    if len(samples) < 4:
        return []
    third, last = (samples[len(samples) * n // 4 : len(samples) * (n + 1) // 4] for n in (2, 3))
    columns = [zip(*(each.resident_bytes for each in part), strict=True) for part in (third, last)]
    return [statistics.median(b) / statistics.median(a) - 1 for a, b in zip(*columns, strict=True)]


def tail_ratio(minutes: Sequence[Minute]) -> float:
    """Return the p99 of the last minute to that of the minutes before; 1 with less than two minutes."""
    if len(minutes) < 2:
        return 1.0
    before = statistics.median(each.tail_seconds for each in minutes[:-1])
    return max(minutes[-1].tail_seconds, LEAST_TAIL_SECONDS) / max(before, LEAST_TAIL_SECONDS)


def make_changes(
    replicas: Replicas, policy: Path, certificates: Installation, changes: Changes, ended: threading.Event
) -> None:
    """Change something every ten seconds until `ended`, and wait until all replicas use or reject it."""
    policies, rotations = cycle(reversed(_POLICIES)), cycle((Request.SERVING, Request.CA))
    for what in cycle(("policy", "certificate", "invalid policy")):
        if ended.wait(_CHANGE_SECONDS):
            return
        counts = partial(_counts, replicas, what)
        before = wait_for(counts, f"the replicas to state how often they noticed the {what}")
        rotated = None
        if what == "certificate":
            rotation, keys = next(rotations), certificates.key_material()
            certificates.request(rotation)
            rotated = partial(certificates.rotated, rotation, keys)
            changes.certificates += rotation is Request.SERVING
            changes.cas += rotation is Request.CA
        elif what == "policy":
            policy.write_text(next(policies))
            changes.policies += 1
        else:
            policy.write_text(_INVALID_POLICY)
            changes.invalid_policies += 1
        try:
            wait_for(partial(_all_noticed, replicas, what, before), f"the replicas to notice the {what}")
            if rotated is not None:
                wait_for(rotated, "the end of the rotation")
        except TimeoutError as error:
            changes.missing.append(str(error))


def _counts(replicas: Replicas, what: str) -> list[float] | None:
    """Return how often each replica noticed such a change; None if one does not answer, such as a starved one."""
    with suppress(OSError):
        return [_count(replicas, number, what) for number in range(len(replicas.running))]
    return None


def _all_noticed(replicas: Replicas, what: str, before: Sequence[float]) -> bool:
    counts = _counts(replicas, what)
    return counts is not None and all(count > known for count, known in zip(counts, before, strict=True))


# The metric of reloads, and its result.
_SERIES = {
    "policy": ("policy", "applied"),
    "invalid policy": ("policy", "rejected"),
    "certificate": ("certificate", "success"),
}


def _count(replicas: Replicas, number: int, what: str) -> float:
    """Return how often a replica noticed a change."""
    port = replicas.running[number].backend.admin_port
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    reloaded, result = _SERIES[what]
    series = rf'^placement_webhook_{reloaded}_reloads_total{{result="{result}"}} (\S+)$'
    found = re.search(series, text, re.MULTILINE)
    return float(found.group(1)) if found else 0.0


@dataclass(frozen=True, slots=True)
class Soak:
    """The result of a run."""

    made: list[Created]
    failures: list[str]
    samples: list[Sample]
    minutes: list[Minute]
    changes: Changes

    @property
    def faults(self) -> list[str]:
        """What is wrong with memory, latency, answers and changes."""
        found = [
            f"the memory of replica {number} grows by {slope:.2f} MiB a minute"
            for number, slope in enumerate(growth_mib_per_minute(self.samples))
            if slope > MOST_GROWTH_MIB_PER_MINUTE
        ]
        if len(self.minutes) >= 30:
            found += [
                f"the memory of replica {number} grows by {share:.1%} in the second half"
                for number, share in enumerate(late_growth(self.samples))
                if share > MOST_LATE_GROWTH
            ]
        if (ratio := tail_ratio(self.minutes)) > MOST_TAIL_RATIO:
            found.append(f"the p99 of the last minute is {ratio:.1f} times that of the minutes before")
        if self.failures:
            found.append(f"{len(self.failures)} creations failed: {self.failures[0]}")
        if not_injected := sum(not each.policy for each in self.made):
            found.append(f"{not_injected} pods were created without injection")
        return found + self.changes.missing


def attack(replicas: Replicas, number: int, ended: threading.Event) -> None:
    """Attack one replica after the other from the address of attacker `number` until `ended`."""
    reviews, address = mutated(number), f"127.0.0.{number + 2}"
    half_open: list[socket.socket] = []
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    for turn in count():
        if ended.wait(_ATTACK_PAUSE_SECONDS):
            return
        port = replicas.running[turn % len(replicas.running)].backend.port
        body = next(reviews) if turn & 2 else costly_review(turn)
        # Refused, answered late, or closed: the attacker goes on.
        with suppress(OSError, http.client.HTTPException):
            if turn % _HALF_OPEN == 0:
                for each in half_open:
                    each.close()
                half_open = partial_handshakes(port, _HALF_OPEN, address)
            client = http.client.HTTPSConnection(
                "127.0.0.1", port, timeout=10, source_address=(address, 0), context=trust
            )
            try:
                client.request("POST", "/mutate", body, {"Content-Type": "application/json"})
                client.getresponse().read()
            finally:
                client.close()


@contextmanager
def attacked(replicas: Replicas, attackers: int) -> Iterator[None]:
    """Let so many attack the replicas until the block ends."""
    ended = threading.Event()
    threads = [threading.Thread(target=attack, args=(replicas, number, ended)) for number in range(attackers)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        ended.set()
        for each in threads:
            each.join()


def soaked(cluster: Cluster, replicas: Replicas, policy: Path, certificates: Installation, minutes: float) -> Soak:
    """Run the load and the changes for so many minutes."""
    replicas.register(cluster)
    usage = {f"{DOMAIN}/node.usage": "inference", "nvidia.com/gpu.product": "NVIDIA-H20"}
    nodes = [make_node_object(f"n-{n}", labels=usage, capacity={"nvidia.com/gpu": 8}) for n in range(_NODES)]
    cluster.make_nodes(*nodes)
    template = make_pod("load").gpu(1).annotate(TYPE, "inference")
    changes, ended, samples = Changes(), threading.Event(), list[Sample]()
    arguments = (replicas, policy, certificates, changes, ended)
    changing = threading.Thread(target=make_changes, args=arguments, name="changes")
    began = time.monotonic()
    with Load(cluster, _CLIENTS, _PAUSE_SECONDS, deletes=True, template=template) as load:
        changing.start()
        try:
            while (seconds := time.monotonic() - began) < minutes * 60:
                samples.append(Sample(seconds, tuple(each.resident_bytes for each in replicas.running)))
                ended.wait(_SAMPLE_SECONDS)
        finally:
            ended.set()
            changing.join()
    rows = minutes_of(load.made, samples, began, round(minutes))
    return Soak(load.made, load.failures, samples, rows, changes)


def print_minutes(minutes: Sequence[Minute]) -> None:
    """Print a row for each minute."""
    click.echo("minute   pods   p50 ms   p99 ms   resident MiB")
    for number, each in enumerate(minutes, start=1):
        resident = "  ".join(f"{mib:.1f}" for mib in each.resident_mib)
        median, tail = each.median_seconds * 1000, each.tail_seconds * 1000
        click.echo(f"{number:6}  {each.pods:5}  {median:7.1f}  {tail:7.1f}   {resident}")


@click.command()
@click.option("--minutes", type=click.FloatRange(0.5, 24 * 60), default=5, show_default=True)
@click.option("--attackers", type=click.IntRange(0, 8), default=0, show_default=True)
def main(minutes: float, attackers: int) -> None:
    """Run two replicas under steady load and changes; exit with 1 if memory or latency grows, or something is lost."""
    with control_plane_and_folder() as (control_plane, folder):
        policy = folder / "policy.yaml"
        policy.write_text(_POLICIES[0])
        control_plane.start_scheduler(verbosity=4)
        flags = [f"--kubeconfig={control_plane.kubeconfig}", f"--policy={policy}"]
        cluster = Cluster(control_plane)
        with (
            certificates_kept(cluster, folder) as certificates,
            replicated(folder, 2, *flags, ca=KeyPair(pem.encode(*certificates.key_material().cas), b"")) as replicas,
        ):
            with attacked(replicas, attackers):
                soak = soaked(cluster, replicas, policy, certificates, minutes)
            given, written = decisions(cluster.control_plane.audit_log), recorded(replicas.audit_files())
            unrecorded = [each.audit_id for each in soak.made if given.get(each.audit_id) not in written]
            verification = verified(replicas.audit_files())
    print_minutes(soak.minutes)
    late = ", ".join(f"{share:+.1%}" for share in late_growth(soak.samples))
    slopes = ", ".join(f"{slope:+.2f}" for slope in growth_mib_per_minute(soak.samples))
    done = soak.changes
    click.echo(
        f"{len(soak.made)} pods created and deleted, {len(soak.failures)} failed; {done.policies} policies and "
        f"{done.certificates} certificates and {done.cas} CAs put into force, {done.invalid_policies} invalid policies "
        "rejected\n"
        f"memory: {slopes} MiB a minute (limit {MOST_GROWTH_MIB_PER_MINUTE:g}), {late} in the second half; "
        f"p99 of the last minute: {tail_ratio(soak.minutes):.2f} times the one before (limit {MOST_TAIL_RATIO:g})\n"
        f"{len(unrecorded)} answers without an audit record; audit verify: {verification.stdout.partition(chr(10))[0]}"
    )
    faults = soak.faults
    if unrecorded or verification.returncode:
        faults.append(f"{len(unrecorded)} answers have no audit record; {verification.stderr.strip()}")
    for fault in faults:
        click.echo(f"fault: {fault}", err=True)
    if faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
