"""`policy check` on a live cluster: the schedulers that a policy names and that do not run there."""

from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import make_pod
from tests.support.programs.command import Run

_HEAD = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"
_TYPES = "workloadTypes: {t: {nodeUsage: {allow: [a]}, schedulerName: mine}}"
_NO_SIGN = "no Lease and no bound pod names it. Without it, the pod stays Pending"
_PROFILE = "; a new profile of kube-scheduler has its first sign with its first pod"


_NO_VOLCANO = f"scheduler volcano: no sign that it runs: no API group scheduling.volcano.sh, {_NO_SIGN}"
_NO_KAI = f"scheduler kai-scheduler: no sign that it runs: no API group scheduling.run.ai or kai.scheduler, {_NO_SIGN}"
_NO_OTHER = f"scheduler mine: no sign that it runs: {_NO_SIGN}{_PROFILE}"


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        pytest.param(
            "{}",
            [f"spec.workloadTypes.training.schedulerName: {_NO_VOLCANO}"],
            id="the built-in policy, not what it only allows",
        ),
        pytest.param(
            f"{{{_TYPES}, allowedSchedulers: [mine, kai-scheduler, default-scheduler]}}",
            [f"spec.workloadTypes.t.schedulerName: {_NO_OTHER}", f"spec.allowedSchedulers[1]: {_NO_KAI}"],
            id="each of the file, once",
        ),
    ],
)
def test_schedulers_without_a_sign_are_named_with_their_field(
    cluster: Cluster, run: Run, tmp_path: Path, spec: str, warnings: list[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"{_HEAD}spec: {spec}\n")

    outcome = run("policy", "check", file, "--kubeconfig", cluster.control_plane.kubeconfig)

    assert (outcome.code, outcome.errors.splitlines()) == (0, [f"Warning: {file}: {each}" for each in warnings])
    assert run("policy", "check", file).errors == ""


def test_scheduler_of_a_bound_pod_is_not_named(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"{_HEAD}spec: {{}}\n")
    cluster.make_node("a")
    cluster.wait_bound(cluster.create(make_pod("bound").scheduler("volcano")).object)

    outcome = run("policy", "check", file, "--kubeconfig", cluster.control_plane.kubeconfig)

    assert (outcome.code, outcome.errors) == (0, "")
