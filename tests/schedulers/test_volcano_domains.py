"""The verdicts on gangs that run within one HyperNode, compared with what the real Volcano starts."""

from collections.abc import Callable

import pytest

from tests.controlplane.client import Answer, Object
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.schedulers.groups import Gangs, said
from tests.schedulers.installed.volcano import Volcano, volcano_job
from tests.schedulers.jobs import bound, gpu_node, wait_bound_all, wait_refused, worker
from tests.support.objects.builders import make_pod
from tests.support.on_cluster.registered import Webhook

KINDS = "queues.scheduling.volcano.sh,podgroups.scheduling.volcano.sh,hypernodes.topology.volcano.sh"
HARD: Object = {"mode": "hard", "highestTierAllowed": 1}
# Racks r1 and r2 of three and four cards, in one zone.
CARDS = {"a1": 2, "a2": 1, "b1": 2, "b2": 2}


def prepared(cluster: Cluster, webhook: Webhook, volcano: Volcano) -> Gangs:
    cluster.make_nodes(*(gpu_node(name, cards) for name, cards in CARDS.items()))
    return Gangs("Volcano", "volcano", cluster, webhook, KINDS, volcano.make_pod_group)


@pytest.fixture
def gangs(cluster: Cluster, webhook: Webhook, volcano_with_domains: Volcano) -> Gangs:
    """Volcano with the plugin for HyperNodes."""
    return prepared(cluster, webhook, volcano_with_domains)


@pytest.fixture
def as_shipped(cluster: Cluster, webhook: Webhook, volcano: Volcano) -> Gangs:
    """Volcano with the configuration of its chart, which does not have the plugin."""
    return prepared(cluster, webhook, volcano)


def make_racks(volcano: Volcano) -> None:
    volcano.make_hyper_node("r1", 1, {"regexMatch": {"pattern": "^a"}}, tierName="rack")
    volcano.make_hyper_node("r2", 1, *({"exactMatch": {"name": each}} for each in ("b1", "b2")))


def make_zone(volcano: Volcano) -> None:
    make_racks(volcano)
    volcano.make_hyper_node("zone", 2, *({"exactMatch": {"name": each}} for each in ("r1", "r2")), of="HyperNode")


def make_spare(volcano: Volcano) -> None:
    volcano.make_hyper_node("spare", 0, {"exactMatch": {"name": "not-yet"}})


def start(gangs: Gangs, volcano: Volcano, pods: int, topology: Object) -> list[Answer]:
    """Return the answers to the pods of a gang whose PodGroup, with `topology`, is enqueued."""
    volcano.make_pod_group("bert", pods, networkTopology=topology)
    volcano.wait_enqueued("bert")
    return gangs.create(pods, gang_size=pods)


def nodes_of(gangs: Gangs, answers: list[Answer]) -> set[str]:
    return {*wait_bound_all(gangs.cluster, [each.object for each in answers])}


def wait_not_started(gangs: Gangs, answers: list[Answer]) -> str:
    """Return the message of Volcano on the last pod, once none is bound although it has tried all."""
    message = wait_refused(gangs.cluster, [each.object for each in answers])[-1]
    assert gangs.bound_at_last(answers) == 0
    return message


@pytest.mark.parametrize("topology", [HARD, {"mode": "hard", "highestTierName": "rack"}])
def test_gang_that_one_rack_holds_starts_there(gangs: Gangs, volcano_with_domains: Volcano, topology: Object) -> None:
    make_racks(volcano_with_domains)

    answers = start(gangs, volcano_with_domains, 4, topology)

    assert [said(each) for each in answers] == [[]] * 4
    assert nodes_of(gangs, answers) == {"b1", "b2"}


@pytest.mark.parametrize("make", [make_racks, make_zone])
def test_gang_that_no_rack_holds_is_not_started(
    gangs: Gangs, volcano_with_domains: Volcano, make: Callable[[Volcano], None]
) -> None:
    make(volcano_with_domains)

    answers = start(gangs, volcano_with_domains, 5, HARD)

    never = "no HyperNode up to tier 1 could hold 5 pods: r2 would hold 4 if it were empty"
    assert all(never in said(each)[0] for each in answers)
    message = wait_not_started(gangs, answers)
    assert message.startswith("pod group is not ready, 5 Pending, 5 minAvailable") or "In hyperNode r" in message


def test_gang_waits_for_a_rack_that_others_use(gangs: Gangs, volcano_with_domains: Volcano) -> None:
    make_racks(volcano_with_domains)
    volcano_with_domains.make_pod_group("llama", 1)
    gangs.look()
    other = gangs.cluster.create(worker("llama", gang="llama", gang_size=1))
    used = gangs.cluster.wait_bound(other.object)

    answers = start(gangs, volcano_with_domains, 4, HARD)

    if used.startswith("b"):
        waits = "no HyperNode up to tier 1 has room for the 4 pods of gang bert now: r"
        assert all(waits in said(each)[0] for each in answers)
        wait_not_started(gangs, answers)
        gangs.cluster.delete_pod(other.object)
    assert nodes_of(gangs, answers) == {"b1", "b2"}


def test_gang_that_has_started_in_part_goes_on_in_its_rack(gangs: Gangs, volcano_with_domains: Volcano) -> None:
    """Two of four pods start in r1, where a third one has room, since r2 has no room then."""
    make_racks(volcano_with_domains)
    others = [make_pod(f"other-{node}").node_name(node).gpu(2) for node in ("b1", "b2")]
    taken = [gangs.cluster.create(each).object for each in others]
    volcano_with_domains.make_pod_group("bert", 2, networkTopology=HARD)
    volcano_with_domains.wait_enqueued("bert")
    gangs.look()
    first = [gangs.cluster.create(worker(f"first-{number}", gang="bert", gang_size=4)) for number in range(2)]
    assert {node[0] for node in nodes_of(gangs, first)} == {"a"}
    for each in taken:
        gangs.cluster.delete_pod(each)

    answers = gangs.create(2, gang_size=4)

    waits = "gang bert runs in r1, which has room for 1 of the 2 missing pods; r2 has room for all"
    assert all(waits in said(each)[0] for each in answers)
    wait_for(lambda: bound(gangs.cluster, [each.object for each in answers]), "the third pod")
    assert gangs.bound_at_last(answers) == 1
    assert {node[0] for node in nodes_of(gangs, [each for each in answers if bound(gangs.cluster, [each.object])])} == {
        "a"
    }


@pytest.mark.parametrize(
    ("make", "topology"),
    [
        pytest.param(make_racks, {"mode": "soft"}, id="a preference"),
        pytest.param(make_zone, {"mode": "hard", "highestTierAllowed": 2}, id="one zone"),
    ],
)
def test_gang_that_may_run_in_two_racks_does(
    gangs: Gangs, volcano_with_domains: Volcano, make: Callable[[Volcano], None], topology: Object
) -> None:
    make(volcano_with_domains)

    answers = start(gangs, volcano_with_domains, 7, topology)

    assert [said(each) for each in answers] == [[]] * 7
    assert nodes_of(gangs, answers) == {*CARDS}


@pytest.mark.parametrize(
    ("make", "topology", "why"),
    [
        pytest.param(make_spare, HARD, "no HyperNode has tier 1 or a higher one", id="one of tier 0"),
        pytest.param(
            make_racks,
            {"mode": "hard", "highestTierAllowed": 2},
            "no HyperNode has tier 2 or a higher one",
            id="above all",
        ),
        pytest.param(
            make_racks, {"mode": "hard"}, "mode hard needs highestTierAllowed or highestTierName", id="no tier"
        ),
        pytest.param(
            make_racks, {"mode": "hard", "highestTierName": "row"}, "no HyperNode has the tierName row", id="no name"
        ),
    ],
)
def test_hard_topology_without_a_limit_has_no_effect(
    gangs: Gangs, volcano_with_domains: Volcano, make: Callable[[Volcano], None], topology: Object, why: str
) -> None:
    make(volcano_with_domains)

    answers = start(gangs, volcano_with_domains, 5, topology)

    assert [said(each) for each in answers] == [[f"Volcano ignores the network topology of PodGroup bert: {why}"]] * 5
    assert len({node[0] for node in nodes_of(gangs, answers)}) == 2


def test_hyper_node_with_two_parents_stops_the_gangs(gangs: Gangs, volcano_with_domains: Volcano) -> None:
    make_zone(volcano_with_domains)
    volcano_with_domains.make_hyper_node("other", 2, {"exactMatch": {"name": "r1"}}, of="HyperNode")

    answers = start(gangs, volcano_with_domains, 3, HARD)

    placement = gangs.webhook.world.records[-1].placement
    assert placement is not None
    assert placement.verdict == "Unknown"
    assert "HyperNode r1 is a member of two HyperNodes, so Volcano starts no such gang" in placement.message
    wait_not_started(gangs, answers)


@pytest.mark.parametrize(("pods", "starts"), [(4, True), (5, False)])
def test_job_of_volcano_runs_in_one_rack(gangs: Gangs, volcano_with_domains: Volcano, pods: int, starts: bool) -> None:
    make_racks(volcano_with_domains)
    job = volcano_job("bert", pods, "default")
    job["spec"]["networkTopology"] = HARD
    gangs.look()

    answer = gangs.cluster.create(job)

    if starts:
        assert said(answer) == []
        assert {*wait_bound_all(gangs.cluster, gangs.cluster.wait_pods(4))} == {"b1", "b2"}
        return
    never = "no HyperNode up to tier 1 could hold 5 pods: r2 would hold 4 if it were empty"
    assert never in said(answer)[0]
    wait_refused(gangs.cluster, gangs.cluster.wait_pods(5))
    gangs.bound_at_last([])
    assert bound(gangs.cluster, [each for each in gangs.cluster.pods() if each["metadata"]["name"] != "probe"]) == 0


@pytest.mark.parametrize(
    ("partitions", "size", "taken", "text"),
    [
        pytest.param(2, 3, 0, "", id="one in each rack"),
        pytest.param(3, 2, 0, "", id="two in one rack"),
        pytest.param(
            3, 2, 1, "2 HyperNodes up to tier 1 have room for 2 of 3 partitions of 2 pods now", id="six cards are free"
        ),
        pytest.param(
            1,
            5,
            0,
            "2 HyperNodes up to tier 1 could hold 0 of 1 partition of 5 pods if they were empty",
            id="too large",
        ),
    ],
)
def test_each_partition_of_a_job_runs_in_one_rack(
    gangs: Gangs, volcano_with_domains: Volcano, partitions: int, size: int, taken: int, text: str
) -> None:
    make_racks(volcano_with_domains)
    if taken:
        gangs.cluster.create(make_pod("other").node_name("b1").gpu(taken))
    job = volcano_job("bert", partitions * size, "default")
    policy = {"totalPartitions": partitions, "partitionSize": size, "networkTopology": HARD}
    job["spec"]["tasks"][0]["partitionPolicy"] = policy
    gangs.look()

    answer = gangs.cluster.create(job)

    assert text in " ".join(said(answer))
    assert bool(said(answer)) is bool(text)
    pods = gangs.cluster.wait_pods(partitions * size + bool(taken))
    pods = [each for each in pods if each["metadata"]["name"] != "other"]
    if not text:
        racks: dict[str, set[str]] = {}
        for pod, node in zip(pods, wait_bound_all(gangs.cluster, pods), strict=True):
            racks.setdefault(pod["metadata"]["labels"]["volcano.sh/partition-id"], set()).add(node[0])
        assert {len(each) for each in racks.values()} == {1}
        return
    gangs.bound_at_last([])
    assert bound(gangs.cluster, pods) == 0


def test_configuration_of_the_chart_ignores_a_hard_topology(as_shipped: Gangs, volcano: Volcano) -> None:
    make_racks(volcano)

    answers = start(as_shipped, volcano, 7, HARD)

    why = "its configuration has no plugin network-topology-aware"
    assert [said(each) for each in answers] == [[f"Volcano ignores the network topology of PodGroup bert: {why}"]] * 7
    assert nodes_of(as_shipped, answers) == {*CARDS}
