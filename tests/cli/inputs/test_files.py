"""Files and names on the command line."""

from typing import Any

import click
import pytest

from tests.support.objects.builders import make_pod
from tests.support.programs.cluster_files import as_list
from tests.support.programs.command import Run
from webhook.cli.inputs.files import DurationType, NamesType, PolicyFiles


def test_an_empty_name_is_not_the_current_folder(run: Run, command: tuple[Any, ...]) -> None:
    outcome = run(*command, "-f", "")

    assert (outcome.code, outcome.output) == (2, "")
    assert "Error: --filename: Required value" in outcome.errors


def test_a_namespace_with_an_invalid_name_is_an_error(run: Run, command: tuple[Any, ...]) -> None:
    outcome = run(*command, "-f", "-", "-n", "Bad_NS", stdin=as_list(make_pod("p")))

    assert (outcome.code, outcome.output) == (2, "")
    assert 'Error: --namespace: Invalid value: "Bad_NS"; must be a DNS label' in outcome.errors


@pytest.mark.parametrize(("text", "allows_zero", "seconds"), [("90s", False, 90), ("0s", True, 0), ("0", True, 0)])
def test_a_duration_is_in_seconds(text: str, allows_zero: bool, seconds: float) -> None:
    assert DurationType(allows_zero=allows_zero).convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["0s", "0", "90", ""])
def test_a_duration_of_zero_is_invalid_unless_it_is_allowed(text: str) -> None:
    with pytest.raises(click.UsageError, match="must be a duration such as 90s, 30m or 24h"):
        DurationType().convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "allows_none", "names"),
    [("a", False, ("a",)), ("b,a", False, ("b", "a")), ("", True, ()), ("a,", True, ("a",))],
)
def test_names_are_in_the_order_given(text: str, allows_none: bool, names: tuple[str, ...]) -> None:
    assert NamesType(["a", "b"], allows_none=allows_none).convert(text, None, None) == names


@pytest.mark.parametrize("text", ["", "a,", "a,bb"])
def test_an_unknown_name_is_an_error(text: str) -> None:
    with pytest.raises(click.UsageError, match="must be one of a, bbb, or several with commas"):
        NamesType(["a", "bbb"]).convert(text, None, None)


def test_the_name_of_a_policy_in_the_environment_can_have_any_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLICY", "/a b,c:d.yaml")
    option = PolicyFiles(["--policy"], multiple=True, envvar="POLICY")

    assert option.value_from_envvar(click.Context(click.Command("x"))) == ("/a b,c:d.yaml",)
