"""Random clusters in which pods are preempted: the real kube-scheduler beside what is predicted."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.controlplane.client import ApiError, Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.differential.kube_scheduler import KubeScheduler
from tests.differential.random_objects.constraints import HOSTNAME, ZONE
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.worlds import World
from webhook.placement.framework.predicted_preemption import PredictedPreemption
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

NAMESPACE = "preemption"
# Few, so that pods are equal in it.
_PRIORITIES = {"preempt-negative": -5, "preempt-0": 0, "preempt-10": 10, "preempt-50": 50, "preempt-high": 100}
_PREEMPTORS = ("preempt-high",) * 6 + ("preempt-50", "preempt-10")
_NEVER = "preempt-never"
_STARTS = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z", "2026-03-01T00:00:00Z", "2026-06-01T00:00:00Z", None)
_ALREADY_THERE = 409
_EVICTED = re.compile(rf'"Preemptor Pod preempted victim Pod".* victim="{NAMESPACE}/(?P<victim>[^"]+)"')
_EVICTS = re.compile(r"for pod on node (?P<node>\S+), preempting (?P<number>\d+) victims")


@dataclass(frozen=True, slots=True)
class Preempted:
    """What kube-scheduler did: the nominated node, the pods that it evicted, and the text of the first refusal.

    `victims` is None if pods of the node end already: kube-scheduler does not evict these again.
    """

    node: str
    victims: frozenset[str] | None
    message: str


def random_world(dice: Dice, nodes: int) -> World:
    """Return `nodes` nodes, most of them full of pods of a few priorities and start times."""
    few = dice.chance(40)
    starts = dice.some(_STARTS, 1, 2 if few else None)
    classes = dice.some([*_PRIORITIES][:4], 1, 2 if few else None)
    constrained = dice.choice((0, 0, 15))
    equal = dice.chance(30)
    found = [_node(dice, f"node-{number:03}") for number in range(nodes)]
    pods = [
        _running(dice, f"{node['metadata']['name']}-{number}", node, starts, classes, constrained, equal=equal)
        for node in found
        for number in range(dice.randint(0 if dice.chance(20) else 2, 5))
    ]
    nominated = [_nominated(dice, found)] if dice.chance(20) else []
    return World((_namespace(),), (), tuple(found), tuple(pods), tuple(nominated))


def random_budgets(dice: Dice) -> list[Object]:
    """Return PodDisruptionBudgets with a status, in most clusters none."""
    if not dice.chance(40):
        return []
    return [_budget(dice, number) for number in range(dice.randint(1, 3))]


def random_preemptor(dice: Dice, name: str) -> Object:
    """Return a pod that most nodes cannot take while others run there."""
    spec: dict[str, Any] = _spec(dice, dice.choice(("2", "3", "4", "5", "9")))
    spec["priorityClassName"] = dice.choice(_PREEMPTORS)
    if dice.chance(15):
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    if dice.chance(15):
        spec["affinity"] = {"podAntiAffinity": _terms(dice, dice.choice((HOSTNAME, ZONE)))}
    elif dice.chance(10):
        spec["affinity"] = {"podAffinity": _terms(dice, ZONE)}
    if dice.chance(20):
        spec["topologySpreadConstraints"] = [_spread(dice)]
    if dice.chance(15):
        spec["nodeSelector"] = {ZONE: "a"}
    if dice.chance(5):
        spec["priorityClassName"] = _NEVER
    return _pod(name, {"app": dice.choice("ab")}, spec)


class Preempting:
    """A control plane with one world at a time, in which kube-scheduler preempts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._client = cluster, cluster.client
        self.scheduler = KubeScheduler(cluster)
        self._budgets: list[Object] = []
        for name, value in {**_PRIORITIES, _NEVER: 100}.items():
            body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            policy = {"preemptionPolicy": "Never"} if name == _NEVER else {}
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
                "PodDisruptionBudget", each["metadata"]["name"], namespace=NAMESPACE, api_version=_POLICY
            )
        for each in budgets:
            self._client.create(each)
            name, status = each["metadata"]["name"], {"status": each["status"]}
            self._client.patch(
                "PodDisruptionBudget", name, status, namespace=NAMESPACE, api_version=_POLICY, subresource="status"
            )
        self._budgets = [*budgets]

    def ask(self, pod: Object) -> Preempted | None:
        """Return what kube-scheduler does for `pod`, or None if a node takes it at once; then delete it."""
        log = self._cluster.control_plane.scheduler_log
        since, before = log.end(), self._client.list("Pod", NAMESPACE)
        stored = self._cluster.create(pod).object
        key = stored["metadata"]["name"], stored["metadata"]["namespace"]

        def refused() -> tuple[str] | None:
            is_bound = bool(self._client.get("Pod", *key)["spec"].get("nodeName"))
            message = self._cluster.first_refusal_yet(stored)
            return (message or "",) if message or is_bound else None

        (message,) = wait_for(refused, f"an answer for {key[0]}")
        node, victims = "", None
        if match := _EVICTS.search(message):
            node, number = match["node"], int(match["number"])

            def evicted() -> frozenset[str] | None:
                found = frozenset(each["victim"] for line in log.lines(since) if (each := _EVICTED.search(line)))
                return found if len(found) == number else None

            ended = [each for each in before if each["metadata"].get("deletionTimestamp")]
            if node not in [each["spec"].get("nodeName") for each in ended]:
                victims = wait_for(evicted, f"{number} victims of {key[0]}")
        self._cluster.delete_pod(stored)
        return Preempted(node, victims, message) if message else None


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


_POLICY = "policy/v1"


def _namespace() -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def _node(dice: Dice, name: str) -> Object:
    cpu = dice.choice(("4", "5", "6"))
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": dice.choice(("4", "5", "110"))}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: dice.choice("ab")}},
        "spec": {"unschedulable": True} if dice.chance(5) else {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _running(
    dice: Dice,
    name: str,
    node: Object,
    starts: Sequence[str | None],
    classes: Sequence[str],
    constrained: int,
    *,
    equal: bool,
) -> Object:
    spec = _spec(dice, "1" if equal else dice.choice(("1", "1", "2", "3")))
    spec |= {"nodeName": node["metadata"]["name"], "priorityClassName": dice.choice(classes)}
    if dice.chance(3):
        spec["priorityClassName"] = "preempt-high"
    if dice.chance(10):
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    if dice.chance(constrained):
        spec["affinity"] = {"podAntiAffinity": _terms(dice, dice.choice((HOSTNAME, ZONE)))}
    pod = _pod(name, {} if dice.chance(10) else {"app": dice.choice("abc")}, spec)
    start = dice.choice(starts)
    if start:
        pod["status"] = {"phase": "Running", "startTime": start}
    if dice.chance(3):
        pod["metadata"]["deletionTimestamp"] = "2026-12-01T00:00:00Z"
    return pod


def _nominated(dice: Dice, nodes: Sequence[Object]) -> Object:
    spec = _spec(dice, dice.choice(("1", "2", "4")))
    spec["priorityClassName"] = dice.choice(("preempt-high", "preempt-high", "preempt-10"))
    status = {"nominatedNodeName": dice.choice(nodes)["metadata"]["name"]}
    return {**_pod("nominated", {"app": "c"}, spec), "status": status}


def _spec(dice: Dice, cpu: str) -> dict[str, Any]:
    requests = {"cpu": cpu} | ({"memory": "1Gi"} if dice.chance(30) else {})
    container = {"name": "main", "image": "example.com/image", "resources": {"requests": requests}}
    return {"containers": [container], "terminationGracePeriodSeconds": 0}


def _pod(name: str, labels: Mapping[str, str], spec: dict[str, Any]) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {**labels}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _terms(dice: Dice, key: str) -> Object:
    term = {"labelSelector": {"matchLabels": {"app": dice.choice("abc")}}, "topologyKey": key}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _spread(dice: Dice) -> Object:
    return {
        "maxSkew": dice.choice((1, 2)),
        "topologyKey": dice.choice((HOSTNAME, ZONE)),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": dice.choice("abc")}},
    }


def _budget(dice: Dice, number: int) -> Object:
    selector = dice.choice(({}, {"matchLabels": {"app": dice.choice("abc")}}, {"matchLabels": {"app": "a"}}))
    status = {"disruptionsAllowed": dice.randint(0, 2), "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3}
    return {
        "apiVersion": _POLICY,
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{number}", "namespace": NAMESPACE},
        "spec": {"minAvailable": 1, "selector": selector},
        "status": {**status, "observedGeneration": 1},
    }
