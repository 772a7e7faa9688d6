"""The search for victims on all nodes at once gives the outcomes that removing and putting back pods gives."""

from typing import Any

import pytest

from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.preemption import PRIORITIES, random_budgets, random_preemptor, random_world
from tests.oracles.plain_preemption import PlainPreemption
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import PodSignature

_PREEMPTORS = 4


@pytest.mark.parametrize("seed", range(60))
def test_victims_are_those_of_the_plain_implementation(seed: int) -> None:
    dice = Dice(seed)
    world, budgets = random_world(dice, dice.choice((1, 2, 3, 5))), random_budgets(dice)
    objects = [*map(_with_priority, (*world.objects, *budgets))]
    snapshot = snapshot_from_documents(Document("random", each) for each in objects)
    for number in range(_PREEMPTORS):
        signature = PodSignature.of(_with_priority(random_preemptor(dice, f"preemptor-{number}", "")))
        scheduler = Scheduler()
        if scheduler.answer(signature, snapshot).feasible:
            continue
        found = scheduler.preemption(signature, snapshot)
        assert found is not None
        if signature.info.preemption.is_never or (found.message and "terminating pod" in found.message):
            continue
        possible = PlainPreemption(signature.info.normalized_for(snapshot), snapshot).possible()
        assert {*found.nodes} == {each.node for each in possible}
        named = {each.name for each in found.victims}
        every = {name for each in possible for name in each.victims}
        if "more orders than are tried" in found.why:
            assert named >= every
            continue
        assert named == every
        assert found.is_exact == (len(possible) <= 1)
        if possible:
            counts = [len(each.victims) for each in possible]
            assert (found.least, found.most) == (min(counts), max(counts))


def _with_priority(pod: dict[str, Any]) -> dict[str, Any]:
    """The object with the priority of its class, as the API server sets it."""
    name = pod.get("spec", {}).get("priorityClassName")
    return {**pod, "spec": {**pod["spec"], "priority": PRIORITIES.get(name, 100)}} if name else pod
