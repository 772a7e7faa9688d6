"""The result of each rule, and the rules that a mutation writes to the pod."""

from collections.abc import Mapping

import pytest

from tests.support.admission import DOMAIN, PRODUCT, TYPE, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.mutation.edits.edits import AddLabel, AddToleration
from webhook.mutation.mutate import Mutation, Rule, RuleOutcome, mutate
from webhook.mutation.rules import RULES
from webhook.mutation.workload.workload import read_workload

POLICY = policy_with()
TRAINING = make_pod().annotate(TYPE, "training")
RULES_KEY = f"{DOMAIN}/placement-rules"


OWN: Mapping[str, Rule] = {
    "Tolerant": lambda *_: (AddToleration("a", "b"), AddToleration("c", "d")),
    "Labelled": lambda *_: (AddLabel("jobtype", "binpacked", "so"),),
    "Twice labelled": lambda *_: (AddLabel("jobtype", "binpacked", "so"), AddLabel("team", "a", "so")),
    "Absent": lambda *_: "why not",
}


def mutated(pod: PodBuilder, *names: str) -> Mutation:
    rules = {name: OWN[name] for name in names} or RULES
    workload = read_workload(pod.obj(), "default", {}, POLICY).workload
    assert workload is not None
    return mutate(pod.obj(), workload, POLICY, rules)


def written(mutation: Mutation) -> str:
    rules: str = mutation.pod["metadata"]["annotations"][RULES_KEY]
    return rules


def test_rule_lists_the_edits_that_changed_the_pod() -> None:
    pod = TRAINING.toleration("a", value="b")

    assert mutated(pod, "Tolerant").rules == (RuleOutcome("Tolerant", ("tolerate c=d:NoSchedule",)),)


def test_rule_that_yields_in_part_is_effective() -> None:
    mutation = mutated(TRAINING.label("jobtype", "nightly"), "Twice labelled")

    assert mutation.rules == (RuleOutcome("Twice labelled", ("label team=a",)),)
    assert written(mutation) == "Twice labelled"


@pytest.mark.parametrize(
    ("rule", "pod", "skipped", "effective_rules"),
    [
        ("Absent", TRAINING, "why not", ""),
        ("Tolerant", TRAINING.toleration(operator="Exists"), "the pod is already so", "Tolerant"),
        ("Labelled", TRAINING.label("jobtype", "nightly"), "kept: label jobtype=nightly", ""),
        ("Labelled", TRAINING.label("jobtype", "binpacked"), "the pod is already so", "Labelled"),
    ],
    ids=["no concern", "nothing left to do", "it yielded", "done already"],
)
def test_rule_that_changes_nothing_has_a_reason(rule: str, pod: PodBuilder, skipped: str, effective_rules: str) -> None:
    mutation = mutated(pod, rule)

    assert mutation.rules == (RuleOutcome(rule, skipped=skipped),)
    assert written(mutation) == effective_rules


def test_effective_rules_are_written_in_order_with_the_policy_identity() -> None:
    mutation = mutated(TRAINING, "Labelled", "Absent", "Tolerant")

    assert written(mutation) == "Labelled,Tolerant"
    assert mutation.pod["metadata"]["annotations"][f"{DOMAIN}/placement-policy"] == POLICY.identity


def test_a_second_mutation_writes_the_same_rules() -> None:
    for pod in (TRAINING, TRAINING.label("jobtype", "nightly"), TRAINING.scheduler("kai-scheduler")):
        once = mutated(pod)
        twice = mutated(PodBuilder(once.pod))

        assert (twice.operations, written(twice)) == ([], written(once))


def test_products_are_the_gpu_products_rule() -> None:
    outcome = {rule.name: rule for rule in mutated(TRAINING.annotate(PRODUCT, "A,B")).rules}["GpuProduct"]

    assert outcome.edits == (
        "require node nvidia.com/gpu.product in [A, B]",
        "tolerate nvidia.com/gpu.product=A:NoSchedule",
        "tolerate nvidia.com/gpu.product=B:NoSchedule",
    )
