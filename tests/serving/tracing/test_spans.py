"""Steps of an admission without a tracer."""

import subprocess
import sys

import pytest

from webhook.serving.tracing import spans


@pytest.mark.slow
def test_without_the_flag_nothing_of_opentelemetry_is_loaded() -> None:
    loaded = "{m.partition('.')[0] for m in sys.modules}"
    script = f"import sys, webhook.cli.commands.serve; sys.exit('opentelemetry' in {loaded})"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_without_a_tracer_a_step_is_nothing() -> None:
    assert spans.step("parse") is spans.step("place") is spans.admission({})
