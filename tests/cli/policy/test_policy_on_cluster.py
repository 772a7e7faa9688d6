"""`policy check` on a live cluster compares the policy with it by the checks of doctor."""

from pathlib import Path

from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.command import Run

_HEAD = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"
_TYPE = "t: {nodeUsage: {allow: [a]}, schedulerName: mine, priorityClassName: high}"


def test_a_policy_is_compared_with_the_cluster(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    """The checks of the installation do not run."""
    file = tmp_path / "policy.yaml"
    file.write_text(f"{_HEAD}spec: {{allowedSchedulers: [mine], workloadTypes: {{{_TYPE}}}}}\n")
    live = ("--kubeconfig", cluster.control_plane.kubeconfig)

    outcome = run("policy", "check", file, *live)
    of_doctor = run("doctor", "--policy", file, "--policy-only", *live)

    assert outcome.code == of_doctor.code == 4
    assert outcome.output.partition("\n")[2] == of_doctor.output
    titles = [line for line in of_doctor.output.splitlines() if line.startswith("error")]
    assert titles[:2] == [
        "error [schedulers] policy: spec.workloadTypes.t.schedulerName",
        "error [priority-classes] policy: spec.workloadTypes.t.priorityClassName",
    ]
    assert "[installed]" not in of_doctor.output
    assert run("policy", "check", file).code == 0


def test_a_scheduler_of_a_bound_pod_is_not_named(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"{_HEAD}spec: {{}}\n")
    cluster.make_nodes(make_node_object("a"))
    cluster.wait_bound(cluster.create(make_pod("bound").scheduler("volcano")).object)

    outcome = run("policy", "check", file, "--kubeconfig", cluster.control_plane.kubeconfig)

    assert "[schedulers]" not in outcome.output


def test_each_file_is_compared_alone_and_so_is_standard_input(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    """A file with policies of namespaces only is compared with the built-in policy for the others."""
    files = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for file in files:
        file.write_text(f"{_HEAD}metadata: {{name: p}}\nspec: {{}}\n")
    selecting = f"{_HEAD}metadata: {{name: q}}\nspec: {{namespaceSelector: {{matchLabels: {{team: a}}}}}}\n"
    live = ("--kubeconfig", cluster.control_plane.kubeconfig)

    several = run("policy", "check", *files, *live)
    piped = run("policy", "check", "-", *live, stdin=selecting)

    assert several.output.count("error [schedulers]") == 2
    assert "Error: " not in several.errors + piped.errors
    assert "[schedulers]" in piped.output
    assert "namespaceSelector has no effect" not in piped.output + piped.errors
