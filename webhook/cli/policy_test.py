"""`policy test`: run the test cases of policies."""

from collections.abc import Sequence
from typing import Any

import click
import orjson

from webhook.cli.files import FILE, STANDARD_INPUT, check_standard_input, read_text
from webhook.cli.terminal import echo, echo_json
from webhook.policy.policy_documents import PlacedPolicy, parse_policies
from webhook.policy_cases import CaseResult, run_cases

_FAILED = 6
_MOST_SHOWN = 2000


@click.command()
@click.argument("files", type=FILE, metavar="FILE…", nargs=-1, required=True)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
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
    places = ["<stdin>" if file == STANDARD_INPUT else file for file in files]
    read = [parse_policies(read_text(file, "FILE"), place) for file, place in zip(files, places, strict=True)]
    has_failed = False
    for of_file in read:
        for each in of_file:
            results = run_cases(each.policy)
            has_failed = has_failed or any(result.differences for result in results)
            if output == "json":
                for result in results:
                    echo_json(_json(each, result, is_only=len(of_file) == 1))
            else:
                _print(each.place, results)
    ctx.exit(_FAILED if has_failed else 0)


def _json(tested: PlacedPolicy, result: CaseResult, *, is_only: bool) -> dict[str, Any]:
    differences = [{"path": each.path, "expected": each.expected, "got": each.got} for each in result.differences]
    name = {} if is_only else {"policy": tested.policy.name}
    passed = {"test": result.name, "passed": not differences, "differences": differences}
    return {"file": tested.file, **name, **passed}


def _print(place: str, results: Sequence[CaseResult]) -> None:
    for result in results:
        echo(f"{'FAILED' if result.differences else 'passed'}  {result.name}", fg="red" if result.differences else "")
        for each in result.differences:
            echo(f"        {each.path}")
            echo(f"          - expected {_shown(each.expected)}")
            echo(f"          + got      {_shown(each.got)}")
    passed = sum(not each.differences for each in results)
    echo(f"{place}: {passed} of {len(results)} test cases passed" if results else f"{place}: no test cases")


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
