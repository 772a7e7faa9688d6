"""The objects that a pod of a gang names."""

import pytest

from tests.placement.reasons.batch_pods import Object, warnings_of
from tests.support.objects.batch_objects import (
    cluster_queue,
    kai_group,
    kai_queue,
    local_queue,
    volcano_group,
    volcano_queue,
)
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.backends.references import TEMPLATES_DIFFER, GangRequest, Within, strictest

GPU = "nvidia.com/gpu"
_GANG = make_pod().namespace("default").annotate("maip.mxsf.io/gang", "train").gpu(2)
_OF_VOLCANO = _GANG.scheduler("volcano").annotate("scheduling.k8s.io/group-name", "g")
_OF_KAI = _GANG.scheduler("kai-scheduler").annotate("pod-group-name", "g")
_OF_KUEUE = (
    _GANG.label("kueue.x-k8s.io/queue-name", "q")
    .label("kueue.x-k8s.io/pod-group-name", "train")
    .annotate("kueue.x-k8s.io/pod-group-total-count", "4")
)
_VOLCANO_EXCESS = "Volcano: with the 4 pods of gang train, queue default exceeds its capability"

RACK_REQUIRED = Within("rack")


@pytest.mark.parametrize(
    ("pod", "objects", "warnings"),
    [
        pytest.param(
            _OF_VOLCANO,
            [volcano_group("g", members=4), volcano_queue(capability={GPU: "8"})],
            [],
            id="Volcano, room for all",
        ),
        pytest.param(
            _OF_VOLCANO,
            [volcano_group("g", members=4), volcano_queue(capability={GPU: "7"})],
            [f"{_VOLCANO_EXCESS}: {GPU} 8 of 7"],
            id="Volcano, too small",
        ),
        pytest.param(
            _OF_VOLCANO,
            [volcano_group("g", members=4), volcano_queue(capability={GPU: "9"}, allocated={GPU: "2"})],
            [f"{_VOLCANO_EXCESS}: {GPU} 2 + 8 of 9"],
            id="Volcano, others use it",
        ),
        pytest.param(
            _OF_VOLCANO,
            [
                volcano_group("g", members=4),
                volcano_queue(capability={GPU: "9"}, allocated={GPU: "2"}),
                _OF_VOLCANO.node_name("a").obj(),
            ],
            [],
            id="Volcano, members use it",
        ),
        pytest.param(
            _OF_VOLCANO,
            [volcano_group("g", members=2), volcano_queue(capability={GPU: "4"})],
            [],
            id="Volcano, room for as many as start",
        ),
        pytest.param(
            _OF_KAI,
            [kai_group("g", members=4), kai_queue("team", limits={"gpu": 4})],
            [f"KAI: OverLimit: with the 4 pods of gang train, queue team exceeds its limit: {GPU} 8 of 4"],
            id="KAI",
        ),
        pytest.param(
            _OF_KUEUE,
            [local_queue("q"), cluster_queue("cards", {"spot": {GPU: "6"}})],
            [f"Kueue: the quota of ClusterQueue cards can never hold the 4 pods of gang train: {GPU} 8 of 6"],
            id="Kueue",
        ),
        pytest.param(
            _OF_KUEUE,
            [local_queue("q"), cluster_queue("cards", {"spot": {GPU: "6"}}, cohort="all", borrowing={GPU: "2"})],
            [],
            id="Kueue, with what can be borrowed",
        ),
        pytest.param(
            _GANG.scheduler("volcano"), [volcano_queue(capability={GPU: "2"})], [], id="Volcano does not know the gang"
        ),
    ],
)
def test_limit_of_a_queue_is_for_the_pods_that_start_together(
    pod: PodBuilder, objects: list[Object], warnings: list[str]
) -> None:
    assert warnings_of(pod, objects, GangRequest("train", 4, "s", starts_whole=True)) == warnings


@pytest.mark.parametrize(
    ("size", "members", "is_whole", "least"), [(4, 6, True, 4), (4, 2, True, 2), (4, 0, True, 4), (4, 0, False, 1)]
)
def test_a_gang_needs_the_pods_of_its_group_and_no_more_than_it_has(
    size: int, members: int, is_whole: bool, least: int
) -> None:
    assert GangRequest("train", size, "s", starts_whole=is_whole, members=members).least == least


@pytest.mark.parametrize(
    ("others", "doubt"),
    [
        pytest.param([RACK_REQUIRED], "", id="equal"),
        pytest.param([None], TEMPLATES_DIFFER, id="none"),
        pytest.param([Within("rack", is_required=False)], TEMPLATES_DIFFER, id="a preference"),
    ],
)
def test_templates_with_different_requests_for_a_domain_leave_a_doubt(others: list[Within | None], doubt: str) -> None:
    for requests in ([RACK_REQUIRED, *others], [*others, RACK_REQUIRED]):
        assert strictest(requests) == RACK_REQUIRED._replace(doubt=doubt)


def test_a_request_has_the_first_alias_of_its_key() -> None:
    aliases = {"host": "kubernetes.io/hostname", "rack": "example.com/rack", "block": "example.com/rack"}

    assert Within("example.com/rack", part=2).named(aliases) == Within("example.com/rack", part=2, alias="rack")
    assert Within("zone", alias="old").named(aliases) == Within("zone")


@pytest.mark.parametrize(
    ("part", "rooms", "fitting"), [(0, [5, 3], 5), (0, [], 0), (2, [5, 3], 6), (4, [5, 3], 4), (2, [], 0)]
)
def test_a_gang_fits_into_one_domain_or_its_parts_into_a_domain_each(part: int, rooms: list[int], fitting: int) -> None:
    assert Within("rack", part=part).most(rooms) == fitting
