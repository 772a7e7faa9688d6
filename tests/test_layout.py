"""Conventions of the project that no linter checks."""

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("webhook", "certs", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "packages").glob("*/"))))
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
EVERYTHING = sorted(path for folder in (*PACKAGES, "tests", "bench", "tools") for path in (ROOT / folder).rglob("*.py"))
LONGEST_MODULE_LINES = 300
LONGEST_FUNCTION_LINES = 60
MOST_ENTRIES = 20
LARGEST_SHARE_WITHOUT_TESTS = 0.06


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def text(path: Path) -> str:
    return path.read_text()


def test_a_module_fits_in_one_sitting() -> None:
    lines = {shown(path): len(text(path).splitlines()) for path in MODULES}

    assert {name: count for name, count in lines.items() if count > LONGEST_MODULE_LINES} == {}


@pytest.mark.slow
def test_a_function_fits_on_a_screen() -> None:
    """Not counting the decorators, in which a command has its flags."""
    lines = {
        f"{shown(path)}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert {name: count for name, count in lines.items() if count > LONGEST_FUNCTION_LINES} == {}


def test_no_folder_has_too_many_entries() -> None:
    """Except tests/ itself, which mirrors the packages."""
    folders = {path.parent for path in EVERYTHING} - {ROOT / "tests"}
    counts = {shown(each): len([entry for entry in each.iterdir() if entry.name != "__pycache__"]) for each in folders}

    assert {name: count for name, count in counts.items() if count > MOST_ENTRIES} == {}


def test_every_package_has_a_docstring() -> None:
    folders = {path.parent for path in EVERYTHING}
    silent = [
        shown(folder)
        for folder in folders
        if not (folder / "__init__.py").exists()
        or not ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    ]

    assert silent == []


def test_no_module_has_a_meaningless_name() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}

    assert [shown(path) for path in EVERYTHING if path.stem in vague or path.parent.name in vague] == []


def layers() -> list[list[str]]:
    """Return the packages of each layer of `webhook`, as the import contract has them, and each other package."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each.get("containers") == ["webhook"]]
    of_webhook = [[f"webhook/{name.strip()}" for name in layer.split("|")] for layer in contract["layers"]]
    return [*of_webhook, *([package] for package in PACKAGES if package != "webhook")]


def test_a_module_name_exists_once_in_a_layer() -> None:
    """A reader who searches for a module by its name finds one."""
    repeated = []
    for layer in layers():
        places: dict[str, list[str]] = defaultdict(list)
        for path in MODULES:
            if path.name != "__init__.py" and any(path.is_relative_to(ROOT / package) for package in layer):
                places[path.stem].append(shown(path))
        repeated += [paths for paths in places.values() if len(paths) > 1]

    assert repeated == []


def test_no_comment_postpones_work() -> None:
    later = re.compile(r"#.*\b(TODO|FIXME|XXX|HACK)\b")
    others = [path for path in EVERYTHING if path != Path(__file__)]

    assert [shown(path) for path in others if later.search(text(path))] == []


def test_packages_are_typed() -> None:
    assert [package for package in PACKAGES if not (ROOT / package / "py.typed").exists()] == []


@pytest.mark.slow
def test_no_test_is_skipped_or_rerun() -> None:
    """Tests that need the control plane are the one exception; conftest.py explains it."""
    marks = re.compile(r"\bmark\.(skip|skipif|xfail|flaky)\b|pytest\.(skip|xfail|importorskip)\(")
    excepted = {ROOT / "conftest.py", Path(__file__)}
    tests = [path for path in EVERYTHING if path not in excepted]

    assert [shown(path) for path in tests if marks.search(text(path))] == []


def test_tests_share_by_support_and_not_by_each_other() -> None:
    """Code shared by test modules is in a module of its own, mostly in tests/support."""
    shared = re.compile(r"^\s*(from|import) tests\b.*\btest_", re.MULTILINE)

    assert [shown(path) for path in EVERYTHING if shared.search(text(path))] == []


def test_benchmarks_use_the_tests_and_not_the_other_way() -> None:
    imported = re.compile(r"^\s*(from|import) bench\b", re.MULTILINE)

    assert [shown(path) for path in (ROOT / "tests").rglob("*.py") if imported.search(text(path))] == []


def test_an_object_has_one_builder() -> None:
    """Builders of one name that differ are mistaken for each other."""
    names = {"node", "make_pod", "make_node_object", "make_pvc", "make_pv", "make_resource_claim", "make_device_class"}
    builder = re.compile(rf"^def ({'|'.join(names)})\(", re.MULTILINE)
    shared = sorted((ROOT / "tests" / "support").rglob("*.py"))
    found = [(name, path in shared) for path in EVERYTHING for name in builder.findall(text(path))]

    assert sorted(found) == sorted((name, True) for name in names)


def test_tests_sit_at_the_path_of_their_module() -> None:
    """`webhook/kube/quantity.py` has `tests/kube/test_quantity.py`, `certs/pki.py` has `tests/certs/test_pki.py`."""
    modules = [path.relative_to(ROOT) for path in MODULES if path.name not in ("__init__.py", "__main__.py")]
    own = [path for path in modules if path.parts[0] in ("webhook", "certs")]
    folders = {path: path.parent.relative_to("webhook") if path.parts[0] == "webhook" else path.parent for path in own}
    lacking = [str(path) for path in own if not (ROOT / "tests" / folders[path] / f"test_{path.name}").exists()]

    assert len(lacking) <= LARGEST_SHARE_WITHOUT_TESTS * len(own), lacking
