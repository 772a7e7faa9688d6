"""The workflows and forms of .github/: they parse, have few rights, and name what exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.objects.manifests import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").iterdir())
FORMS = [path for path in sorted((GITHUB / "ISSUE_TEMPLATE").iterdir()) if path.name != "config.yml"]
TEXTS = {"", ".md", ".py", ".yaml", ".yml", ".sh", ".tpl", ".txt"}
TARGETS = {*re.findall(r"^([a-z-]+):(?: |$)", (ROOT / "Makefile").read_text(), re.MULTILINE)}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


@pytest.mark.parametrize("path", WORKFLOWS, ids=names(WORKFLOWS))
def test_workflow_has_few_rights_and_an_end(path: Path) -> None:
    workflow = read(path)

    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    assert all(job["timeout-minutes"] <= 120 for job in workflow["jobs"].values())
    # YAML reads the key `on` as true.
    assert workflow[True]


@pytest.mark.parametrize("path", WORKFLOWS, ids=names(WORKFLOWS))
def test_actions_are_pinned_by_commit(path: Path) -> None:
    actions = re.findall(r"uses: (.*)", path.read_text())

    assert actions
    assert [each for each in actions if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=names(WORKFLOWS))
def test_commands_of_workflows_exist(path: Path) -> None:
    runs = [step["run"] for job in read(path)["jobs"].values() for step in job["steps"] if "run" in step]
    targets = [target for run in runs for target in re.findall(r"\bmake ([a-z-]+)", run)]

    assert targets or ".ci/run" in runs
    assert {*targets} <= TARGETS
    assert (ROOT / ".ci" / "run").exists()


@pytest.mark.parametrize("path", WORKFLOWS, ids=names(WORKFLOWS))
def test_no_value_of_an_event_is_part_of_a_command(path: Path) -> None:
    """A branch name or a title is text of a stranger; in an expression within `run` it would be code."""
    runs = [step["run"] for job in read(path)["jobs"].values() for step in job["steps"] if "run" in step]

    assert [run for run in runs if "${{" in run] == []


@pytest.mark.parametrize("path", FORMS, ids=names(FORMS))
def test_form_asks_for_something(path: Path) -> None:
    form = read(path)

    assert form["name"]
    assert form["description"]
    fields = [each for each in form["body"] if each["type"] != "markdown"]
    assert any(each.get("validations", {}).get("required") for each in fields)
    assert len({each["id"] for each in fields}) == len(fields)


def test_forms_link_to_files_that_exist() -> None:
    text = "".join(path.read_text() for path in [*FORMS, GITHUB / "pull_request_template.md"])

    named = {*re.findall(r"\b(?:docs/)?[\w-]+\.md\b", text)}
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.slow
def test_no_host_of_a_registry_is_committed() -> None:
    """It comes from the variable REGISTRY of the repository. containerd names what has none `docker.io/library/…`."""
    host = re.compile(r"\b(?:ghcr|quay|docker|gcr|ecr)\.(?:io|com|aws)/(?!library/)")
    folders = ["webhook", "certs", "packages", "deploy", "docs", "examples", "bench", "tests", ".github", ".ci"]
    paths = [*ROOT.glob("*.md"), ROOT / "Dockerfile", ROOT / "Makefile"]
    paths += [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in TEXTS]

    assert [str(path) for path in paths if path.is_file() and host.search(path.read_text())] == []
