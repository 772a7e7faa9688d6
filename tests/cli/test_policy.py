"""`policy`: check, schema, show."""

from pathlib import Path

import orjson
import pytest

from tests.support.command import Run
from webhook.policy.document import PolicyDocument
from webhook.policy.loader import built_in_policy, parse_policy

HEAD = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"
SHIPPED = Path(__file__).parents[2] / "deploy" / "base" / "policy.yaml"


def test_a_valid_policy_is_reported_with_its_identity(run: Run) -> None:
    outcome = run("policy", "check", SHIPPED)

    identity = built_in_policy().identity
    assert (outcome.code, outcome.errors) == (0, "")
    assert outcome.output == f"{SHIPPED}: valid: {identity}, workload types training, inference\n"


def test_a_bad_policy_is_code_2_with_a_line_for_each_error(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "spec: {keyDomain: X, binPacking: {weight: 0}, new: 1}\n")

    outcome = run("policy", "check", path)

    assert (outcome.code, outcome.output) == (2, "")
    lines = outcome.errors.splitlines()
    assert [line.split(": ")[2] for line in lines] == ["spec.keyDomain", "spec.binPacking.weight", "spec.new"]
    assert all(line.startswith(f"Error: {path}: ") for line in lines)


@pytest.mark.parametrize(
    ("command", "argument"), [(("check",), "FILE"), (("show", "--policy"), "--policy")], ids=["check", "show"]
)
def test_a_missing_policy_is_code_2(run: Run, tmp_path: Path, command: tuple[str, ...], argument: str) -> None:
    outcome = run("policy", *command, tmp_path / "none.yaml")

    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors.startswith(f"Error: {argument}: Invalid value: ")
    assert outcome.errors.endswith('none.yaml"; cannot be read: No such file or directory\n')


def test_the_schema_is_that_of_the_document(run: Run) -> None:
    outcome = run("policy", "schema")

    assert (outcome.code, outcome.errors) == (0, "")
    assert orjson.loads(outcome.output) == PolicyDocument.model_json_schema(by_alias=True)


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_the_built_in_policy_is_printed_in_full_and_can_be_read_again(run: Run, output: str) -> None:
    outcome = run("policy", "show", "-o", output)

    shown = parse_policy(outcome.output, "shown")
    assert outcome.code == 0
    assert shown.document == built_in_policy().document
    assert shown.identity == built_in_policy().identity
    assert "allowedNamespaces" in outcome.output


def test_a_shown_policy_begins_with_its_identity(run: Run) -> None:
    assert run("policy", "show").output.startswith(f"# {built_in_policy().identity}\n")


def test_a_policy_file_is_shown_with_its_defaults(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "metadata: {name: mine}\nspec: {keyDomain: example.com}\n")

    outcome = run("policy", "show", "--policy", path, "-o", "json")

    shown = orjson.loads(outcome.output)
    assert (shown["metadata"]["name"], shown["spec"]["keyDomain"]) == ("mine", "example.com")
    assert set(shown["spec"]["workloadTypes"]) == {"training", "inference"}
