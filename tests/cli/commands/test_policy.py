"""`policy`: check, test, schema, show."""

from pathlib import Path

import orjson
import pytest

from placement_doctor.cli.doctor import doctor
from tests.support.objects.builders import make_node_object
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import fake_api
from webhook.cli.commands.policy import _shown
from webhook.documents.documents import parse
from webhook.policy.loader import built_in_policy, parse_policy
from webhook.policy.spec.document import PolicyDocument

HEAD = "apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\n"
SHIPPED = Path(__file__).parents[3] / "deploy" / "base" / "policy.yaml"


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
    assert all(line.startswith(f"Error: {path}:3: ") for line in lines)


WRONG = """\
apiVersion: placement.maip.mxsf.io/v1alpha1
kind: PlacementPolicy
metadata: {name: production}
spec:
  # The errors are in the order of the lines, whatever checks find them.
  accelerators:
    - card: nvidia.com/gpu
      resources: [nvidia.com/gpu]
    - card: gpu
      resources:
        - nvidia.com/gpu
        - 7
  keyDomain: X
  workloadTypes:
    training:
      nodeUsage:
        allow: [training]
        prefer:
          hybrid: 100
      schedulerName: nobody
    inference: {}
  new: 1
"""


def test_each_error_names_the_line_of_its_field_or_of_the_one_around_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(WRONG)

    outcome = run("policy", "check", path)

    found = [line.removeprefix(f"Error: {path}:").split(": ")[:2] for line in outcome.errors.splitlines()]
    assert outcome.code == 2
    assert {
        ("9", "spec.accelerators[1].card"),
        ("12", "spec.accelerators[1].resources[1]"),
        ("13", "spec.keyDomain"),
        ("21", "spec.workloadTypes.inference.nodeUsage"),
        ("22", "spec.new"),
    } <= {tuple(each) for each in found}
    assert [int(line) for line, _ in found] == sorted(int(line) for line, _ in found)


def test_all_files_are_checked_and_one_invalid_file_is_code_2(run: Run, tmp_path: Path) -> None:
    wrong, absent = tmp_path / "wrong.yaml", tmp_path / "absent.yaml"
    wrong.write_text(HEAD + "spec: {keyDomain: X}\n")

    outcome = run("policy", "check", wrong, SHIPPED, absent, "-", stdin=HEAD)

    identity = built_in_policy().identity
    valid = f"valid: {identity}, workload types training, inference"
    assert (outcome.code, outcome.output) == (2, f"{SHIPPED}: {valid}\n<stdin>: {valid}\n")
    first, second, last = outcome.errors.splitlines()
    assert first.startswith(f"Error: {wrong}:3: spec.keyDomain: Invalid value: ")
    assert second == f'Error: FILE: Invalid value: "{absent}"; cannot be read: No such file or directory'
    assert last == "2 of 4 files are not valid"


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
    shown = orjson.loads(outcome.output)
    assert shown == PolicyDocument.model_json_schema(by_alias=True)
    assert {"apiVersion", "kind", "metadata", "spec"} <= {*shown["properties"]}


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


CASES = """\
  tests:
  - name: typed
    annotations: {maip.mxsf.io/workload-type: training}
    expect: {outcome: Patched}
  - name: untyped
    expect: {outcome: %s}
"""


def test_test_cases_are_run(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "spec:\n" + CASES % "Bypassed")

    outcome = run("policy", "test", path)

    assert (outcome.code, outcome.errors) == (0, "")
    assert outcome.output == f"passed  typed\npassed  untyped\n{path}: 2 of 2 test cases passed\n"
    assert run("policy", "check", path).code == 0


def test_a_policy_without_test_cases_passes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "spec: {}\n")

    outcome = run("policy", "test", path)

    assert (outcome.code, outcome.output, outcome.errors) == (0, f"{path}: no test cases\n", "")


def test_a_test_case_that_fails_is_code_6_with_the_difference(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "spec:\n" + CASES % "Denied")

    outcome, as_json = run("policy", "test", path), run("policy", "test", "-o", "json", path)
    check = run("policy", "check", path)

    assert (outcome.code, as_json.code, check.code) == (6, 6, 2)
    assert outcome.output.splitlines() == [
        "passed  typed",
        "FAILED  untyped",
        "        outcome",
        "          - expected Denied",
        "          + got      Bypassed: no workload type",
        f"{path}: 1 of 2 test cases passed",
    ]
    assert [orjson.loads(line) for line in as_json.output.splitlines()] == [
        {"file": str(path), "test": "typed", "passed": True, "differences": []},
        {
            "file": str(path),
            "test": "untyped",
            "passed": False,
            "differences": [{"path": "outcome", "expected": "Denied", "got": "Bypassed: no workload type"}],
        },
    ]
    assert "spec.tests[1].expect.outcome" in check.errors


def test_a_policy_that_is_not_valid_has_no_test_results(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + "spec: {keyDomain: X}\n")

    outcome = run("policy", "test", path)

    assert (outcome.code, outcome.output) == (2, "")


_DOCUMENT = """\
apiVersion: placement.maip.mxsf.io/v1alpha1
kind: PlacementPolicy
metadata: {{name: {name}}}
spec: {{namespaceSelector: {{matchLabels: {{team: a}}}}, priority: {priority}}}
---
"""


@pytest.mark.parametrize(
    ("priorities", "warned"),
    [pytest.param((0, 0), ["b"], id="equal"), pytest.param((0, 1), [], id="different")],
)
def test_check_warns_of_a_policy_that_is_never_in_force(
    tmp_path: Path, run: Run, priorities: tuple[int, int], warned: list[str]
) -> None:
    file = tmp_path / "policies.yaml"
    documents = (_DOCUMENT.format(name=name, priority=each) for name, each in zip("ab", priorities, strict=True))
    file.write_text("".join(documents) + HEAD)
    result = run("policy", "check", file)
    assert result.code == 0
    assert [line.split("@")[0].rpartition(" ")[2] for line in result.output.splitlines()] == ["a", "b", "default"]
    assert [line.split(": ")[1] for line in result.errors.splitlines()] == warned


def test_check_accepts_objects_for_some_namespaces_and_says_that_the_default_is_missing(
    tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "policies.yaml"
    file.write_text("".join(_DOCUMENT.format(name=name, priority=each) for each, name in enumerate("ab")))
    result = run("policy", "check", file)
    assert result.code == 0
    text = "every policy has a namespaceSelector: right for PlacementPolicy objects, but --policy needs a default"
    assert result.errors == f"{file}: {text}\n"


def test_check_takes_a_single_policy_for_that_of_all_namespaces(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(_DOCUMENT.format(name="a", priority=0))
    result = run("policy", "check", file)
    assert (result.code, result.errors) == (0, "")


def test_check_rejects_documents_that_cannot_be_in_force_together(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "policies.yaml"
    file.write_text(f"{HEAD}---\n{HEAD}metadata: {{name: other}}\n")
    result = run("policy", "check", file)
    assert (result.code, result.output) == (2, "")
    assert f"{file}, document 2 (other): spec.namespaceSelector: Required value" in result.errors


def test_the_test_cases_of_each_document_are_run(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    team = "metadata: {name: a}\nspec:\n  namespaceSelector: {matchLabels: {team: a}}\n"
    path.write_text(f"{HEAD}spec:\n{CASES % 'Bypassed'}---\n{HEAD}{team}{CASES % 'Denied'}")

    outcome, as_json = run("policy", "test", path), run("policy", "test", "-o", "json", path)

    assert (outcome.code, as_json.code) == (6, 6)
    totals = [line for line in outcome.output.splitlines() if "test cases" in line]
    assert totals == [
        f"{path}, document 1: 2 of 2 test cases passed",
        f"{path}, document 2 (a): 1 of 2 test cases passed",
    ]
    lines = [orjson.loads(line) for line in as_json.output.splitlines()]
    assert [(each["file"], each["policy"], each["passed"]) for each in lines] == [
        (str(path), "default", True),
        (str(path), "default", True),
        (str(path), "a", True),
        (str(path), "a", False),
    ]


@pytest.mark.parametrize("command", ["check", "test"])
def test_a_case_for_a_namespace_of_another_policy_is_an_error(run: Run, tmp_path: Path, command: str) -> None:
    """Also if the policies are in several files."""
    default, other = tmp_path / "policy.yaml", tmp_path / "other.yaml"
    default.write_text(f"{HEAD}spec:\n{CASES % 'Bypassed'}")
    other.write_text(f"{HEAD}metadata: {{name: b}}\nspec: {{namespaceSelector: {{}}}}\n")

    outcome = run("policy", command, default, other)

    assert outcome.code == 2
    assert 'spec.tests[0].namespace: Invalid value: "default"; policy b is in force there' in outcome.errors
    assert str(default) not in outcome.output
    if command == "check":
        assert outcome.output.startswith(f"{other}: valid: ")
        assert outcome.errors.endswith("1 of 2 files are not valid\n")


def test_check_reports_the_errors_of_each_document(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "policies.yaml"
    file.write_text("".join(_DOCUMENT.format(name=name, priority="high") for name in "ab"))
    result = run("policy", "check", file)
    assert result.code == 2
    assert [("document 1" in line, "spec.priority" in line) for line in result.errors.splitlines()] == [
        (True, True),
        (False, True),
    ]


def test_the_comparison_with_a_cluster_leaves_the_help_of_doctor_as_it_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Click keeps the help option that a command had in its first run."""
    monkeypatch.setattr(doctor, "_help_option", None)
    absent = tmp_path / "kubeconfig"
    absent.write_text("{}")

    compared = run("policy", "check", SHIPPED, "--kubeconfig", absent)

    assert "sets no current context" in compared.errors
    assert run("doctor", "-h").code == 0


def test_a_case_that_fails_in_the_first_of_two_files_is_code_6(run: Run, tmp_path: Path) -> None:
    for name, outcome in (("a", "Patched"), ("b", "Bypassed")):
        (tmp_path / name).write_text(HEAD + "spec:\n" + CASES % outcome)

    ran = run("policy", "test", tmp_path / "a", tmp_path / "b")

    assert ran.code == 6
    assert ran.output.splitlines()[-1] == f"{tmp_path / 'b'}: 2 of 2 test cases passed"


def test_shown_policies_are_documents_of_one_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(HEAD + "spec: {}\n")

    ran = run("policy", "show", tmp_path / "a", tmp_path / "a")

    assert [line for line in ran.output.splitlines() if line == "---"] == ["---"]
    assert len(parse(ran.output, "f")) == 2


def test_a_long_difference_is_cut() -> None:
    assert [len(_shown("x" * length)) for length in (2000, 2001)] == [2000, 2001]
    assert _shown("x" * 2001).endswith("x…")
    assert _shown({"a": [1]}) == '{"a":[1]}'


@pytest.mark.parametrize("selector", ["", ", namespaceSelector: {matchLabels: {team: a}}"])
def test_a_policy_is_compared_with_a_cluster_as_doctor_does(run: Run, tmp_path: Path, selector: str) -> None:
    """A policy for some namespaces is compared beside the built-in one."""
    file = tmp_path / "policy.yaml"
    training = "training: {nodeUsage: {allow: [a]}, schedulerName: mine}"
    spec = f"{{allowedSchedulers: [mine], workloadTypes: {{{training}}}{selector}}}"
    file.write_text(f"{HEAD}metadata: {{name: own}}\nspec: {spec}\n")
    with fake_api() as api:
        items = {"namespaces": [], "pods": [], "nodes": [make_node_object("n")]}
        api.objects = {f"/api/v1/{kind}": {"metadata": {}, "items": each} for kind, each in items.items()}
        api.objects |= {"/apis": {"groups": []}, "/version": {"gitVersion": "v1.37.0", "major": "1", "minor": "37"}}
        kubeconfig = api.kubeconfig(tmp_path)
        checked = run("policy", "check", file, "--kubeconfig", kubeconfig)
        beside = tmp_path / "both.yaml"
        beside.write_text(file.read_text() + (f"---\n{HEAD}" if selector else ""))
        of_doctor = run("doctor", "--policy", beside, "--policy-only", "--kubeconfig", kubeconfig)

    assert "spec.workloadTypes.training.nodeUsage.allow" in of_doctor.output
    assert checked.output.partition("\n")[2] == of_doctor.output
    assert checked.code == of_doctor.code
