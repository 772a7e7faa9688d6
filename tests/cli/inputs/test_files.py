"""Files and names on the command line."""

from typing import Any

from tests.support.objects.builders import make_pod
from tests.support.programs.cluster_files import as_list
from tests.support.programs.command import Run


def test_an_empty_name_is_not_the_current_folder(run: Run, command: tuple[Any, ...]) -> None:
    outcome = run(*command, "-f", "")

    assert (outcome.code, outcome.output) == (2, "")
    assert "Error: --filename: Required value" in outcome.errors


def test_a_namespace_with_an_invalid_name_is_an_error(run: Run, command: tuple[Any, ...]) -> None:
    outcome = run(*command, "-f", "-", "-n", "Bad_NS", stdin=as_list(make_pod("p")))

    assert (outcome.code, outcome.output) == (2, "")
    assert 'Error: --namespace: Invalid value: "Bad_NS"; must be a DNS label' in outcome.errors
