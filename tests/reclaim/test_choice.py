"""Which held pods may be evicted."""

from collections.abc import Sequence
from typing import Any

import pytest

from placement_reclaim.classes.pods import PodUse
from placement_reclaim.report import Limits, choose
from tests.reclaim.reports import report
from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder
from tests.support.objects.held import HOUR, ago, card_pod, gang_pod, gpu_node, waiting
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document

NODES = [*(gpu_node(f"n{number}") for number in range(3)), gpu_node("down", down_for=HOUR)]
MANY = Limits(9, 9)
LISTED = policy_with(reclaim={"namespaces": ["team-*"]})
NEVER = "maip.mxsf.io/reclaim"
CRASH = waiting(card_pod("crash", "n0"), "CrashLoopBackOff", HOUR)


def reasons(*pods: PodBuilder, limits: Limits = MANY, more: Sequence[dict[str, Any]] = ()) -> list[str]:
    snapshot = snapshot_from_documents([Document("the test", each) for each in (*NODES, *more)])
    return [reason for _, reason in choose(report(*NODES, *pods), lambda _: LISTED, snapshot, limits)]


def test_only_pods_that_wait_for_their_owner_are_evicted() -> None:
    assert reasons(CRASH) == [""]
    assert reasons(card_pod("stuck", "n0").deletion(ago(HOUR))) == ["class terminating: an eviction frees nothing"]
    assert reasons(card_pod("lost", "down")) == ["class node-down: an eviction frees nothing"]
    on_down = waiting(card_pod("crash", "down"), "CrashLoopBackOff", HOUR)
    assert reasons(on_down) == ["class node-down: an eviction frees nothing"]


def test_pods_with_idle_cards_are_left_to_their_owner() -> None:
    (held,) = report(*NODES, card_pod("nb", "n0", 1), uses={("team-a", "nb"): PodUse(cards=1)})

    chosen = choose([held], lambda _: LISTED, snapshot_from_documents([]), MANY)

    assert chosen == [(held, "class idle: only its owner knows whether it is used")]


def test_a_namespace_can_opt_out_and_must_be_listed() -> None:
    metadata = {"name": "team-a", "annotations": {NEVER: "never"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    elsewhere = waiting(card_pod("crash", "n0", namespace="shop"), "CrashLoopBackOff", HOUR)

    assert reasons(CRASH, more=[namespace]) == [f"its namespace has the annotation {NEVER}"]
    assert reasons(elsewhere) == ["spec.reclaim.namespaces of the policy does not list its namespace"]


def test_a_gang_is_evicted_whole_or_left_alone() -> None:
    gang = [gang_pod(0, "n0"), gang_pod(1, "n1"), gang_pod(2, "")]

    assert reasons(*gang) == [""]
    assert reasons(*gang[:1], gang[1].annotate(NEVER, "never"), gang[2]) == [f"pod bert-1 has the annotation {NEVER}"]
    assert reasons(*gang, limits=Limits(9, 1)) == ["--max-per-owner 1: 2 more pods of its owner"]
    assert reasons(*gang, limits=Limits(1, 9)) == ["--max 1: 2 more pods"]


def test_what_has_no_known_begin_is_left_alone() -> None:
    assert reasons(gang_pod(0, "n0"), gang_pod(1, "n1")) == ["the API has no time since when its cards are not used"]


def test_any_value_of_the_annotation_counts() -> None:
    assert reasons(CRASH.annotate(NEVER, "")) == [f"pod crash has the annotation {NEVER}"]


def test_limits_count_the_pods_before() -> None:
    one, two = (waiting(card_pod(f"web-{n}", "n0").owner("Job", "web"), "ImagePullBackOff", HOUR) for n in range(2))
    other = waiting(card_pod("web-0", "n1", namespace="team-b").owner("Job", "web"), "ImagePullBackOff", HOUR)

    assert reasons(one, two, other, limits=Limits(9, 1)) == ["", "--max-per-owner 1: 1 more pod of its owner", ""]
    assert reasons(one, two, other, limits=Limits(2, 2)) == ["", "", "--max 2: 1 more pod"]


@pytest.mark.parametrize("full", ["leader", "worker"])
def test_a_gang_of_two_owners_is_left_alone_if_one_of_them_has_lost_its_number_of_pods(full: str) -> None:
    crash = waiting(card_pod("one", "n2", namespace="team-c").owner("StatefulSet", full), "CrashLoopBackOff", HOUR)
    gang = [gang_pod(n, f"n{n}", size=3).obj() for n in range(2)]
    for pod, owner in zip(gang, ("leader", "worker"), strict=True):
        pod["metadata"]["ownerReferences"][0] |= {"kind": "StatefulSet", "name": owner, "apiVersion": "apps/v1"}
    rows = report(*NODES, crash, *gang, gang_pod(2, "", size=3))
    first = sorted(rows, key=lambda row: row.reason == "partial-gang")

    chosen = choose(first, lambda _: LISTED, snapshot_from_documents([]), Limits(9, 1))

    assert [(row.name, reason) for row, reason in chosen] == [
        ("one", ""),
        ("bert", "--max-per-owner 1: 2 more pods of its owner"),
    ]
    assert [reason for _, reason in choose(first[1:], lambda _: LISTED, snapshot_from_documents([]), Limits(9, 1))] == [
        ""
    ]


def test_limits_count_no_pods_that_are_left_alone() -> None:
    kept, one = (
        waiting(card_pod(f"web-{n}", "n0", cards).owner("Job", "web"), "ImagePullBackOff", HOUR)
        for n, cards in enumerate((8, 4))
    )
    left_alone = f"pod web-0 has the annotation {NEVER}"

    assert reasons(kept.annotate(NEVER, "never"), one, limits=Limits(1, 1)) == [left_alone, ""]
