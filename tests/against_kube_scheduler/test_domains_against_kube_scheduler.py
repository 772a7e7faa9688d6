"""A gang of kube-scheduler's own that must run in one rack is bound if, and only where, that is predicted."""

import os
import re
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.client import Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.differential.random_objects.dice import Dice
from tests.support.admission import DOMAIN, policy_with
from tests.support.objects.batch_objects import pod_group
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from webhook.backends.references import GangRequest, Within
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.optional_kinds import BATCH_KINDS
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.kube.deadline import never
from webhook.objects.object_gang import gang_of_pod
from webhook.placement.framework.result import GangFit, Placement
from webhook.placement.framework.together import Together
from webhook.placement.gang.gang import gang_of, gang_placement
from webhook.placement.gang.object_domains import PlacedRole, as_together, with_domains
from webhook.placement.replicas.replicas import place_replicas
from webhook.placement.scheduler import PodSignature, Scheduler
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.placement.waiting.pending_placement import WaitingPod, predict_placement

FIRST_SEED = int(os.environ.get("DIFFERENTIAL_SEED", "1"))
GANGS = max(4, int(os.environ.get("DIFFERENTIAL_GANGS", "12")))
POD_GROUPS = BATCH_KINDS["PodGroup.scheduling.k8s.io"].api_version
NATIVE = policy_with(schedulers={"default-scheduler": {"backend": "native"}})
HOST = "kubernetes.io/hostname"
_PLACED = re.compile(r"minCount \(\d+\) cannot be satisfied: (\d+) scheduled")


@pytest.fixture(scope="module")
def gang_cluster(
    control_plane_programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster whose kube-scheduler places gangs by topology."""
    features = ("GenericWorkload", "TopologyAwareWorkloadScheduling")
    folder = tmp_path_factory.mktemp("control-plane")
    with ControlPlane(control_plane_programs, folder, features=features, served=(POD_GROUPS,)) as control_plane:
        yield Cluster(control_plane)


@pytest.mark.parametrize("seed", range(FIRST_SEED + 90_000, FIRST_SEED + 90_000 + GANGS // 4))
def test_gang_runs_in_one_of_the_predicted_racks(gang_cluster: Cluster, seed: int) -> None:
    cluster, dice = gang_cluster, Dice(seed)
    cluster.remove_everything()
    cluster.take_another_namespace()
    racks = make_racks(cluster, dice, f"s{seed}")
    found = []
    for number in range(4):
        name = f"gang-{number}"
        size = dice.randint(2, 6)
        least = size if dice.chance(70) else dice.randint(1, size)
        constraint: Object = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
        group = pod_group(name, group="scheduling.k8s.io", members=least, **constraint)
        cluster.create({**group, "metadata": {"name": name}})
        pod = some_spread(dice, some_nodes(dice, worker(name, size, dice.choice((1, 1, 2, 3)))), name)
        running = [member(pod, number, node) for number, node in enumerate(some_members(dice, racks, size))]
        stored = [cluster.create(each).object for each in running]
        gang, together = predicted(cluster, pod.obj())
        pods = [cluster.create(pod.generate_name(f"{name}-")).object for _ in range(size - len(running))]
        nodes = answered(cluster, pods)
        wrong = disagreement(gang, together, nodes, racks)
        found += [(name, wrong, nodes, gang.fit, gang.least, together, racks)] if wrong else []
        for each in (*pods, *stored):
            cluster.delete_pod(each)
    assert found == [], "\n".join(map(str, found))


@pytest.mark.parametrize("seed", range(FIRST_SEED + 91_000, FIRST_SEED + 91_000 + GANGS // 4))
def test_templates_that_follow_each_other_run_where_that_is_predicted(gang_cluster: Cluster, seed: int) -> None:
    cluster, dice = gang_cluster, Dice(seed)
    cluster.remove_everything()
    cluster.take_another_namespace()
    racks = make_racks(cluster, dice, f"t{seed}")
    found = []
    for number in range(4):
        follower = some_spread(dice, some_nodes(dice, following(f"job-{number}")), f"job-{number}")
        templates = [(follower.gpu(dice.randint(1, 4)), dice.randint(1, 2)), (follower.gpu(1), dice.randint(1, 5))]
        fit, verdict = of_templates(snapshot_of(cluster), cluster.namespace, templates)
        pods = [cluster.create(pod.generate_name("p-")).object for pod, count in templates for _ in range(count)]
        nodes = answered(cluster, pods)
        wrong = disagreement_of_templates(fit, verdict, nodes if isinstance(nodes, list) else [], racks)
        found += [(number, wrong, nodes, fit, verdict, racks)] if wrong else []
        for each in pods:
            cluster.delete_pod(each)
    assert found == [], "\n".join(map(str, found))


def following(job: str) -> PodBuilder:
    """Return a pod that has to run in the rack of the pods with its label, as the webhook injects it."""
    term = {"labelSelector": {"matchLabels": {"gang": job}}, "topologyKey": "rack"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return make_pod("").label("gang", job).affinity(affinity)


def of_templates(
    snapshot: Snapshot, namespace: str, templates: list[tuple[PodBuilder, int]]
) -> tuple[GangFit, Placement]:
    """Return the fit and the verdict of an object whose templates make so many pods, one after the other."""
    roles: list[PlacedRole] = []
    after = snapshot
    for pod, count in templates:
        content = pod.obj()
        content["metadata"]["namespace"] = namespace
        found = place_replicas(Scheduler(), after, repeat(content), count)
        roles.append(((Scheduler(), PodSignature.of(content)), found))
        after = found.snapshot
    size = sum(count for _, count in templates)
    gang = GangRequest("job", size, "default-scheduler", starts_whole=False, within=Within("rack"))
    fit = GangFit("job", size, sum(found.placed for _, found in roles), 0)
    fit = with_domains(fit, gang, roles, NATIVE.spec, snapshot, never)
    stopped = next((found.placement for _, found in roles if found.stopped is not None), roles[0][1].placement)
    return fit, as_together(stopped, gang, fit)


def disagreement_of_templates(fit: GangFit, verdict: Placement, nodes: list[str], racks: dict[str, str | None]) -> str:
    """Return how the prediction for an object and kube-scheduler differ, or "" if they agree."""
    together = fit.together
    if together is None:
        return "the domains are not counted"
    used = {racks[node] for node in nodes}
    if len(used) > 1:
        return "bound in two racks"
    room = {each.value: each.fits for each in together.domains}
    if used and len(nodes) != room[used.pop() or ""]:
        return "another number is bound"
    bound = len(nodes) == fit.size
    return "" if verdict.verdict == "Unknown" or bound is (verdict.verdict == "Feasible") else verdict.verdict


def make_racks(cluster: Cluster, dice: Dice, prefix: str) -> dict[str, str | None]:
    """Create nodes with other pods; return the rack of each node, or None if it has none."""
    racks: dict[str, str | None] = {}
    for number in range(dice.randint(5, 8)):
        name = f"{prefix}-n{number}"
        racks[name] = None if dice.chance(15) else dice.choice(("", "rack-1", "rack-2", "rack-3"))
        rack = racks[name]
        labels = {HOST: name, "row": dice.choice("ab"), "use": "training" if dice.chance(70) else "other"}
        labels |= {} if rack is None else {"rack": rack}
        taints = ["use=other:NoSchedule"] if dice.chance(10) else []
        cluster.make_nodes(make_node_object(name, labels=labels, taints=taints, capacity={"nvidia.com/gpu": "4"}))
        if taken := dice.randint(0, 4):
            cluster.create(make_pod(f"other-{number}").gpu(taken).node_name(name))
    return racks


def worker(gang: str, size: int, cards: int) -> PodBuilder:
    annotated = make_pod("").annotate(f"{DOMAIN}/gang", gang).annotate(f"{DOMAIN}/gang-size", str(size))
    return annotated.spec(schedulingGroup={"podGroupName": gang}).gpu(cards)


def some_nodes(dice: Dice, pod: PodBuilder) -> PodBuilder:
    """Return `pod`, perhaps with a node selector or required node affinity of its own."""
    if dice.chance(50):
        return pod
    if dice.chance(50):
        return pod.node_selector("use", "training")
    return pod.require_node({"matchExpressions": [{"key": "use", "operator": "In", "values": ["training"]}]})


def some_spread(dice: Dice, pod: PodBuilder, gang: str) -> PodBuilder:
    """Return `pod`, perhaps with a constraint that spreads the pods of `gang`."""
    if dice.chance(50):
        return pod
    constraint: Object = {
        "maxSkew": dice.randint(1, 2),
        "topologyKey": HOST if dice.chance(80) else "row",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"gang": gang}},
        "nodeAffinityPolicy": "Ignore" if dice.chance(30) else "Honor",
        "nodeTaintsPolicy": "Honor" if dice.chance(30) else "Ignore",
    }
    if dice.chance(20):
        constraint["minDomains"] = dice.randint(1, 4)
    return pod.label("gang", gang).spec(topologySpreadConstraints=[constraint])


def some_members(dice: Dice, racks: dict[str, str | None], size: int) -> list[str]:
    """Return the nodes of members that run already: of none, or of one or two in any racks."""
    return dice.some([*racks], 1, min(2, size - 1)) if dice.chance(25) else []


def member(pod: PodBuilder, number: int, node: str) -> Object:
    running = pod.node_name(node).obj()
    running["metadata"]["name"] = f"{running['spec']['schedulingGroup']['podGroupName']}-running-{number}"
    # It has no cards: its node may be full.
    running["spec"]["containers"][0].pop("resources", None)
    return running


def snapshot_of(cluster: Cluster) -> Snapshot:
    kinds: tuple[tuple[str, str], ...] = (("v1", "Node"), ("v1", "Namespace"), ("v1", "Pod"), (POD_GROUPS, "PodGroup"))
    objects: list[Any] = [
        {"apiVersion": version, "kind": kind} | each
        for version, kind in kinds
        for each in cluster.client.list(kind, api_version=version)
    ]
    return snapshot_from_documents(Document("cluster", each) for each in objects)


def predicted(cluster: Cluster, pod: Object) -> tuple[GangFit, Together]:
    snapshot = snapshot_of(cluster)
    pod["metadata"]["namespace"] = cluster.namespace
    waiting, scheduler = WaitingPod.of(pod), Scheduler()
    request = gang_of_pod(pod, NATIVE, snapshot)
    assert request is not None
    assumed: AssumedPods[Any] = AssumedPods(snapshot, {})
    own = predict_placement(scheduler, waiting.signature, assumed, None, never)
    placement: Placement = gang_placement(scheduler, gang_of(request, waiting, NATIVE.spec), waiting, own, assumed)
    assert placement.gang is not None
    assert placement.gang.together is not None
    return placement.gang, placement.gang.together


def answered(cluster: Cluster, pods: list[Object]) -> list[str] | str:
    """Return the nodes of the pods that kube-scheduler bound, or its message if it bound none."""

    def answer() -> tuple[list[str] | str] | None:
        current = [cluster.client.get("Pod", each["metadata"]["name"], cluster.namespace) for each in pods]
        nodes = [each["spec"]["nodeName"] for each in current if each["spec"].get("nodeName")]
        texts = [text for each in current if (text := refusal(each))]
        if len(nodes) + len(texts) < len(pods):
            return None
        longest = max(texts, key=len, default="")
        return (nodes or longest,)

    (found,) = wait_for(answer, "an answer for the gang")
    return found


def refusal(pod: Object) -> str:
    conditions = pod["status"].get("conditions") or ()
    return next((each.get("message", "") for each in conditions if each["status"] == "False"), "")


def disagreement(gang: GangFit, together: Together, real: list[str] | str, racks: dict[str, str | None]) -> str:
    """Return how the prediction and kube-scheduler differ, or "" if they agree."""
    occupied = {each.value for each in together.domains if each.members}
    if "" in occupied and len(occupied) > 1:
        # kube-scheduler takes the empty value for no domain if it reads that member first, so chance decides.
        return ""
    starts = gang.fit >= gang.least and gang.fit > gang.placed
    if isinstance(real, str):
        placed = _PLACED.search(real)
        if starts:
            return f"none is bound: {real}"
        possible = {each.fits for each in together.allowed} | {each.fits + each.members for each in together.allowed}
        return f"other numbers: {real}" if placed and int(placed[1]) not in possible else ""
    if not starts:
        return "some are bound"
    used = {racks[node] for node in real}
    room = {each.value: each.fits for each in together.allowed}
    if len(used) != 1 or not used <= room.keys():
        return f"bound in {used}"
    return "" if len(real) == min(together.missing, room[used.pop() or ""]) else "another number is bound"
