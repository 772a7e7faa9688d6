"""`version`: the version of the program."""

import pytest

from tests.support.programs.command import Run
from webhook import __version__


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_printed(run: Run, flag: str) -> None:
    outcome = run(flag)

    assert (outcome.code, outcome.output) == (0, f"placement-webhook {__version__}\n")
