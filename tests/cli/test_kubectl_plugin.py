"""`kubectl placement …`: the real kubectl finds the program of the package, and completes its arguments."""

import os
import tomllib
from pathlib import Path

import pytest

from tests.controlplane.control_plane import ControlPlane
from tests.support.programs.cluster_files import FEASIBLE, as_list, write_cluster
from tests.support.programs.programs import write_program
from webhook import cli

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
PROGRAMS: dict[str, str] = tomllib.loads(PYPROJECT.read_text())["project"]["scripts"]


class Plugin:
    """kubectl with the programs of the package in its $PATH."""

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        self._control_plane = control_plane
        for name, entry in PROGRAMS.items():
            write_program(folder, name, entry)
        self._path = os.pathsep.join([str(folder), os.environ["PATH"]])

    def __call__(self, *arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        environment = {"PATH": self._path}
        ran = self._control_plane.kubectl(*arguments, stdin=stdin, check=False, environment=environment)
        return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture
def kubectl(control_plane: ControlPlane, tmp_path: Path) -> Plugin:
    return Plugin(control_plane, tmp_path)


def test_each_program_has_its_function() -> None:
    assert set(PROGRAMS) == {"placement-webhook", "kubectl-placement", "kubectl_complete-placement"}
    assert all(callable(getattr(cli, entry.removeprefix("webhook.cli:"))) for entry in PROGRAMS.values())


@pytest.mark.control_plane
def test_kubectl_runs_the_plugin_with_its_exit_code(kubectl: Plugin, tmp_path: Path) -> None:
    cluster = str(write_cluster(tmp_path))

    code, output, _ = kubectl("placement", "check", "-f", "-", "--cluster", cluster, stdin=as_list(FEASIBLE.gpu(99)))

    assert (code, output.splitlines()[0]) == (4, "default/feasible: Infeasible")


@pytest.mark.control_plane
def test_the_cluster_is_that_of_kubectl(kubectl: Plugin) -> None:
    code, _, errors = kubectl("placement", "check", "-f", "-", stdin=as_list(FEASIBLE))

    assert code in (0, 3, 4)
    assert errors.startswith("cluster: context ")


@pytest.mark.control_plane
def test_usage_and_examples_name_the_plugin(kubectl: Plugin) -> None:
    _, usage, _ = kubectl("placement", "check", "--help")
    code, _, errors = kubectl("placement", "policy", "check")

    assert usage.startswith("Usage: kubectl placement check [OPTIONS]\n")
    assert "\n    kubectl placement check -f pod.yaml --cluster cluster.json\n" in usage
    assert "placement-webhook" not in usage
    assert (code, errors.splitlines()[0]) == (2, "Usage: kubectl placement policy check [OPTIONS] FILE…")


@pytest.mark.control_plane
def test_kubectl_lists_the_plugin(kubectl: Plugin) -> None:
    _, output, _ = kubectl("plugin", "list", "--name-only")

    assert "kubectl-placement" in output.splitlines()


@pytest.mark.control_plane
@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        pytest.param(
            ["che"], ["check\tReport which node can take a pod, and why the others cannot.", ":4"], id="command"
        ),
        pytest.param(
            ["policy", "sh"], ["show\tPrint a policy with all defaults; without --policy, the…", ":4"], id="inner"
        ),
        pytest.param(["check", "-o", "j"], ["json", ":4"], id="a value"),
        pytest.param(["check", "-f", ""], [":0"], id="a file"),
        pytest.param(
            ["check", "--contex"], ["--context\tA context of the kubeconfig; default: its…", ":4"], id="a flag"
        ),
    ],
)
def test_kubectl_completes_the_arguments(kubectl: Plugin, arguments: list[str], wanted: list[str]) -> None:
    code, output, _ = kubectl("__complete", "placement", *arguments)

    found = output.splitlines()
    assert code == 0
    assert found[-1] == wanted[-1]
    assert [line.split("\t")[0] for line in found] == [line.split("\t")[0] for line in wanted]


@pytest.mark.control_plane
def test_contexts_are_completed_from_the_kubeconfig(kubectl: Plugin, control_plane: ControlPlane) -> None:
    known = control_plane.kubectl("config", "get-contexts", "-o", "name").stdout.split()

    _, output, _ = kubectl("__complete", "placement", "check", "--context", "")

    assert [line.split("\t")[0] for line in output.splitlines()] == [*known, ":4"]
