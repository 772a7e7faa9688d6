"""`serve` follows its policy file, in a separate process."""

import json
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.programs.command import run_alone
from tests.support.programs.programs import forked
from tests.support.servers.server import write_certificate

HEAD = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"
FAILS = "spec: {tests: [{name: untyped, expect: {outcome: Patched}}]}\n"
LOOPBACK = "127.0.0.1:0"


def text(name: str) -> str:
    return f"{HEAD}metadata: {{name: {name}}}\n"


@pytest.mark.slow
def test_sighup_reads_the_file_and_the_admin_port_says_what_is_in_force(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    path = tmp_path / "policy.yaml"
    path.write_text(text("first"))
    flags = ["--listen", LOOPBACK, "--admin-listen", LOOPBACK]
    command = [forked(), "serve", "--tls-dir", str(tmp_path), "--policy", str(path), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        stderr = process.stderr

        def next_event() -> dict[str, Any]:
            event: dict[str, Any] = json.loads(stderr.readline())
            return event

        admin = f"http://{next_event()['admin']}"

        def get(target: str) -> bytes:
            with urllib.request.urlopen(admin + target, timeout=30) as answer:
                assert answer.status == 200
                body: bytes = answer.read()
            return body

        try:
            described = orjson.loads(get("/policy"))
            assert (described["name"], described["source"]) == ("first", f"file {path}")

            path.write_text(text("second"))
            process.send_signal(signal.SIGHUP)
            assert next_event()["event"] == "policy applied"
            assert orjson.loads(get("/policy"))["policy"]["metadata"]["name"] == "second"

            path.write_text(HEAD + FAILS)
            process.send_signal(signal.SIGHUP)
            event = next_event()
            assert (event["level"], event["in_force"].partition("@")[0]) == ("error", "second")
            described = orjson.loads(get("/policy"))
            assert described["name"] == "second"
            assert '"untyped" gets Bypassed' in described["rejected"]["errors"][0]
            assert get("/readyz").decode().splitlines()[0] == "ok"
            assert "the newest policy is rejected" in get("/readyz").decode()
            metrics = get("/metrics").decode().splitlines()
            assert 'placement_webhook_policy_reloads_total{result="applied"} 1.0' in metrics
            assert "placement_webhook_policy_rejected 1.0" in metrics
        finally:
            process.kill()


@pytest.mark.slow
def test_a_policy_with_a_test_case_that_fails_is_not_served(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + FAILS)

    outcome = run_alone("serve", "--tls-dir", tmp_path, "--policy", path, "--listen", LOOPBACK)

    assert outcome.code == 2
    assert "spec.tests[0].expect.outcome" in outcome.errors
