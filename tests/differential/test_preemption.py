"""The real kube-scheduler evicts the pods that are predicted, on the predicted node, with the predicted text."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.controlplane.client import ApiError, Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.differential.kube_scheduler import KubeScheduler
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.preemption import (
    CLAIM,
    NAMESPACE,
    NEVER,
    POLICY,
    PRIORITIES,
    WANTED_CLAIMS,
    random_budgets,
    random_preemptor,
    random_world,
)
from tests.differential.random_objects.worlds import World
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
PODS = int(os.environ.get("DIFFERENTIAL_PREEMPTIONS", "30"))
_ALREADY_THERE = 409
_EVICTED = re.compile(rf'"Preemptor Pod preempted victim Pod".* victim="{NAMESPACE}/(?P<victim>[^"]+)"')
_CHOSEN = "the target node for the preemption is determined"
_NODE = re.compile(r' node="(?P<node>[^"]+)"')
_NUMBER = re.compile(r", preempting (\d+) victims")


@pytest.mark.parametrize("seed", range(FIRST_SEED + 90_000, FIRST_SEED + 90_000 + PODS // WANTED_CLAIMS))
def test_victims_are_predicted(cluster: Cluster, seed: int) -> None:
    dice = Dice(seed)
    nodes = dice.choice((2, 3, 4, 6, 17, 30)) if seed % 10 else 101
    world, budgets = random_world(dice, nodes), random_budgets(dice)
    preempting = Preempting(cluster)
    found = []
    for number in range(WANTED_CLAIMS):
        preempting.establish(world, budgets)
        pod = random_preemptor(dice, f"preemptor-{seed}-{number}", f"{CLAIM}-{number}" if world.storage else "")
        message, preemption = predicted(preempting.scheduler, pod)
        real = preempting.ask(pod)
        wrong = disagreements(real, message, preemption)
        found += [(pod["metadata"]["name"], *wrong, real, preemption and preemption.to_json())] if wrong else []
    assert found == [], "\n".join(map(str, found))


@dataclass(frozen=True, slots=True)
class Preempted:
    """What kube-scheduler did: the nominated node, the pods that it evicted, and the text of the first refusal.

    `victims` is None if pods of the node end already: kube-scheduler does not evict these again.
    """

    node: str
    victims: frozenset[str] | None
    message: str


class Preempting:
    """A control plane with one world at a time, in which kube-scheduler preempts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._client = cluster, cluster.client
        self.scheduler = KubeScheduler(cluster)
        self._budgets: list[Object] = []
        for name, value in {**PRIORITIES, NEVER: 100}.items():
            body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            policy = {"preemptionPolicy": "Never"} if name == NEVER else {}
            try:
                self._client.create({**body, "value": value, **policy})
            except ApiError as error:
                if error.code != _ALREADY_THERE:
                    raise

    def establish(self, world: World, budgets: Sequence[Object]) -> None:
        """Make the cluster equal to `world` with `budgets`, also after pods were evicted."""
        self.scheduler.forget_gone()
        self.scheduler.establish(world)
        if [*budgets] == self._budgets:
            return
        for each in self._budgets:
            self._client.delete(
                "PodDisruptionBudget", each["metadata"]["name"], namespace=NAMESPACE, api_version=POLICY
            )
        for each in budgets:
            self._client.create(each)
            name, status = each["metadata"]["name"], {"status": each["status"]}
            self._client.patch(
                "PodDisruptionBudget", name, status, namespace=NAMESPACE, api_version=POLICY, subresource="status"
            )
        self._budgets = [*budgets]

    def ask(self, pod: Object) -> Preempted | None:
        """Return what kube-scheduler does for `pod`, or None if a node takes it at once; then delete it."""
        log = self._cluster.control_plane.scheduler_log
        since, before = log.end(), self._client.list("Pod", NAMESPACE)
        stored = self._cluster.create(pod).object
        key = stored["metadata"]["name"], stored["metadata"]["namespace"]

        def refused() -> tuple[str] | None:
            is_bound = self._is_bound(key)
            message = self._cluster.first_refusal_yet(stored)
            return (message or "",) if message or is_bound else None

        (message,) = wait_for(refused, f"an answer for {key[0]}")
        lines = [line for line in log.lines(since) if _CHOSEN in line and f'pod="{NAMESPACE}/{key[0]}"' in line]
        found = _NODE.search(lines[0]) if lines else None
        node = found["node"] if found else ""
        victims = None
        ended = [each["spec"].get("nodeName") for each in before if each["metadata"].get("deletionTimestamp")]
        if node and node not in ended:
            match = _NUMBER.search(message)

            def evicted() -> frozenset[str] | None:
                if match is None:
                    # Before 1.37, the message has no number; the pod is bound once all are gone.
                    return self._gone(before) if self._is_bound(key) else None
                gone = frozenset(each["victim"] for line in log.lines(since) if (each := _EVICTED.search(line)))
                return gone if len(gone) == int(match[1]) else None

            victims = wait_for(evicted, f"the victims of {key[0]}")
        self._cluster.delete_pod(stored)
        return Preempted(node, victims, message) if message else None

    def _gone(self, before: Sequence[Object]) -> frozenset[str]:
        """Return the names of the pods in `before` that exist no longer."""
        left = {each["metadata"]["name"] for each in self._client.list("Pod", NAMESPACE)}
        return frozenset(each["metadata"]["name"] for each in before).difference(left)

    def _is_bound(self, key: tuple[str, str]) -> bool:
        return bool(self._client.get("Pod", *key)["spec"].get("nodeName"))


def predicted(scheduler: KubeScheduler, pod: Object) -> tuple[str, PredictedPreemption | None]:
    """Return the message and the preemption that are predicted for `pod`; no preemption if a node can take it."""
    snapshot = scheduler.snapshot()
    predicting = Scheduler(suggestions=1)
    placement = predicting.answer(PodSignature.of(pod), snapshot)
    return placement.full_message, None if placement.feasible else placement.preemption


def disagreements(real: Preempted | None, message: str, found: PredictedPreemption | None) -> list[str]:
    """Return in words how the prediction differs from what kube-scheduler did."""
    if real is None or found is None:
        return [] if (real is None) == (found is None) else [f"a node can take it: {real is None}"]
    if not found.evicts and not found.is_exact:
        # The evictions are not known, and the reason is stated.
        return [] if found.why and not found.message else ["neither known nor stated as not known"]
    wrong = []
    names = frozenset(each.name for each in found.victims)
    if bool(real.node) != found.evicts:
        wrong.append(f"evicts: {real.node!r}, predicted {found.evicts}")
    elif real.node and found.nodes and real.node not in found.nodes:
        wrong.append(f"node {real.node}, predicted {found.nodes}")
    elif real.victims is not None:
        if found.is_exact and names != real.victims:
            wrong.append(f"victims {sorted(real.victims)}, predicted {sorted(names)}")
        if found.nodes and not real.victims <= names:
            wrong.append(f"victims {sorted(real.victims)}, predicted among {sorted(names)}")
        if not found.least <= len(real.victims) <= found.most:
            wrong.append(f"{len(real.victims)} victims, predicted {found.least} to {found.most}")
    if found.message and message != real.message:
        wrong.append(f"message {real.message!r}, predicted {message!r}")
    return wrong
