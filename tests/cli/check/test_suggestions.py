"""Mistyped commands, policy fields and node names are met with the right ones."""

import json
from pathlib import Path

import pytest

from placement_planner.cli.capacity import capacity
from tests.support.objects.builders import make_node_object
from tests.support.objects.moves import running
from tests.support.programs.cluster_files import as_list, documents
from tests.support.programs.command import Run
from webhook import __version__
from webhook.cli.inputs.clusters import complete_node
from webhook.kube.release import NEWEST, OLDEST


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("chek",), "Error: No such command 'chek'. Did you mean 'check'?"),
        (("policy", "shwo"), "Error: No such command 'shwo'. Did you mean 'show'?"),
        (("audit", "sumary"), "Error: No such command 'sumary'. Did you mean 'summary'?"),
        (("certs", "rotat"), "Error: No such command 'rotat'. Did you mean 'rotate'?"),
        (("zzz",), "Error: No such command 'zzz'."),
    ],
)
def test_a_mistyped_command_gets_the_one_that_is_meant(run: Run, arguments: tuple[str, ...], error: str) -> None:
    outcome = run(*arguments)

    assert outcome.code == 2
    assert outcome.errors.splitlines()[-1] == error


@pytest.mark.parametrize(
    ("spec", "place", "meant"),
    [
        ({"mod": "shadow"}, "spec.mod", "mode"),
        ({"workloadType": {}}, "spec.workloadType", "workloadTypes"),
        (
            {"workloadTypes": {"training": {"nodeUsge": {"allow": ["a"]}}}},
            "spec.workloadTypes.training.nodeUsge",
            "nodeUsage",
        ),
        ({"nodeTemplates": [{"name": "a", "capacty": {}}]}, "spec.nodeTemplates[0].capacty", "capacity"),
        ({"placementCheck": {"Mode": "deny"}}, "spec.placementCheck.Mode", "mode"),
    ],
)
def test_a_mistyped_policy_field_gets_the_one_that_is_meant(run: Run, spec: object, place: str, meant: str) -> None:
    policy = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy", "spec": spec}

    outcome = run("policy", "check", "-", stdin=json.dumps(policy))

    wanted = f"{place}: Forbidden: unknown field; did you mean {meant}? `placement-webhook policy schema` lists"
    assert outcome.code == 2
    assert wanted in outcome.errors


def test_a_field_like_no_other_has_no_proposal(run: Run) -> None:
    policy = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy", "spec": {"zzzz": 1}}

    assert (
        "unknown field; `placement-webhook policy schema` lists"
        in run("policy", "check", "-", stdin=json.dumps(policy)).errors
    )


def test_show_prints_each_policy_of_a_file_with_all_defaults(run: Run, tmp_path: Path) -> None:
    """Also of a file of objects for a cluster, without a default policy."""
    file = tmp_path / "policies.yaml"
    head = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"
    selector = "spec: {namespaceSelector: {matchLabels: {team: a}}, mode: shadow}\n"
    file.write_text(f"{head}metadata: {{name: a}}\n{selector}---\n{head}metadata: {{name: b}}\n{selector}")

    outcome = run("policy", "show", file)

    shown = documents(outcome.output)
    assert (outcome.code, outcome.errors) == (0, "")
    assert [(each["metadata"]["name"], each["spec"]["mode"]) for each in shown] == [("a", "shadow"), ("b", "shadow")]
    assert all("workloadTypes" in each["spec"] for each in shown)
    assert run("policy", "show", file, "--policy", file).code == 2


def test_version_has_what_is_modelled(run: Run) -> None:
    text, found = run("version"), json.loads(run("version", "-o", "json").output)

    assert text.output.splitlines()[0] == f"placement-webhook {__version__}"
    assert found["version"] == __version__
    assert found["kubernetes"] == f"1.{OLDEST} to 1.{NEWEST}"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.json"
    nodes = [make_node_object(name, capacity={"nvidia.com/gpu": 8}) for name in ("gpu-1", "gpu-2")]
    file.write_text(as_list(*nodes, running("a", "gpu-1", 8), running("b", "gpu-2", 4)))
    return file


@pytest.mark.parametrize(("node", "code"), [("gpu-2", 3), ("gpu-1", 3)])
def test_a_drain_whose_pods_fit_nowhere_is_code_3(run: Run, cluster: Path, node: str, code: int) -> None:
    assert run("capacity", "--drain", node, "--cluster", cluster).code == code


def test_a_drain_whose_pods_fit_is_code_0(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    nodes = [make_node_object(name, capacity={"nvidia.com/gpu": 8}) for name in ("gpu-1", "gpu-2")]
    file.write_text(as_list(*nodes, running("b", "gpu-2", 4)))

    assert run("capacity", "--drain", "gpu-2", "--cluster", file).code == 0


@pytest.mark.parametrize(("typed", "names"), [("", ["gpu-1", "gpu-2"]), ("gpu-2", ["gpu-2"]), ("x", [])])
def test_node_names_are_completed(cluster: Path, typed: str, names: list[str]) -> None:
    context = capacity.make_context("capacity", ["--cluster", str(cluster)], resilient_parsing=True)
    (drain,) = [each for each in capacity.params if each.name == "drain"]

    assert [each.value for each in drain.shell_complete(context, typed)] == names


def test_nodes_of_a_cluster_that_cannot_be_read_are_not_completed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    context = capacity.make_context("capacity", ["--kubeconfig", str(tmp_path / "no")], resilient_parsing=True)

    assert complete_node(context, capacity.params[0], "") == []
    assert capfd.readouterr() == ("", "")
