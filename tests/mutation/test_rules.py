"""A new rule is one function and one row."""

from inspect import getmembers, isfunction

from pydantic.alias_generators import to_snake

from tests.support.admission import TYPE, admit_pod, policy_with
from tests.support.objects.builders import make_pod
from webhook.admission.verdict import Patched
from webhook.documents.documents import field
from webhook.mutation import rules
from webhook.mutation.rules import RULES


def test_the_table_holds_every_rule_of_the_module_by_its_name() -> None:
    functions = {
        name: function
        for name, function in getmembers(rules, isfunction)
        if function.__module__ == rules.__name__ and not name.startswith("_")
    }

    assert {to_snake(name): rule for name, rule in RULES.items()} == functions


def test_rules_apply_in_the_order_of_the_contract() -> None:
    assert [*RULES] == [
        "NodeUsageAffinity",
        "GpuProduct",
        "ExtraTolerations",
        "BinPacking",
        "SchedulerName",
        "BatchScheduler",
        "Priority",
        "Spread",
        "Guaranteed",
    ]


def test_products_of_others_are_excluded_by_each_label_that_can_name_them() -> None:
    policy = policy_with(allowedProducts={"MI300X": ["team-b"]})

    verdict = admit_pod(make_pod().gpu(1, "amd.com/gpu").annotate(TYPE, "training").obj(), policy)

    assert isinstance(verdict, Patched)
    required = field(verdict.pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    excluding = {
        each["key"] for each in required["nodeSelectorTerms"][0]["matchExpressions"] if each["operator"] == "NotIn"
    }
    assert excluding == {"amd.com/gpu.product-name", "amd.com/gpu.product"}
