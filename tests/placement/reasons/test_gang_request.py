"""The gang that a pod asks for, and what its group says."""

import pytest

from tests.placement.reasons.batch_pods import Object, warnings_of
from tests.support.admission import policy_with
from tests.support.objects.batch_objects import (
    KAI_TOPOLOGY,
    KUEUE_TOPOLOGY,
    cluster_queue,
    kai_group,
    local_queue,
    pod_group,
    resource_flavor,
    topology,
    volcano_group,
)
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.plugins import pod_info
from tests.support.views import made_anew
from webhook.backends.backend import BatchNames
from webhook.backends.references import GangRequest, Within
from webhook.backends.registry import backend_of, batch_names_of
from webhook.cluster.batch.network_topology import NetworkTopology, key_of_tier
from webhook.placement.framework.result import GangFit
from webhook.placement.reasons.gang_request import (
    Demand,
    GangDemand,
    grouped,
    network_of_job,
    partial_start_of_object,
)

GPU, GANG_KEY = "nvidia.com/gpu", "maip.mxsf.io/gang"
_KAI = make_pod().namespace("default").scheduler("kai-scheduler").requests(cpu="1").gpu(2)
_CARDS = {GPU: "4", "cpu": "8"}


@pytest.mark.parametrize(("topologies", "looks"), [(("rack", "rack"), True), (("rack", ""), False), (("", ""), False)])
def test_kueue_looks_at_nodes_if_all_flavors_of_the_queue_have_a_topology(
    topologies: tuple[str, str], looks: bool
) -> None:
    flavors = [resource_flavor(name) for name in ("spot", "demand")]
    for flavor, name in zip(flavors, topologies, strict=True):
        flavor["spec"]["topologyName"] = name
    snapshot = made_anew([local_queue("q"), cluster_queue("cards", {"spot": _CARDS, "demand": _CARDS}), *flavors])
    names = [BatchNames("kueue", "q", "", has_owner=False, starts_whole=True)]

    found = grouped(GangRequest("train", 4, "s", starts_whole=False), names, "default", snapshot)

    assert found is not None
    assert (found.least == 4) is looks


def within_of(pod: PodBuilder, *objects: Object, within: Within | None = None) -> Within | None:
    """Return the domain in which the gang of `pod` runs beside `objects`; `within` is what its annotation asks for."""
    content = pod.namespace("default").obj()
    names = batch_names_of(content, backend_of(policy_with().spec, content["spec"]["schedulerName"]))
    request = GangRequest("train", 4, "s", starts_whole=True, within=within)
    found = grouped(request, names, "default", made_anew([*objects]))
    assert found is not None
    return found.within


RACKS = ("zone", "rack")
_LEVEL = "rack"


@pytest.mark.parametrize(
    ("pod", "api_version"),
    [
        (
            make_pod()
            .scheduler("default-scheduler")
            .label("kueue.x-k8s.io/queue-name", "q")
            .label("kueue.x-k8s.io/pod-group-name", "g")
            .annotate("kueue.x-k8s.io/pod-group-total-count", "4")
            .annotate("kueue.x-k8s.io/podset-required-topology", _LEVEL),
            KUEUE_TOPOLOGY,
        ),
        (
            _KAI.annotate("pod-group-name", "g").annotate("kai.scheduler/topology-required-placement", _LEVEL),
            KAI_TOPOLOGY,
        ),
    ],
)
def test_domain_of_kueue_and_kai_is_a_path_of_the_labels_of_a_topology(pod: PodBuilder, api_version: str) -> None:
    asked = Within(_LEVEL, is_of_least=api_version == KAI_TOPOLOGY)
    doubt = "no single Topology is known that has the level rack"

    assert within_of(pod, topology("t", api_version, *RACKS)) == asked._replace(parents=("zone",))
    assert within_of(pod) == asked._replace(doubt=doubt)
    assert within_of(pod, topology("t", api_version, *RACKS), topology("u", api_version, _LEVEL)) == asked._replace(
        doubt=doubt
    )


@pytest.mark.parametrize(("row", "doubt"), [("x", ""), (None, "no single Topology is known that has the level rack")])
def test_topologies_can_differ_below_the_level_if_they_have_the_same_nodes(row: str | None, doubt: str) -> None:
    labels = {"zone": "a", "rack": "1"} | ({"row": row} if row else {})
    node = make_node_object("n", labels=labels)
    topologies = topology("t", KAI_TOPOLOGY, *RACKS), topology("u", KAI_TOPOLOGY, *RACKS, "row")
    pod = _KAI.annotate("pod-group-name", "g")

    found = within_of(pod, *topologies, node, within=Within(_LEVEL))

    parents, below = ((), ()) if doubt else (("zone",), found.below if found else ())
    assert found == Within(_LEVEL, parents=parents, below=below, doubt=doubt, is_of_least=True)


@pytest.mark.parametrize(
    "pod",
    [
        _KAI.annotate("kai.scheduler/topology-required-placement", _LEVEL),
        make_pod().scheduler("volcano"),
        make_pod().scheduler("default-scheduler").label("kueue.x-k8s.io/queue-name", "q"),
    ],
)
def test_domain_of_a_pod_that_batch_schedulers_see_alone_is_not_that_of_a_gang(pod: PodBuilder) -> None:
    assert within_of(pod, within=Within(_LEVEL)) is None


def test_kai_does_not_read_the_annotation_of_a_pod_with_an_owner() -> None:
    pod = _KAI.annotate("kai.scheduler/topology-required-placement", _LEVEL).owner("Job", "train")

    assert within_of(pod) is None


def test_group_of_kai_decides_on_the_domain() -> None:
    group = kai_group("g")
    group["spec"]["topologyConstraint"] = {"topology": "t", "requiredTopologyLevel": "zone"}
    pod = _KAI.annotate("pod-group-name", "g")

    found = within_of(pod, group, topology("t", KAI_TOPOLOGY, *RACKS), within=Within(_LEVEL))
    assert found == Within("zone", below=("rack",), is_of_least=True, topology="t")
    assert within_of(pod, kai_group("g"), topology("t", KAI_TOPOLOGY, _LEVEL), within=Within(_LEVEL)) is None


def test_annotation_is_kept_for_a_scheduler_without_topologies() -> None:
    assert within_of(make_pod().scheduler("default-scheduler"), within=Within(_LEVEL)) == Within(_LEVEL)


@pytest.mark.parametrize("controls", [True, False])
def test_kai_knows_the_gang_of_a_job_that_controls_the_pod(controls: bool) -> None:
    content = _KAI.owner("PyTorchJob", "train", api_version="kubeflow.org/v1").obj()
    content["metadata"]["ownerReferences"][0]["controller"] = controls
    (names,) = batch_names_of(content, backend_of(policy_with().spec, "kai-scheduler"))
    assert names.starts_whole is controls


_GANG = make_pod().namespace("default").annotate("maip.mxsf.io/gang", "train").gpu(2)
_OF_VOLCANO = _GANG.scheduler("volcano").annotate("scheduling.k8s.io/group-name", "g")
_OF_KAI = _GANG.scheduler("kai-scheduler").annotate("pod-group-name", "g")


@pytest.mark.parametrize(
    ("pod", "group", "holder"),
    [
        pytest.param(_OF_VOLCANO, volcano_group("g", members=6), "Volcano", id="volcano"),
        pytest.param(_OF_KAI, kai_group("g", members=6), "KAI", id="kai"),
        pytest.param(
            _GANG.scheduler("coscheduling").label("scheduling.x-k8s.io/pod-group", "g"),
            pod_group("g", group="scheduling.x-k8s.io", members=6),
            "Coscheduling",
            id="coscheduling",
        ),
        pytest.param(
            _GANG.scheduler("native").spec(schedulingGroup={"podGroupName": "g"}),
            pod_group("g", group="scheduling.k8s.io", members=6),
            "kube-scheduler",
            id="native",
        ),
    ],
)
def test_group_that_needs_more_pods_than_the_gang_has_never_starts(pod: PodBuilder, group: Object, holder: str) -> None:
    found = warnings_of(pod, [group], GangRequest("train", 4, "s", starts_whole=True))

    assert found == [f"{holder}: PodGroup g needs 6 pods, and the gang has 4: it never starts"]


def test_a_gang_that_starts_in_part_needs_the_amounts_of_its_smallest_pods() -> None:
    sets = tuple((pod_info(make_pod().requests(cpu=cpu)), count) for cpu, count in (("8", 2), ("1", 1), ("2", 4)))
    request = GangRequest("train", 7, "s", starts_whole=False, members=3)

    assert Demand(sets[0][0], GangDemand(request, sets), least=3).requests == {"cpu": 5000}


def test_a_native_group_without_a_domain_places_its_pods_anywhere() -> None:
    names = [BatchNames("native", "", "g", has_owner=False)]
    request = GangRequest("train", 4, "s", starts_whole=True, within=Within("rack"))

    found = grouped(request, names, "default", made_anew([pod_group("g", group="scheduling.k8s.io")]))

    assert found is not None
    assert found.within is None


@pytest.mark.parametrize(
    ("running", "used", "excess"),
    [
        pytest.param(0, 0, f"{GPU} 8 of 6", id="all pods"),
        pytest.param(0, 5, f"{GPU} 5 + 8 of 6", id="more than the limit without others"),
        pytest.param(2, 0, f"{GPU} 8 of 6", id="also if some of them run"),
    ],
)
def test_gang_that_exceeds_the_limit_by_itself_exceeds_it_whatever_runs(running: int, used: int, excess: str) -> None:
    assert _excess(running, used, most=6) == excess


@pytest.mark.parametrize(
    ("running", "used", "excess"),
    [
        pytest.param(0, 2, "", id="room for all"),
        pytest.param(0, 3, f"{GPU} 3 + 8 of 10", id="one card is missing"),
        pytest.param(1, 4, "", id="room for the others"),
        pytest.param(1, 5, f"{GPU} 5 + 6 of 10", id="no room for the others"),
        pytest.param(4, 8, "", id="room for one more"),
        pytest.param(4, 9, f"{GPU} 9 + 2 of 10", id="no room for one more"),
        pytest.param(5, 9, f"{GPU} 9 + 2 of 10", id="more pods than it needs run"),
    ],
)
def test_pods_of_a_gang_that_run_are_counted_as_used(running: int, used: int, excess: str) -> None:
    assert _excess(running, used, most=10) == excess


@pytest.mark.parametrize(("namespace", "gang"), [("other", "g"), ("default", "h")])
def test_pods_of_another_gang_that_run_need_room_beside_it(namespace: str, gang: str) -> None:
    assert _excess(2, 4, most=10, namespace=namespace, gang=gang) == f"{GPU} 4 + 8 of 10"


def _excess(running: int, used: int, most: int, *, namespace: str = "default", gang: str = "g") -> str:
    """Return the excess of a gang of four pods with two cards each, while pods of `gang` run."""
    members = (
        make_pod(f"g-{at}").namespace(namespace).annotate(GANG_KEY, gang).node_name("a") for at in range(running)
    )
    snapshot = made_anew([make_node_object("a"), *(each.obj() for each in members)])
    request = GangRequest("g", 4, "s", starts_whole=True, members=4)
    pod = pod_info(make_pod().namespace("default").gpu(2))
    demand = Demand(pod, GangDemand.of_pod(request, pod), least=4)
    return demand.excess({GPU: most, "cpu": 0}, {GPU: used, "cpu": 5}, snapshot)


@pytest.mark.parametrize(
    ("fit", "least", "is_complete", "starts"),
    [(3, 2, True, True), (2, 2, True, True), (1, 2, True, False), (4, 2, True, False), (3, 2, False, False)],
)
def test_object_starts_in_part_with_enough_pods_but_not_all(
    fit: int, least: int, *, is_complete: bool, starts: bool
) -> None:
    gang = GangRequest("g", 4, "s", starts_whole=True, members=least)

    assert gang.least == least
    assert bool(partial_start_of_object(gang, GangFit("g", 4, fit, 0, is_complete))) is starts


@pytest.mark.parametrize(
    ("spec", "within", "wanted"),
    [
        ({}, None, None),
        ({}, Within(key_of_tier(2)), NetworkTopology(is_hard=True, tier=2)),
        ({}, Within(key_of_tier(2), is_required=False), NetworkTopology(is_hard=False, tier=2)),
        ({}, Within("rack"), None),
        (
            {"networkTopology": {"mode": "soft", "highestTierAllowed": 1}},
            Within(key_of_tier(2)),
            NetworkTopology(is_hard=False, tier=1),
        ),
    ],
)
def test_request_of_a_volcano_job_itself_wins(
    spec: Object, within: Within | None, wanted: NetworkTopology | None
) -> None:
    assert network_of_job({"spec": spec}, within) == wanted
