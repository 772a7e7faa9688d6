"""The budgets that evictions violate."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from tests.support.effort import examples
from tests.support.plugins import node
from tests.support.preemption import budget, running
from webhook.cluster.node_info import RunningPod
from webhook.cluster.objects.disruption_budget import DisruptionBudget
from webhook.cluster.snapshot import Snapshot
from webhook.kube.deadline import DeadlineNearError
from webhook.kube.selectors import LabelRequirement
from webhook.placement.preemption import protection
from webhook.placement.preemption.lower_pods import LowerPods
from webhook.placement.preemption.protection import Protection


def test_pods_of_two_namespaces_that_share_their_labels_have_budgets_of_their_own() -> None:
    labels = {"app": "web"}
    one, other = (
        RunningPod.of(running("web").namespace(namespace).obj())._replace(labels=labels, priority=priority)
        for priority, namespace in enumerate(("default", "other"))
    )
    lower = LowerPods(Snapshot.of([node("n").with_pods([one, other])]), [0], 100)

    assert [each.namespace for each in lower.pods] == ["other", "default"]
    assert Protection([budget(0)], lower).violated.tolist() == [-1, 0]


def _violated(*budgets: DisruptionBudget) -> list[int]:
    """The number of the violated budget of three web pods and one other, from the most important on."""
    pods = [running(f"web-{at}", 9 - at).label("app", "web").label("tier", "1") for at in range(3)]
    lower = LowerPods(Snapshot.of([node("n", *pods, running("other"))]), [0], 100)
    found: list[int] = Protection(budgets, lower).violated.tolist()
    return found


def test_evictions_violate_a_budget_once_it_is_spent() -> None:
    assert _violated(budget(1)) == [-1, 0, 0, -1]
    assert _violated(budget(3)) == [-1] * 4
    assert _violated(budget(0, disrupted=frozenset(("web-0",)))) == [-1, 0, 0, -1]


def test_the_first_spent_budget_of_a_pod_is_violated_and_the_others_are_not_used() -> None:
    tier = (LabelRequirement("tier", "Exists"),)
    assert _violated(budget(1), replace(budget(1), selector=tier)) == [-1, 0, 0, -1]
    assert _violated(budget(2), replace(budget(1), selector=tier)) == [-1, 1, 1, -1]


@pytest.mark.parametrize(("allowed", "unordered"), [(2, {0}), (3, set())])
def test_a_violation_uses_another_budget_of_its_pod_once(allowed: int, unordered: set[int]) -> None:
    """`both` violates `web`, and uses `tier` if that comes first: with the two after it, that is three."""
    pods = [running(f"tier-{at}", at).label("tier", "1") for at in (1, 2)]
    lower = LowerPods(
        Snapshot.of([node("n", running("both", 3).label("app", "web").label("tier", "1"), *pods)]), [0], 9
    )
    tier = replace(budget(allowed), name="tier", selector=(LabelRequirement("tier", "Exists"),))

    assert Protection([budget(0), tier], lower).unordered == unordered


def test_empty_selectors_protect_nothing() -> None:
    assert _violated(replace(budget(0), selector=())) == [-1] * 4
    assert _violated(replace(budget(0), selector=None)) == [-1] * 4


def test_the_order_of_equal_pods_decides_which_of_them_violate_a_budget() -> None:
    pods = [running(f"web-{at}", 1).label("app", "web") for at in range(2)]
    lower = LowerPods(Snapshot.of([node("n", *pods, running("other"))]), [0], 100)

    assert [Protection([budget(each)], lower).is_mixed.tolist() for each in (0, 1, 2)] == [
        [False, False, False],
        [True, True, False],
        [False, False, False],
    ]


def test_selectors_are_matched_once_for_pods_that_they_do_not_distinguish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pod of a StatefulSet has a label with its own index."""
    template = RunningPod.of(running("web").obj())
    labels = ({"app": "abc"[at % 3], "index": f"{at}"} for at in range(6000))
    pods = [template._replace(name=f"web-{at}", labels=each) for at, each in enumerate(labels)]
    lower = LowerPods(Snapshot.of([node("n").with_pods([*pods, template])]), [0], 100)
    indexed = (LabelRequirement("index", "Exists"), LabelRequirement("app", "In", ("a", "b")))
    budgets = [replace(budget(2), selector=indexed), replace(budget(1), selector=(LabelRequirement("app", "Exists"),))]
    matched, selecting = list[str](), protection._Index.selecting

    def noted(index: protection._Index, pod: RunningPod) -> tuple[int, ...]:
        matched.append(pod.name)
        return selecting(index, pod)

    monkeypatch.setattr(protection._Index, "selecting", noted)

    found = Protection(budgets, lower)

    assert len(matched) == 4
    assert [int((found.violated == each).sum()) for each in (-1, 0, 1)] == [2, 0, 5999]


@pytest.mark.parametrize("seed", range(examples(400)))
def test_violations_are_those_of_pods_one_by_one(seed: int) -> None:
    """Pods have up to three budgets, some of which count a pod as gone already."""
    dice = Random(seed)
    pods = []
    for at in range(dice.randint(1, 9)):
        labels = {key: "1" for key in "abc" if dice.random() < 0.5}
        pods.append(RunningPod.of(running(f"p{at}", dice.randint(1, 5)).obj())._replace(labels=labels))
    names = [each.name for each in pods]
    budgets = [
        replace(
            budget(dice.randint(-1, 3), disrupted=frozenset(dice.sample(names, dice.randint(0, 1)))),
            selector=(LabelRequirement(key, "Exists"),),
        )
        for key in "abca"
    ]
    lower = LowerPods(Snapshot.of([node(name).with_pods(dice.sample(pods, len(pods))) for name in "mn"]), [0, 1], 100)

    found = Protection(budgets, lower).violated.tolist()

    count = len(pods)
    assert found[:count] == _one_by_one(lower.pods[:count], budgets)
    assert found[count:] == _one_by_one(lower.pods[count:], budgets)


def _one_by_one(pods: Sequence[RunningPod], budgets: Sequence[DisruptionBudget]) -> list[int]:
    left, found = [each.disruptions_allowed for each in budgets], list[int]()
    for pod in pods:
        used = [
            at for at, each in enumerate(budgets) if each.selects(pod.labels) and pod.name not in each.disrupted_pods
        ]
        spent = next((at for at in used if left[at] <= 0), -1)
        found.append(spent)
        for at in used if spent < 0 else ():
            left[at] -= 1
    return found


@pytest.mark.parametrize("checks", [0, 1], ids=["pods", "budgets"])
def test_the_deadline_ends_the_count_of(checks: int) -> None:
    pods = [running(f"p{at}").label("app", "web") for at in range(9)]
    lower = LowerPods(Snapshot.of([node(name, *pods) for name in "abc"]), range(3), 100)
    answers = iter([False] * checks + [True])

    with pytest.raises(DeadlineNearError):
        Protection([budget(9)] * 2, lower, lambda: next(answers))
