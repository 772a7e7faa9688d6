"""`console` and `report` on the command line: what is wrong with the input is one line, exit code 2."""

import socket
from pathlib import Path

import pytest

from tests.console.served import SAMPLE
from tests.support.programs.command import Outcome, run_here


def refused(done: Outcome) -> str:
    """Return the one line of the error."""
    assert (done.code, done.output) == (2, "")
    (line,) = done.errors.splitlines()
    return line


@pytest.mark.parametrize("address", ["0.0.0.0:8090", "192.0.2.1:8090", ":8090", "console.example:8090"])
def test_the_console_listens_on_loopback_alone(address: str) -> None:
    line = refused(run_here("console", "--cluster", SAMPLE, "--listen", address))

    assert line.startswith("Error: --listen: Invalid value: ")
    assert "kubectl port-forward" in line


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(run_here("console", "--cluster", SAMPLE, "--listen", f"127.0.0.1:{port}"))

    assert f'"127.0.0.1:{port}"; cannot listen on it: ' in line
    assert line.endswith("choose another port")


@pytest.mark.parametrize("command", [("console",), ("report", "-o", "report.html")])
def test_a_cluster_file_that_is_none_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")

    line = refused(run_here(*command, "--cluster", file))

    assert "--cluster: Invalid value" in line
    assert "holds no Node" in line


def test_one_cluster_can_be_named() -> None:
    done = run_here("console", "--cluster", SAMPLE, "--in-cluster")

    assert done.code == 2
    assert done.errors.splitlines()[-1] == (
        "Error: --in-cluster names the cluster: leave --cluster, --kubeconfig and --context out."
    )


def test_a_pod_without_a_service_account_cannot_be_in_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    assert "--in-cluster" in refused(run_here("console", "--in-cluster", "--policy", "deploy/base/policy.yaml"))
