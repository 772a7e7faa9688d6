"""Each alert is valid, fires on its fault and on nothing else, and has a runbook."""

import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import yaml

from certs.controller.admin import ControllerMetrics
from tests.docs.markdown import blocks, links
from tests.monitoring.cases import CASES, Case
from tests.monitoring.monitored import RULES, alerts
from tests.support.objects.manifests import ROOT, read_one
from webhook.audit.record import Outcome
from webhook.cli.root import root
from webhook.runtime.metrics import Metrics
from webhook.serving.http.endpoint import REFUSALS

RUNBOOKS = ROOT / "docs" / "runbooks"
PAGES = sorted(RUNBOOKS.glob("*.md"))
NAMES = [alert["alert"] for alert in alerts()]
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]

Programs = dict[str, Path]


def promtool(prometheus: Programs, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([prometheus["promtool"], *arguments], capture_output=True, text=True, check=False)


def test_rules_are_valid(prometheus: Programs) -> None:
    done = promtool(prometheus, "check", "rules", str(RULES))

    assert (done.returncode, f"SUCCESS: {len(NAMES)} rules found" in done.stdout) == (0, True), done.stderr


def worlds() -> Iterator[tuple[bool, dict[str, Case]]]:
    """Yield cases that share a database of promtool, which takes long to start: their series have other names."""
    for fires in (True, False):
        packed: list[tuple[set[str], dict[str, Case]]] = []
        for name, case in CASES.items():
            metrics = {series.partition("{")[0] for series in (case.fires if fires else case.quiet)}
            fitting = (each for each in packed if each[0].isdisjoint(metrics))
            names, cases = next(fitting, (set[str](), dict[str, Case]()))
            if not cases:
                packed.append((names, cases))
            names |= metrics
            cases[name] = case
        yield from ((fires, cases) for _, cases in packed)


def unit_test(fires: bool, cases: dict[str, Case]) -> dict[str, Any]:
    """Return a test of promtool: how many alerts with these names and labels fire."""
    series = {each: values for case in cases.values() for each, values in (case.fires if fires else case.quiet).items()}
    checks = []
    for name, case in cases.items():
        labels = "".join(f',{label}="{value}"' for label, value in case.labels.items())
        expression = f'count(ALERTS{{alertname="{name}",alertstate="firing"{labels}}})'
        samples = [{"labels": "{}", "value": 1}] if fires else []
        checks.append({"expr": expression, "eval_time": case.at, "exp_samples": samples})
    return {
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "promql_expr_test": checks,
    }


def test_each_alert_fires_on_its_fault_and_is_quiet_otherwise(prometheus: Programs, tmp_path: Path) -> None:
    tests = [unit_test(fires, cases) for fires, cases in worlds()]
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))

    done = promtool(prometheus, "test", "rules", str(file))

    assert done.returncode == 0, done.stdout + done.stderr
    assert len(tests) < len(CASES) / 2


def test_each_alert_has_a_case() -> None:
    assert sorted(CASES) == sorted(NAMES)


@pytest.mark.parametrize("alert", alerts(), ids=NAMES)
def test_an_alert_says_what_happens_and_where_help_is(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    assert alert["annotations"]["runbook_url"] == f"docs/runbooks/{alert['alert']}.md"


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    assert [page.stem for page in PAGES if page.stem != "README"] == sorted(NAMES)


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "README"], ids=lambda page: page.stem)
def test_a_runbook_has_all_sections(page: Path) -> None:
    text = page.read_text()

    assert text.startswith(f"# {page.stem}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    assert "```console\n" in text.partition("## Diagnosis")[2]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_a_runbook_lead_to_files(page: Path) -> None:
    targets = [link.partition("#")[0] for link in links(page) if not link.startswith("https://")]

    assert [each for each in targets if each and not (page.parent / each).exists()] == []


# Commands that a version may lack.
PLANNED = {"doctor", "missed", "rotate", "test"}


def commands(page: Path) -> list[list[str]]:
    """Return the words of each call of our command in a page, up to a pipe."""
    lines = [line for block in blocks(page, "console") for line in block.text.splitlines()]
    calls = [line.split("|")[0] for line in lines if line.startswith("placement-webhook ")]
    return [shlex.split(call)[1:] for call in calls]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_a_runbook_are_ours(page: Path) -> None:
    unknown = []
    for words in commands(page):
        command: click.Command | None = root
        while isinstance(command, click.Group) and (name := words.pop(0)):
            found = command.get_command(click.Context(command), name)
            command = found if found or name in PLANNED else click.Command("unknown")
        flags = {flag for option in (command.params if command else []) for flag in option.opts}
        unknown += [word for word in words if command and word.startswith("-") and word not in flags]
        unknown += ["unknown"] if command and command.name == "unknown" else []

    assert unknown == []


def test_the_list_of_runbooks_is_complete() -> None:
    listed = [Path(link).stem for link in links(RUNBOOKS / "README.md")]

    assert sorted(name for name in listed if name.startswith("PlacementWebhook")) == sorted(NAMES)


def test_rules_for_the_operator_are_the_same() -> None:
    assert read_one("monitoring/prometheusrule.yaml")["spec"] == yaml.safe_load(RULES.read_text())


def counters() -> set[tuple[str, frozenset[tuple[str, str]]]]:
    """Return the counters that alerts take the increase of, with the labels that they choose by."""
    found = set()
    for expression in (
        each["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for each in group["rules"]
    ):
        for name, labels in re.findall(r"increase\((placement_webhook_\w+)(?:\{(.*?)\})?\[", expression):
            chosen = [
                [(key, value) for value in values.split("|")] for key, values in re.findall(r'(\w+)=~?"(.*?)"', labels)
            ]
            found |= {(name, frozenset(each)) for each in itertools.product(*chosen)}
    return found


def test_each_counter_of_an_alert_starts_at_zero() -> None:
    """increase() misses the first 1 of a new series: the alert would be quiet at the first fault after a start."""
    server, controller = Metrics(), ControllerMetrics()
    server.start_at_zero(get_args(Outcome), (), REFUSALS, ())
    samples = [each for one in (server, controller) for family in one.registry.collect() for each in family.samples]

    assert len(counters()) > 10
    for name, labels in counters():
        values = [each.value for each in samples if each.name == name and labels <= each.labels.items()]
        assert values, f"{name} {dict(labels)}"
        assert set(values) == {0}
