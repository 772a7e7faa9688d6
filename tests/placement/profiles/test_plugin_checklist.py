"""Every plugin has the tests and table entries of the checklist "A plugin" in docs/contributing.md."""

import ast
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.random_objects.random_profiles import ALWAYS_ENABLED, FILTERS
from tests.upstream.tracing import TRACED
from webhook.placement import plugins
from webhook.placement.profiles.plugin_registry import PLUGINS

_TESTS = Path(__file__).parents[1]
_MODELLED = {row.name: row for row in PLUGINS if row.factory is not None}
_MODULES = sorted(module.name for module in pkgutil.iter_modules(plugins.__path__))
_TESTED_THROUGH_THE_SCHEDULER = {
    "dynamic_resources": "dra/test_feasibility.py",
    "node_volume_limits": "plugins/test_node_volume_limits.py",
    "volume_binding": "plugins/test_volume_zone.py",
    "volume_restrictions": "framework/test_volume_claims.py",
    "volume_zone": "plugins/test_volume_zone.py",
}
"""The tests of plugins that need objects of a whole cluster; they name the plugin and run the scheduler."""


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("module", [name for name in _MODULES if name not in _TESTED_THROUGH_THE_SCHEDULER])
def test_a_plugin_has_tests_of_its_own(module: str) -> None:
    files = (_TESTS / "plugins").glob("test_*.py")
    assert any(f"{plugins.__name__}.{module}" in _imported(path) for path in files)


@pytest.mark.parametrize(("module", "file"), _TESTED_THROUGH_THE_SCHEDULER.items())
def test_a_plugin_without_tests_of_its_own_is_named_in_others(module: str, file: str) -> None:
    assert module in _MODULES
    assert f'"{module.title().replace("_", "")}"' in (_TESTS / file).read_text()


def test_every_modelled_plugin_is_compared_with_upstream_tables() -> None:
    assert _MODELLED.keys() - {each.name for each in TRACED} == set()


def test_every_modelled_filter_is_in_random_profiles_or_has_a_reason() -> None:
    filters = {name for name, row in _MODELLED.items() if "filter" in row.extension_points}
    assert filters == {*FILTERS, *ALWAYS_ENABLED}
    assert not ALWAYS_ENABLED.keys() & set(FILTERS)
