"""`policy`: check a file, run its test cases, print the schema, print or export a policy."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, cast

import click
import orjson

from webhook.admission.policy_cases import CaseResult, cases_of_others, parse_tested_policies, run_cases
from webhook.cli.inputs.clusters import live_options
from webhook.cli.inputs.files import FILE, check_standard_input, output_choice, output_option, place_of, read_text
from webhook.cli.inputs.policies import policies_option, read_policies
from webhook.cli.output.program import FileCommand, SuggestingGroup
from webhook.cli.output.terminal import echo, echo_json, echo_lines, warn
from webhook.cli.output.yaml_text import to_yaml
from webhook.documents.field import InvalidInput
from webhook.mutation.exported import LEFT_TO_WEBHOOK, RELEASES
from webhook.mutation.exported import export as exported_of
from webhook.policy.loader import PlacedPolicy, built_in_policy, parse_policies
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import has_default, policy_set
from webhook.policy.policy_set import PolicySet
from webhook.policy.spec.document import PolicyDocument

_FAILED = 6
_MOST_SHOWN = 2000


@click.group(cls=SuggestingGroup)
def policy() -> None:
    """Check, test, show or export policies, or print their JSON schema."""


@policy.command()
@click.argument("files", type=FILE, metavar="FILE…", nargs=-1, required=True)
@live_options
@click.pass_context
def check(ctx: click.Context, files: tuple[str, ...], kubeconfig: Path | None, context: str | None) -> None:
    """Check that each FILE is a valid PlacementPolicy and its test cases pass. If not, print all errors; exit with 2.

    FILE can have several policies for --policy or as objects: a warning names those that would never be in force.
    FILE can be - for standard input. With --kubeconfig or --context, also compare the policies of each file with that
    cluster, as `doctor --policy FILE --policy-only` does, with its exit codes: 3 for warnings, 4 for errors.

    \b
    Examples:
      placement-webhook policy check policy.yaml
      placement-webhook policy show | placement-webhook policy check -
    """
    check_standard_input(*(("FILE", file) for file in files))
    valid: list[PlacedPolicy] = []
    wrong: set[str] = set()
    for file in files:
        try:
            valid += _read_valid(file)
        except InvalidInput as error:
            wrong.add(place_of(file))
            for each in error.errors:
                echo(f"Error: {each}", err=True)
    misplaced = [*cases_of_others(valid)]
    wrong |= {one.file for one, _ in misplaced}
    for one in valid:
        if one.file not in wrong:
            types = ", ".join(one.policy.spec.workload_types)
            echo(f"{one.file}: valid: {one.policy.identity}, workload types {types}")
    _warn_of_conflicts([each.policy for each in valid])
    for _, misplacement in misplaced:
        echo(f"Error: {misplacement}", err=True)
    if wrong and len(files) > 1:
        echo(f"{len(wrong)} of {len(files)} files are not valid", err=True)
    code = 2 if wrong else 0
    if code == 0 and (kubeconfig is not None or context is not None):
        live = [("--kubeconfig", kubeconfig), ("--context", context)]
        options = [str(each) for option in live if option[1] is not None for each in option]
        for file in dict.fromkeys(each.file for each in valid):
            code = max(code, _compared(ctx, [each.policy for each in valid if each.file == file], options))
    ctx.exit(code)


def _compared(ctx: click.Context, policies: list[Policy], options: list[str]) -> int:
    """Compare the policies of a file with the cluster by the command `doctor`, and return its exit code."""
    if all(each.spec.namespace_selector is not None for each in policies):
        policies = [built_in_policy(), *policies]
    root = ctx.find_root()
    doctor = cast("click.Group", root.command).get_command(ctx, "doctor")
    assert doctor is not None  # noqa: S101 - the root has it
    with NamedTemporaryFile(suffix=".yaml") as file:
        shown = [each.document.model_dump(mode="json", by_alias=True) for each in policies]
        file.write(b"\n---\n".join(map(orjson.dumps, shown)))
        file.flush()
        # Without the parent, the command would keep a help option without -h.
        arguments = [*options, "--policy-only", "--policy", file.name]
        return int(doctor.main(arguments, "doctor", standalone_mode=False, parent=root))


def _read_valid(file: str) -> list[PlacedPolicy]:
    """Return the policies of the file.

    They can be in force together, at least as PlacementPolicy objects of a cluster.
    """
    found = parse_tested_policies(read_text(file, "FILE"), place_of(file))
    policy_set(found, built_in_policy())
    if not has_default(found):
        text = "every policy has a namespaceSelector: right for PlacementPolicy objects, but --policy needs a default"
        echo(f"{found[0].file}: {text}", err=True)
    return found


def _warn_of_conflicts(policies: list[Policy]) -> None:
    selecting = [each for each in policies if each.spec.namespace_selector is not None]
    for warning in PolicySet.of(built_in_policy(), selecting).conflicts().values():
        warn(warning)


@policy.command()
@click.argument("files", type=FILE, metavar="FILE…", nargs=-1, required=True)
@output_option
@click.pass_context
def test(ctx: click.Context, files: tuple[str, ...], output: str) -> None:
    """Run the test cases (`spec.tests`) of each PlacementPolicy of each FILE, without a cluster.

    Exit with 6 if a case fails, with 2 if a file is not valid. FILE can be - for standard input.

    \b
    Examples:
      placement-webhook policy test policy.yaml
      placement-webhook policy show | placement-webhook policy test -
    """
    check_standard_input(*(("FILE", file) for file in files))
    read = [parse_policies(read_text(file, "FILE"), place_of(file)) for file in files]
    if misplaced := [*cases_of_others([each for of_file in read for each in of_file])]:
        raise InvalidInput([error for _, error in misplaced])
    has_failed = False
    for of_file in read:
        for each in of_file:
            results = run_cases(each.policy)
            has_failed = has_failed or any(result.differences for result in results)
            if output == "json":
                for result in results:
                    echo_json(_case_to_json(each, result, is_only=len(of_file) == 1))
            else:
                _print_cases(each.place, results)
    ctx.exit(_FAILED if has_failed else 0)


def _case_to_json(tested: PlacedPolicy, result: CaseResult, *, is_only: bool) -> dict[str, Any]:
    differences = [{"path": each.path, "expected": each.expected, "got": each.got} for each in result.differences]
    name = {} if is_only else {"policy": tested.policy.name}
    passed = {"test": result.name, "passed": not differences, "differences": differences}
    return {"file": tested.file, **name, **passed}


def _print_cases(place: str, results: Sequence[CaseResult]) -> None:
    for result in results:
        outcome, colour = ("FAILED", "red") if result.differences else ("passed", None)
        echo(f"{outcome}  {result.name}", fg=colour)
        for each in result.differences:
            echo(f"        {each.path}")
            echo(f"          - expected {_shown(each.expected)}")
            echo(f"          + got      {_shown(each.got)}")
    passed = sum(not each.differences for each in results)
    echo(f"{place}: {passed} of {len(results)} test cases passed" if results else f"{place}: no test cases")


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"


@policy.command()
def schema() -> None:
    """Print the JSON schema of a PlacementPolicy, for editors and other validators."""
    echo_json(PolicyDocument.model_json_schema(), indent=True)


@policy.command()
@click.argument("files", type=FILE, metavar="[FILE…|-]", nargs=-1)
@policies_option
@output_choice(["yaml", "json"])
def show(files: tuple[str, ...], policies: tuple[Path, ...], output: str) -> None:
    """Print the policies of each FILE with all defaults; without FILE and --policy, the built-in policy.

    With --policy, the policies must be able to be in force together, and the default policy comes first.

    \b
    Examples:
      placement-webhook policy show
      placement-webhook policy show policy.yaml
    """
    check_standard_input(*(("FILE", file) for file in files))
    if files and policies:
        raise click.UsageError("FILE and --policy are mutually exclusive; give one of them.")
    found = [each.policy for file in files for each in parse_policies(read_text(file, "FILE"), place_of(file))]
    for index, each in enumerate(found or read_policies(policies)):
        document = each.document.model_dump(mode="json", by_alias=True)
        if output == "json":
            echo_json(document, indent=True)
            continue
        if index:
            echo("---")
        echo(f"# {each.identity}")
        echo_lines(to_yaml(document))


@policy.command(cls=FileCommand)
@policies_option
@click.option(
    "--release",
    type=click.Choice([f"1.{each}" for each in RELEASES]),
    default=f"1.{RELEASES[0]}",
    show_default=True,
    help="The release of the API server.",
)
@click.option("--strict", is_flag=True, help="Exit with 2 if a policy cannot be exported.")
@output_choice(["yaml", "json"])
@click.pass_context
def export(ctx: click.Context, policies: tuple[Path, ...], release: str, strict: bool, output: str) -> None:
    """Print the policies as MutatingAdmissionPolicies, which need no webhook.

    The API server then injects node pools, products, tolerations, bin-packing and scheduler into pods, also while no
    replica of the webhook answers. Standard error and the head of the YAML name everything that is left to the webhook.

    \b
    Examples:
      placement-webhook policy export --policy policy.yaml | kubectl apply -f -
      placement-webhook policy export --release 1.35
    """
    found = exported_of(read_policies(policies), int(release.removeprefix("1.")))
    if strict and found.left_out:
        for each in found.left_out:
            echo(f"Error: {each}", err=True)
        ctx.exit(2)
    left = [*map(str, (*found.left_out, *found.without_effect)), *LEFT_TO_WEBHOOK]
    for line in left:
        echo(f"left to the webhook: {line}", err=True)
    if output == "json":
        echo_json({"apiVersion": "v1", "kind": "List", "items": found.objects}, indent=True)
        return
    echo("# Left to the webhook:")
    for line in left:
        echo(f"# - {line}")
    for obj in found.objects:
        echo("---")
        echo_lines(to_yaml(obj))
