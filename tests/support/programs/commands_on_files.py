"""Commands that read manifests."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.objects.builders import make_node_object
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Outcome

COMMANDS = {
    "check": ("check", "-o", "json"),
    "capacity": ("capacity", "--until", "1", "-o", "json"),
    "mutate": ("mutate", "-o", "json"),
}


@pytest.fixture
def cluster_file(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n", capacity={"nvidia.com/gpu": 8})))
    return file


def pods_of(outcome: Outcome) -> list[str]:
    """Return NAMESPACE/NAME of the pods in the JSON output of a command."""
    found = []
    for line in lines(outcome.output):
        metadata = line.get("metadata", {})
        found.append(line.get("pod") or f"{metadata.get('namespace', 'default')}/{metadata['name']}")
    return found


@pytest.fixture(params=[*COMMANDS.values()], ids=[*COMMANDS])
def command(request: pytest.FixtureRequest, cluster_file: Path) -> tuple[Any, ...]:
    return (*request.param, "--cluster", cluster_file)
