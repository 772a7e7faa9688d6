"""A new rule is one function and one row."""

from inspect import getmembers, isfunction

from pydantic.alias_generators import to_snake

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
