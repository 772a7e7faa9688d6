"""Queues and flavors of Kueue."""

import pytest

from tests.support.objects.batch_objects import (
    Object,
    cluster_queue,
    local_queue,
    resource_flavor,
    workload,
)
from tests.support.objects.builders import make_pod
from tests.support.views import made_anew
from webhook.cluster.batch.kueue import ClusterQueue, LocalQueue, ResourceFlavor, TopologyAssignment, Workload


@pytest.mark.parametrize(
    ("stop", "is_stopped"), [(None, False), ("None", False), ("Hold", True), ("HoldAndDrain", True)]
)
def test_stop_policy_holds_a_queue_of_kueue(stop: str | None, is_stopped: bool) -> None:
    assert LocalQueue.of(local_queue("q", stop=stop)) == LocalQueue("default", "q", "cards", is_stopped)
    assert ClusterQueue.of(cluster_queue("q", {}, stop=stop)).is_stopped is is_stopped


@pytest.mark.parametrize(
    ("cohort", "borrowing", "most"),
    [("", None, 4), ("", {"nvidia.com/gpu": "2"}, 4), ("all", {"nvidia.com/gpu": "2"}, 6), ("all", None, None)],
)
def test_cluster_queue_borrows_within_a_cohort_alone(
    cohort: str, borrowing: dict[str, str] | None, most: int | None
) -> None:
    made = cluster_queue("q", {"spot": {"nvidia.com/gpu": "4"}}, cohort=cohort, borrowing=borrowing)
    (group,) = ClusterQueue.of(made).groups
    assert group.resources == {"nvidia.com/gpu"}
    assert group.flavors == (("spot", {"nvidia.com/gpu": most}),)


def test_flavor_has_the_labels_of_its_nodes() -> None:
    assert ResourceFlavor.of(resource_flavor("spot", pool="spot")) == ResourceFlavor("spot", {"pool": "spot"})


LEVELS = ["zone", "rack"]
ASSIGNED = workload("bert", make_pod().gpu(2).obj(), LEVELS, (["z", "r-1-x"], 3), (["z", "r-2-x"], 1))


def in_slices(*slices: Object) -> Object:
    """Return a Workload with an assignment as v1beta2 has it."""
    topology = {"levels": LEVELS, "slices": [*slices]}
    admission = {"podSetAssignments": [{"name": "main", "topologyAssignment": topology}]}
    return {**ASSIGNED, "status": {"admission": admission}}


def values(*roots: str) -> list[Object]:
    return [{"universal": "z"}, {"individual": {"prefix": "r-", "suffix": "-x", "roots": [*roots]}}]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(ASSIGNED, id="v1beta1"),
        pytest.param(
            in_slices({"domainCount": 2, "valuesPerLevel": values("1", "2"), "podCounts": {"individual": [3, 1]}}),
            id="v1beta2",
        ),
        pytest.param(
            in_slices(
                {"domainCount": 1, "valuesPerLevel": values("1"), "podCounts": {"universal": 3}},
                {"domainCount": 1, "valuesPerLevel": values("2"), "podCounts": {"universal": 1}},
            ),
            id="v1beta2 with slices of equal numbers",
        ),
    ],
)
def test_assignment_of_a_workload_has_the_pods_of_each_domain(content: Object) -> None:
    domains = ((("z", "r-1-x"), 3), (("z", "r-2-x"), 1))
    expected = TopologyAssignment("main", {"nvidia.com/gpu": 2}, ("zone", "rack"), domains)

    assert Workload.of(content) == Workload("default", "bert", (expected,))


def test_workload_keeps_its_assignment_until_it_has_finished() -> None:
    conditions: list[Object] = [{"type": "Admitted", "status": "True"}]
    for status, is_assigned in (("Unknown", True), ("False", True), ("True", False)):
        found = [*conditions, {"type": "Finished", "status": status}]
        workload_now = Workload.of({**ASSIGNED, "status": {**ASSIGNED["status"], "conditions": found}})
        assert bool(workload_now.assigned) is is_assigned


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": [{"type": "Admitted", "status": "False"}]},
        {"admission": {"podSetAssignments": [{"name": "main"}, 5]}},
        {"admission": {"podSetAssignments": [{"name": "main", "topologyAssignment": {"levels": "rack"}}]}},
        {**ASSIGNED["status"], "conditions": [{"type": "Finished", "status": "True"}]},
    ],
)
def test_workload_without_quota_or_topology_or_that_has_finished_has_no_assignment(status: Object) -> None:
    assert Workload.of({**ASSIGNED, "status": status}).assigned == ()


def test_malformed_assignment_has_no_domains() -> None:
    content = in_slices({"domainCount": "2", "valuesPerLevel": 5, "podCounts": []}, {"valuesPerLevel": values("1")})

    assert [each.domains for each in Workload.of(content).assigned] == [()]


def test_pods_of_a_domain_that_occurs_twice_are_summed() -> None:
    content = workload("bert", make_pod().gpu(2).obj(), LEVELS, (["z", "a"], 3), (["z", "b"], 1), (["z", "a"], 2))

    assert [each.domains for each in Workload.of(content).assigned] == [((("z", "a"), 5), (("z", "b"), 1))]


@pytest.mark.parametrize(
    ("controllers", "owner"),
    [
        ((), ("", "", "")),
        ((False,), ("", "", "")),
        ((True,), ("batch", "Job", "job-0")),
        ((False, True), ("batch", "Job", "job-1")),
    ],
)
def test_owner_of_a_workload_is_the_one_that_controls_it(
    controllers: tuple[bool, ...], owner: tuple[str, str, str]
) -> None:
    owners = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{number}", "controller": each}
        for number, each in enumerate(controllers)
    ]

    assert Workload.of({"metadata": {"ownerReferences": owners}}).owner == owner


@pytest.mark.parametrize(
    ("topologies", "looks"),
    [((), False), (("",), False), (("racks",), True), (("racks", ""), False), (("racks",) * 2, True)],
)
def test_queue_looks_at_nodes_if_each_of_its_flavors_has_a_topology(topologies: tuple[str, ...], looks: bool) -> None:
    flavors = [resource_flavor(f"f{number}") for number in range(len(topologies))]
    for flavor, name in zip(flavors, topologies, strict=True):
        flavor["spec"]["topologyName"] = name
    queue = cluster_queue("cards", {each["metadata"]["name"]: {"cpu": "1"} for each in flavors})
    kueue = made_anew([local_queue("q"), queue, *flavors]).kueue

    assert kueue.looks_at_nodes("default", "q") is looks
    assert not kueue.looks_at_nodes("default", "other")
    assert not kueue.looks_at_nodes("team-a", "q")
