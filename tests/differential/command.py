"""Run `placement-webhook check -o json` with files of pods and a cluster, as users do."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.differential.profiles import CONFIGURATION
from tests.differential.random_objects.constraints import Object
from tests.support.programs.command import run_here
from tests.support.programs.messages import first_sentence
from webhook.placement.framework.result import Placement


def predicted_by_command(
    folder: Path, cluster: Sequence[Object], pods: Sequence[Object], configuration: Object = CONFIGURATION
) -> list[Placement]:
    """Return the answers for `pods`, in their order; `cluster` is written as `kubectl get -A -o json` prints it."""
    arguments = ["check", "--as-written", "-o", "json"]
    for flag, content in (
        ("--cluster", {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": cluster}),
        ("--filename", {"apiVersion": "v1", "kind": "List", "items": pods}),
        ("--scheduler-config", configuration),
    ):
        file = folder / f"{flag.strip('-')}.json"
        file.write_text(json.dumps(content, indent=4))
        arguments += [flag, str(file)]
    run = run_here(*arguments)
    assert run.code in (0, 3, 4), run.errors
    return [_placement(json.loads(line)) for line in run.output.splitlines()]


def _placement(result: Object) -> Placement:
    nodes = result["nodes"]
    return Placement(
        result["verdict"],
        result["node"],
        nodes["total"],
        nodes["feasible"],
        first_sentence(result["message"]),
        result["scores"],
        tuple(result["unmodelled"]),
    )
