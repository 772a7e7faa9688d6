"""Clients that create pods on a real API server, and the results for the pods.

The webhook is registered with `failurePolicy: Fail`, so each call that fails is a pod that is not created.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import click

from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.admission import DOMAIN, TYPE
from tests.support.objects.builders import PodBuilder, make_pod

# Fields of a pod's spec by which a scheduler that runs has nothing to do with it.
GATED = {"schedulingGates": [{"name": "example.com/load"}]}
_TRAINER = make_pod("load").annotate(TYPE, "training").spec(**GATED)


@dataclass(frozen=True, slots=True)
class Created:
    """A pod that was created: when its request was sent (monotonic), its latency, and the id of its audit event.

    `policy` is the mark of the policy that injected into it, empty without injection; `fault` is the result of
    `Load.check`.
    """

    sent_seconds: float
    latency_seconds: float
    audit_id: str
    policy: str
    fault: str


def _not_injected(pod: dict[str, Any]) -> str:
    return "" if policy_of(pod) else f"{pod['metadata']['name']}: without injection"


def policy_of(pod: dict[str, Any]) -> str:
    """Return the mark of the policy that injected into the pod, empty without injection."""
    return str(pod["metadata"].get("annotations", {}).get(f"{DOMAIN}/placement-policy", ""))


def injection_in(pod: dict[str, Any]) -> dict[str, Any]:
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


@dataclass(slots=True)
class Load:
    """Clients that create pods without pause. `made` and `failures` grow while they run; a client deletes its pods.

    `check` returns what is wrong with a stored pod, empty if nothing is.
    """

    cluster: Cluster
    clients: int
    pause_seconds: float = 0.0
    deletes: bool = False
    template: PodBuilder = _TRAINER
    check: Callable[[dict[str, Any]], str] = _not_injected
    made: list[Created] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        for number in range(self.clients):
            thread = threading.Thread(target=self._create_pods, args=(number,), name=f"client-{number}")
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    @property
    def sent(self) -> int:
        """The requests that have an answer."""
        return len(self.made) + len(self.failures)

    def wait_sent(self, count: int, *, deadline_seconds: float = 3600.0) -> None:
        """Return once so many requests have an answer."""
        wait_for(lambda: self.sent >= count, f"{count} requests", deadline_seconds=deadline_seconds)

    def wait_more(self, count: int) -> None:
        """Return once so many more requests have an answer."""
        self.wait_sent(self.sent + count)

    def _create_pods(self, client: int) -> None:
        number = 0
        while not self._ended.is_set():
            number += 1
            name = f"load-{client}-{number}"
            self._create(name)
            if self.deletes and number > 1:
                self._delete(f"load-{client}-{number - 1}")
            if self.pause_seconds:
                self._ended.wait(self.pause_seconds)

    def _create(self, name: str) -> None:
        pod = self.template.obj()
        pod["metadata"]["name"] = name
        sent = time.monotonic()
        try:
            answer = self.cluster.client.create(pod, namespace=self.cluster.namespace)
        except ApiError as error:
            self.failures.append(str(error))
            return
        latency, stored = time.monotonic() - sent, answer.object
        self.made.append(Created(sent, latency, answer.audit_id, policy_of(stored), self.check(stored)))

    def _delete(self, name: str) -> None:
        path = f"/api/v1/namespaces/{self.cluster.namespace}/pods/{name}"
        try:
            self.cluster.client.request("DELETE", path, query={"gracePeriodSeconds": "0"})
        except ApiError as error:
            if error.code != 404:
                self.failures.append(str(error))


@dataclass(frozen=True, slots=True)
class Creations:
    """The pods that a load created, and the errors of the others, in so many seconds."""

    made: list[Created]
    failures: list[str]
    seconds: float

    @property
    def faults(self) -> list[str]:
        """What is wrong with the stored pods."""
        return [each.fault for each in self.made if each.fault]

    @property
    def policies(self) -> Counter[str]:
        """The number of pods by the policy that injected into them."""
        return Counter(each.policy for each in self.made)

    def print(self, clients: int) -> None:
        """Print the numbers and latencies, and to standard error the first failures and faults."""
        latencies = sorted(each.latency_seconds for each in self.made) or [0.0]
        click.echo(
            f"{len(self.made)} pods created in {self.seconds:.1f} s by {clients} clients, "
            f"{len(self.failures)} failed, {len(self.faults)} without the injection expected; "
            f"slowest {latencies[-1]:.3f} s, median {latencies[len(latencies) // 2] * 1000:.1f} ms"
        )
        for line in [*self.failures, *self.faults][:10]:
            click.echo(line, err=True)


def created_while(load: Load, creations: int, turns: int, act: Callable[[], object]) -> Creations:
    """Create at least `creations` pods, while `act` is called `turns` times."""
    began = time.monotonic()
    with load:
        for turn in range(turns):
            load.wait_sent(creations * (turn + 1) // (turns + 1))
            act()
        load.wait_sent(creations)
    return Creations(load.made, load.failures, time.monotonic() - began)
