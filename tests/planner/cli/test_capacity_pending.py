"""`capacity` counts further pods beside the pending pods of the cluster that come before them."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.moves import cards, running
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Outcome, Run

ONE = make_pod("one").gpu(1)
NODES = (cards("a", 4), cards("b", 4))


def pending(name: str, gpus: int = 4, *, priority: int = 0) -> PodBuilder:
    return make_pod(name).gpu(gpus).spec(priority=priority)


@pytest.fixture
def capacity(run: Run, tmp_path: Path) -> Any:
    """Return a function that counts pods on a cluster, given as objects, and returns the JSON lines."""

    def capacity(*cluster: Any, asked: Any = (), options: tuple[str, ...] = (), code: int = 0) -> list[Any]:
        outcome = call(run, tmp_path, *cluster, asked=asked, options=("-o", "json", *options))
        assert (outcome.code, outcome.errors) == (code, "")
        return lines(outcome.output)

    return capacity


def call(run: Run, folder: Path, *cluster: Any, asked: Any = (), options: tuple[str, ...] = ()) -> Outcome:
    path = folder / "cluster.json"
    path.write_text(as_list(*cluster))
    files = ("-f", "-") if asked else ()
    return run("capacity", *files, "--cluster", path, *options, stdin=as_list(*asked) if asked else "")


def test_pending_pods_take_their_places_before_further_pods(capacity: Any) -> None:
    (line,) = capacity(*NODES, pending("first"), pending("second", 3), pending("third"), asked=[ONE])

    assert (line["fits"], line["complete"], line["range"]) == (1, True, [1, 1])
    assert line["stoppedBy"] == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    assert (line["reserved"]["pods"], line["reserved"]["withoutRoom"]) == (2, 1)
    assert sorted(line["reserved"]["nodes"]) == ["a", "b"]


def test_pending_pods_can_be_ignored(capacity: Any) -> None:
    (line,) = capacity(*NODES, pending("first"), asked=[ONE], options=("--pending", "ignore"))

    assert (line["fits"], "reserved" in line) == (8, False)


def test_further_pods_come_before_pending_pods_of_a_lower_priority(capacity: Any) -> None:
    low, high = capacity(*NODES, pending("first", priority=5), asked=[ONE, pending("urgent", 1, priority=6)])

    assert (low["fits"], low["reserved"]["pods"]) == (4, 1)
    assert (high["fits"], "reserved" in high) == (8, False)


def test_a_pending_pod_takes_its_place_before_further_pods_of_its_name(capacity: Any) -> None:
    (line,) = capacity(*NODES, pending("one"), asked=[ONE])

    assert (line["fits"], line["reserved"]["pods"]) == (4, 1)


def test_together_pods_come_after_the_pending_pods_before_any_of_them(capacity: Any) -> None:
    found = capacity(
        *NODES,
        pending("middle", priority=5),
        pending("last", 1, priority=-1),
        asked=[ONE, pending("urgent", 1, priority=6)],
        options=("--together",),
    )

    assert [(line["fits"], line["reserved"]["pods"]) for line in found] == [(2, 1), (2, 1)]


def test_pods_that_repel_the_pending_pods_of_a_node_count_on_the_others(capacity: Any) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "alone"}}, "topologyKey": "kubernetes.io/hostname"}
    anti_affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    (line,) = capacity(
        *NODES,
        make_pod("first").label("app", "alone").gpu(1),
        asked=[make_pod("alone").label("app", "alone").gpu(1).affinity(anti_affinity)],
    )

    assert (line["fits"], line["reserved"]["pods"]) == (1, 1)
    assert line["nodes"].keys().isdisjoint(line["reserved"]["nodes"])


def test_free_blocks_are_those_of_the_cluster_as_it_stands(capacity: Any) -> None:
    (line,) = capacity(*NODES, pending("first"), pending("second"), asked=[ONE])

    assert [(block["cards"], block["nodes"]) for block in line["largestBlocks"]] == [(4, 2)]


def test_drained_pods_are_placed_after_pending_pods(capacity: Any) -> None:
    web = running("web", "a", 4).spec(priority=9)

    (drained,) = capacity(*NODES, web, pending("first", 2), options=("--drain", "a"), code=3)
    (ignored,) = capacity(*NODES, web, pending("first", 2), options=("--drain", "a", "--pending", "ignore"))

    assert (drained["fits"], drained["reserved"]) == (0, {"pods": 1, "nodes": {"b": 1}, "withoutRoom": 0})
    assert (ignored["fits"], "reserved" in ignored) == (1, False)


def test_pending_pods_get_no_drained_node(capacity: Any) -> None:
    drained, counted = capacity(*NODES, pending("first", 2), asked=[ONE], options=("--drain", "a"))

    assert drained["reserved"]["nodes"] == {"b": 1}
    assert (counted["fits"], counted["nodes"], "reserved" in counted) == (2, {"b": 2}, False)


def test_no_pod_is_moved_to_the_room_of_pending_pods(capacity: Any) -> None:
    cluster = (cards("a", 8), cards("b", 4), running("web", "a", 4))
    big = make_pod("big").gpu(8)

    (line,) = capacity(*cluster, pending("first"), asked=[big], options=("--make-room",))
    (ignored,) = capacity(*cluster, pending("first"), asked=[big], options=("--make-room", "--pending", "ignore"))

    assert (line["makeRoom"]["verdict"], line["reserved"]["pods"]) == ("None", 1)
    assert ignored["makeRoom"]["verdict"] == "Moves"


def test_pending_pods_are_not_moved(capacity: Any) -> None:
    (line,) = capacity(cards("a", 4), pending("first"), asked=[pending("big")], options=("--make-room",))

    assert (line["makeRoom"]["verdict"], line["makeRoom"]["tried"]["sets"]) == ("None", 0)


def test_pod_that_fits_before_pending_pods_of_a_lower_priority_needs_no_moves(capacity: Any) -> None:
    urgent = pending("urgent", priority=5)

    (line,) = capacity(cards("a", 4), pending("first"), asked=[urgent], options=("--make-room",))

    assert (line["fits"], line["makeRoom"]["verdict"]) == (1, "Fits")


def test_text_names_the_pending_pods(run: Run, tmp_path: Path) -> None:
    counted = call(run, tmp_path, cards("a", 4), pending("first", 3), pending("second"), asked=[ONE])
    drained = call(run, tmp_path, *NODES, pending("first", 3), options=("--drain", "a"))

    assert counted.output.splitlines()[:3] == [
        "default/one: 1 more fits",
        "  1 pending pod takes its place first: a 1; 1 fits nowhere",
        "  1 on a",
    ]
    assert drained.output.splitlines()[:2] == [
        "drain of a:",
        "  1 pending pod takes its place first: b 1",
    ]
