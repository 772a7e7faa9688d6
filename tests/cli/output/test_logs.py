"""The logs of the server report errors without the values of pods."""

import subprocess
import sys

import pytest

SCRIPT = """
import structlog
from webhook.cli.output.logs import configure_logs
configure_logs({log_format!r}, "info")
log = structlog.get_logger()
log.debug("too quiet")
log.info("heard", number=7)
def admit(pod):
    raise ValueError("broken")
try:
    # Not as one word: since Python 3.13, a traceback shows the lines of a script, too.
    admit({{"env": [{{"name": "PASSWORD", "value": "hunter" + "2"}}]}})
except ValueError:
    log.exception("admission failed")
"""


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["json", "text", "auto"])
def test_logs_go_to_standard_error_without_the_values_of_variables(log_format: str) -> None:
    script = SCRIPT.format(log_format=log_format)

    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)

    assert result.stdout == ""
    assert "heard" in result.stderr
    assert "too quiet" not in result.stderr
    assert "ValueError" in result.stderr
    assert "broken" in result.stderr
    assert "hunter2" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["json", "auto"])
def test_a_log_line_is_one_json_object(log_format: str) -> None:
    script = "import json, sys\n" + SCRIPT.format(log_format=log_format)

    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)

    assert len(result.stderr.splitlines()) == 2
    assert [line[0] + line[-1] for line in result.stderr.splitlines()] == ["{}", "{}"]
