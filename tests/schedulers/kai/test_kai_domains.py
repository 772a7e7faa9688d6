"""Which pods of an object the real KAI keeps in one rack, compared with what the webhook says about the object."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.controlplane.client import Answer, Objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.schedulers.groups import Gangs, said
from tests.schedulers.installed.kai import Kai
from tests.schedulers.jobs import bound, gpu_node, wait_bound_all, worker
from tests.support.admission import policy_with
from tests.support.on_cluster.registered import Webhook

RACK = "example.com/rack"
KINDS = "queues.scheduling.run.ai,podgroups.scheduling.run.ai,topologies.kai.scheduler"
WITH_RACKS = policy_with(
    workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": "kai-scheduler"}},
    schedulers={"kai-scheduler": {"backend": "kai", "topologyName": "racks"}},
    workloadObjects={"mutateTemplates": True},
)


@pytest.fixture
def gangs(cluster: Cluster, webhook: Webhook, kai: Kai) -> Gangs:
    webhook.world.policy = WITH_RACKS
    kai.make_queue("research")
    kai.make_topology("racks", RACK)
    return Gangs("KAI", "kai-scheduler", cluster, webhook, KINDS, lambda *_: None, (("queue", "research"),))


def make_racks(gangs: Gangs, cards: tuple[int, int]) -> None:
    """Make two racks with so many cards."""
    for rack, number in zip("ab", cards, strict=True):
        node = gpu_node(f"n-{rack}", number)
        node["metadata"]["labels"][RACK] = rack
        gangs.cluster.make_nodes(node)


def start(gangs: Gangs, kind: str, cards: tuple[int, int], **keys: str) -> tuple[Answer, Objects]:
    """Return the answer to an object with two pods of one card that has to run in one rack, and its pods.

    There are two racks with so many `cards`.
    """
    make_racks(gangs, cards)
    pod = worker("unused", queue="research", within=RACK, within_mode="required", **keys).label("app", "bert")
    template = pod.spec(restartPolicy="Never" if kind == "Job" else "Always").template()
    spec: dict[str, Any] = {"parallelism": 2, "completions": 2, "template": template}
    if kind == "StatefulSet":
        selector = {"matchLabels": {"app": "bert"}}
        spec = {"replicas": 2, "serviceName": "bert", "selector": selector, "template": template}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    gangs.look()
    answer = gangs.cluster.create({"apiVersion": version, "kind": kind, "metadata": {"name": "bert"}, "spec": spec})
    owner = {"apiVersion": version, "kind": kind, "name": "bert", "uid": answer.object["metadata"]["uid"]}
    pods = []
    for number in range(2):
        # No controller runs.
        content = pod.obj()
        content["metadata"]["name"] = f"bert-{number}"
        content["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        pods.append(gangs.cluster.create(content).object)
    return answer, pods


@pytest.mark.parametrize("cards", [(1, 1), (1, 2)])
def test_pods_of_a_job_run_in_two_racks(gangs: Gangs, cards: tuple[int, int]) -> None:
    answer, pods = start(gangs, "Job", cards)

    assert {*wait_bound_all(gangs.cluster, pods)} == {"n-a", "n-b"}
    assert said(answer) == []
    assert "makes a PodGroup for each pod of a Job" in " ".join(answer.warnings)


def test_group_that_pods_of_a_job_name_is_replaced(gangs: Gangs, kai: Kai) -> None:
    kai.make_pod_group("bert", 2, "research", topologyConstraint={"topology": "racks", "requiredTopologyLevel": RACK})

    answer, pods = start(gangs, "Job", (1, 1), gang="bert", gang_size="2")

    assert {*wait_bound_all(gangs.cluster, pods)} == {"n-a", "n-b"}
    assert said(answer) == []
    assert "KAI: PodGroup bert has no effect: KAI makes other PodGroups for pods with an owner" in answer.warnings
    assert kai.pod_group_of(pods[0])["metadata"]["name"].startswith("pg-bert")


@pytest.mark.parametrize(
    ("cards", "starts", "text"),
    [
        ((2, 2), 2, ""),
        ((1, 2), 1, "the first pod of gang bert chooses one of a, b by chance; b has room for all"),
        ((1, 1), 1, f"no domain of {RACK} could hold 2 pods: a would hold 1 if it were empty"),
    ],
)
def test_pods_of_a_stateful_set_follow_the_first(gangs: Gangs, cards: tuple[int, int], starts: int, text: str) -> None:
    answer, pods = start(gangs, "StatefulSet", cards)

    assert text in " ".join(said(answer))
    assert bool(said(answer)) is bool(text)
    if starts == len(pods):
        assert len({*wait_bound_all(gangs.cluster, pods)}) == 1
    else:
        wait_for(lambda: bound(gangs.cluster, pods) == starts, "the first pod being bound")
        assert gangs.bound_at_last([replace(answer, object=each) for each in pods]) == starts


OF_RACK = {"topology": "racks", "requiredTopologyLevel": RACK}
TWO_OF_TWO = [{"name": each, "minMember": 2, "topologyConstraint": OF_RACK} for each in "xy"]
ONE = [{"name": "x", "minMember": 4, "topologyConstraint": OF_RACK}]
WITHOUT_DOMAIN = [{"name": each, "minMember": 2} for each in "xy"]
CIRCLE = [{"name": a, "minMember": 2, "parent": b, "topologyConstraint": OF_RACK} for a, b in ("xy", "yx")]
HOLDS_3 = f"no domain of {RACK} could hold 4 pods: a would hold 3 if it were empty"


@pytest.mark.parametrize(
    ("cards", "parts", "names", "starts", "verdict", "text"),
    [
        ((2, 2), TWO_OF_TWO, "xxyy", 4, "Unknown", "subgroups can have domains of their own (subGroups)"),
        ((3, 1), TWO_OF_TWO, "xxyy", 0, "Unknown", "subgroups can have domains of their own (subGroups)"),
        ((4, 1), ONE, "xxxx", 4, "Feasible", ""),
        ((3, 1), ONE, "xxxx", 0, "Infeasible", HOLDS_3),
        (
            (3, 1),
            [{**ONE[0], "name": "z"}, {"name": "x", "minMember": 4, "parent": "z"}],
            "xxxx",
            0,
            "Infeasible",
            HOLDS_3,
        ),
        ((3, 1), WITHOUT_DOMAIN, "xxyy", 4, "Feasible", ""),
        ((3, 1), WITHOUT_DOMAIN, "defa", 0, "Infeasible", "has no subgroup for a pod with the label"),
        ((3, 1), [{"name": "default", "minMember": 4}], [""] * 4, 4, "Feasible", ""),
        ((3, 1), CIRCLE, [""] * 4, 4, "Unknown", "their names or parents are not valid"),
    ],
)
def test_subgroups_run_in_domains_of_their_own(
    gangs: Gangs,
    kai: Kai,
    cards: tuple[int, int],
    parts: Objects,
    names: Sequence[str],
    starts: int,
    verdict: str,
    text: str,
) -> None:
    """With `minMember: 1` of the group, which is ignored."""
    make_racks(gangs, cards)
    kai.make_pod_group("bert", 1, "research", subGroups=parts)
    gangs.look()
    pods = [worker(f"bert-{place}", gang="bert", gang_size=4, queue="research") for place in range(4)]

    labelled = [pod.label("kai.scheduler/subgroup-name", name) for pod, name in zip(pods, names, strict=True)]
    answers = [gangs.cluster.create(each) for each in labelled]

    placements = [each.placement for each in gangs.webhook.world.records if each.placement is not None]
    assert [each.verdict for each in placements] == [verdict] * 4
    texts = [f"{each.message} {said(answer)}" for each, answer in zip(placements, answers, strict=True)]
    assert all(text in each for each in texts)
    wait_for(lambda: bound(gangs.cluster, [each.object for each in answers]) == starts, "the bound pods")
    assert gangs.bound_at_last(answers) == starts


@pytest.mark.parametrize(
    ("level", "has_label", "starts", "verdict"),
    [
        ({"preferredTopologyLevel": RACK}, True, 2, "Feasible"),
        ({"preferredTopologyLevel": RACK}, False, 0, "Unknown"),
        ({}, True, 0, "Unknown"),
    ],
)
def test_preference_for_a_domain_leaves_out_nodes_without_a_label(
    gangs: Gangs, kai: Kai, level: dict[str, str], has_label: bool, starts: int, verdict: str
) -> None:
    node = gpu_node("n1", 2)
    if has_label:
        node["metadata"]["labels"][RACK] = "a"
    gangs.cluster.make_nodes(node)
    kai.make_pod_group("bert", 2, "research", topologyConstraint={"topology": "racks", **level})

    answers = gangs.create(2, gang_size=2)

    placements = [each.placement for each in gangs.webhook.world.records if each.placement is not None]
    assert [each.verdict for each in placements] == [verdict] * 2
    wait_for(lambda: bound(gangs.cluster, [each.object for each in answers]) == starts, "the bound pods")
    assert gangs.bound_at_last(answers) == starts
