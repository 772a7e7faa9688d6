"""The amounts that suggestions ask for: without overhead, and of cards that devices back."""

import pytest

from tests.placement.suggest.suggested import suggestions
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import make_cards, make_device_class, make_slice
from tests.support.plugins import node
from tests.support.views import made_anew
from webhook.cluster.snapshot import Snapshot
from webhook.placement.scheduler import Scheduler

CARD = "example.com/gpu"


@pytest.mark.parametrize(
    ("overhead", "asked", "text"),
    [
        ({"cpu": "1"}, "8", "ask for 7 cpu instead of 8: the largest free block is 8, and 1 is overhead"),
        ({"cpu": "250m"}, "8", "ask for 7750m cpu instead of 8: the largest free block is 8, and 250m is overhead"),
        ({"memory": "1Gi"}, "9", "ask for 8 cpu instead of 9: the largest free block is 8"),
        ({}, "9", "ask for 8 cpu instead of 9: the largest free block is 8"),
    ],
)
def test_overhead_is_no_request_of_a_container(overhead: dict[str, str], asked: str, text: str) -> None:
    pod = make_pod().requests(cpu=asked).spec(overhead=overhead)

    assert suggestions(pod, Snapshot.of([node("a", capacity={"cpu": "8"})])) == (text,)


def containers(*cards: int) -> list[dict[str, object]]:
    resources = [{"limits": {CARD: each}} for each in cards]
    return [{"name": f"c{place}", "image": "i", "resources": each} for place, each in enumerate(resources)]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"containers": containers(6, 5)}, "ask for 8 example.com/gpu instead of 11 in all containers together"),
        ({"containers": containers(11, 0)}, "ask for 8 example.com/gpu instead of 11"),
        ({"containers": containers(1), "initContainers": containers(11)}, "ask for 8 example.com/gpu instead of 11"),
    ],
)
def test_request_that_no_container_has_is_that_of_all(spec: dict[str, object], text: str) -> None:
    snapshot = Snapshot.of([node("a", capacity={CARD: "8"})])

    assert suggestions(make_pod().spec(**spec), snapshot) == (f"{text}: the largest free block is 8",)


def test_request_of_the_pod_as_a_whole_is_written() -> None:
    note = "LimitRanger plugin set: cpu request for container c0"
    pod = make_pod().spec(resources={"requests": {"cpu": "9"}}, containers=containers(0, 0))
    pod = pod.annotate("kubernetes.io/limit-ranger", note)

    (text,) = suggestions(pod, Snapshot.of([node("a", capacity={"cpu": "8"})]))

    assert text.startswith("ask for 8 cpu instead of 9: ")


@pytest.mark.parametrize(
    ("note", "found"),
    [
        ("LimitRanger plugin set: cpu, memory request for container a", " (with defaults of a LimitRange)"),
        (
            "LimitRanger plugin set: memory request for container a; cpu request for init container b",
            " (with defaults of a LimitRange)",
        ),
        ("LimitRanger plugin set: memory request for container a; cpu limit for container a", ""),
        ("", ""),
    ],
)
def test_request_that_a_limit_range_sets_is_no_request_of_the_manifest(note: str, found: str) -> None:
    pod = make_pod().requests(cpu="9").annotate("kubernetes.io/limit-ranger", note)

    assert suggestions(pod, Snapshot.of([node("a", capacity={"cpu": "8"})])) == (
        f"ask for 8 cpu instead of 9{found}: the largest free block is 8",
    )


def test_no_pod_is_asked_to_request_nothing_beside_its_overhead() -> None:
    pod = make_pod().requests(cpu="4").spec(overhead={"cpu": "8"})

    assert suggestions(pod, Snapshot.of([node("a", capacity={"cpu": "8"})])) == ()


@pytest.mark.parametrize(("asked", "found"), [(16, 3), (4, 3), (7, 3)])
def test_cards_that_devices_back_are_counted(asked: int, found: int) -> None:
    objects = [
        make_node_object("a"),
        make_node_object("b"),
        make_device_class(extended_resource=CARD),
        make_slice("a", *make_cards(2)),
        make_slice("b", *make_cards(3)),
    ]

    assert suggestions(make_pod().gpu(asked, CARD), made_anew(objects)) == (
        f"ask for {found} {CARD} instead of {asked}: the largest free block is {found}",
    )


def test_node_of_a_suggestion_has_the_cards_that_it_asks_for() -> None:
    counts = {"a": 1, "b": 4, "c": 6}
    nodes = [*map(make_node_object, counts)]
    slices = [make_slice(name, *make_cards(count)) for name, count in counts.items()]
    snapshot = made_anew([*nodes, make_device_class(extended_resource=CARD), *slices])

    (remedy,) = Scheduler(suggestions=1).place(make_pod().gpu(8, CARD).obj(), snapshot).remedies

    assert remedy.node == "c"
