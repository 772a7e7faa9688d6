"""`policy export`: the objects on standard output, what is left to the webhook on standard error."""

from pathlib import Path

import orjson
import yaml

from tests.support.admission import policy_with
from tests.support.programs.command import Run

_CANARY = """
apiVersion: placement.maip.mxsf.io/v1alpha1
kind: PlacementPolicy
metadata: {name: canary}
spec: {canaryPercent: 10}
"""


def test_the_built_in_policy_is_printed_as_yaml_with_its_limits_in_front(run: Run) -> None:
    result = run("policy", "export", "--strict")

    assert result.code == 0
    left = [each.removeprefix("left to the webhook: ") for each in result.errors.splitlines()]
    assert any("spec.workloadTypes.inference.spread: no spreading" in each for each in left)
    assert any("pods with gpu-memory, " in each for each in left)
    assert result.output.splitlines()[: len(left) + 2] == [
        "# Left to the webhook:",
        *(f"# - {each}" for each in left),
        "---",
    ]
    kinds = [each["kind"] for each in yaml.load_all(result.output, yaml.CSafeLoader)]
    assert kinds == ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]
    assert policy_with().identity in result.output


def test_json_is_one_list(run: Run) -> None:
    document = orjson.loads(run("policy", "export", "-o", "json", "--release", "1.34").output)

    assert document["kind"] == "List"
    assert document["items"][0]["apiVersion"] == "admissionregistration.k8s.io/v1beta1"


def test_a_field_that_cannot_be_exported_is_named(run: Run, tmp_path: Path) -> None:
    (file := tmp_path / "policy.yaml").write_text(_CANARY)

    result = run("policy", "export", "--policy", file)

    assert result.code == 0
    assert ": spec.canaryPercent: CEL has no hash" in result.errors
    assert "# - canary@" in result.output


def test_strict_prints_nothing_of_a_policy_that_cannot_be_exported(run: Run, tmp_path: Path) -> None:
    (file := tmp_path / "policy.yaml").write_text(_CANARY)

    result = run("policy", "export", "--strict", "--policy", file)

    assert result.code == 2
    assert result.output == ""
    assert result.errors.startswith("Error: canary@")
