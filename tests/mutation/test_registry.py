"""A new rule is one file and one row."""

import inspect
from importlib import import_module
from pathlib import Path

from pydantic.alias_generators import to_pascal

from webhook.mutation import rules
from webhook.mutation.registry import RULES

MODULES = sorted(path.stem for path in Path(rules.__path__[0]).glob("*.py") if path.stem != "__init__")


def test_the_registry_holds_what_the_directory_holds() -> None:
    assert sorted(rule.__module__.rpartition(".")[2] for rule in RULES) == MODULES


def test_a_rule_its_class_and_its_file_have_one_name() -> None:
    for name in MODULES:
        module = import_module(f"webhook.mutation.rules.{name}")
        classes = inspect.getmembers(module, inspect.isclass)
        assert [found for found, of in classes if of.__module__ == module.__name__] == [to_pascal(name)]


def test_rules_apply_in_the_order_of_the_contract() -> None:
    assert [rule.__name__ for rule in RULES] == [
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
