"""Predictions for random pods on random clusters, compared with the real Volcano."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.schedulers.asked import Asked, Compared, compared_on_random_worlds
from tests.schedulers.build import Built
from tests.schedulers.installed import volcano
from webhook.placement.batch_profiles.volcano import VOLCANO

PODS_PER_WORLD = 25
WORLDS = max(1, int(os.environ.get("DIFFERENTIAL_VOLCANO", "300")) // PODS_PER_WORLD)

_NOT_ENQUEUED = "pod group is not ready"
_REASON = re.compile(r"(\d+) (.+?)(?:, (?=\d)|$)")
_SCALAR = re.compile(r"Insufficient (?!cpu$|memory$)")
_RESERVED = re.compile(r"can possibly be assigned to (\S+), once")


@contextmanager
def asking(cluster: Cluster, built: Built, folder: Path) -> Iterator[Asked]:
    with volcano.running(cluster, built, folder) as started:
        yield Asked(cluster, volcano.SCHEDULING, started.scores)


def reserved_node(each: Compared) -> str | None:
    """Return the node on which Volcano reserves room for the pod and does not bind it.

    It waits for pods that are being deleted, or binding a pod without requests fails, because the pods of the node
    request more than it has.
    """
    found = _RESERVED.search(each.answer.message)
    return found[1] if found else None


def reasons(message: str) -> Counter[str]:
    """Return the reasons up to the first full stop, counted.

    Of several resources but cpu and memory that a node lacks, Volcano names a random one.
    """
    heading, _, rest = message.partition(". ")[0].removesuffix(".").partition(": ")
    counted: Counter[str] = Counter([heading])
    for number, reason in _REASON.findall(rest):
        counted["Insufficient other resources" if _SCALAR.match(reason) else reason] += int(number)
    return counted


def agrees(each: Compared) -> bool:
    reserved = reserved_node(each)
    return each.agrees_on_binding if reserved is None else reserved not in each.placement.scores


def has_same_words(each: Compared) -> bool:
    return reasons(each.placement.message) == reasons(each.answer.message)


@pytest.mark.timeout(1800)
def test_predictions_for_random_pods_match_volcano(cluster: Cluster, volcano_programs: Built, tmp_path: Path) -> None:
    found = compared_on_random_worlds(
        cluster,
        VOLCANO,
        lambda folder: asking(cluster, volcano_programs, folder),
        tmp_path,
        scheduler_name="volcano",
        worlds=WORLDS,
        pods_per_world=PODS_PER_WORLD,
    )

    bound = [each for each in found if each.answer.node]
    best = sum(each.is_best for each in bound)
    refused = [each for each in found if not each.answer.node and reserved_node(each) is None]
    worded = [each for each in refused if not each.answer.message.startswith(_NOT_ENQUEUED)]
    # Pods without requests are scored on nodes, too, on which binding them fails.
    scored = [each for each in bound if each.answer.scores.keys() == each.placement.scores.keys()]
    print(
        f"{len(found)} pods, {len(bound)} bound, {best} on a best node; {len(scored)} with scores, {len(worded)} words"
    )
    assert [str(each) for each in found if each.placement.verdict == "Unknown"] == []
    assert [str(each) for each in found if not agrees(each)] == []
    assert len(bound) >= len(found) / 4
    assert best >= 0.95 * len(bound)
    assert [str(each) for each in scored if not each.has_same_scores] == []
    assert [str(each) for each in worded if not has_same_words(each)] == []
