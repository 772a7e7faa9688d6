"""Small experiments of the simulation: nodes with GPUs, and a trace as plain CSV."""

from pathlib import Path
from typing import Any

from placement_planner.simulation.arrival import Load
from placement_planner.simulation.outcome import Outcome
from placement_planner.simulation.plain_csv import read_plain_csv
from placement_planner.simulation.sweep import Experiment, Run, simulated
from tests.support.objects.builders import make_node_object
from webhook.documents.documents import Document
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_set import PolicySet

POLICIES = PolicySet(built_in_policy())
POOL = POLICIES.default.node_usage_key


def gpu_nodes(*gpus: int, labels: dict[str, str] | None = None) -> tuple[Document, ...]:
    """Return the nodes `node-0`, … with so many GPUs each, in the training pool."""
    pool = {POOL: "training"} | (labels or {})
    return tuple(
        Document("cluster", make_node_object(f"node-{number}", labels=pool, capacity={"nvidia.com/gpu": each}))
        for number, each in enumerate(gpus)
    )


def experiment(cluster: tuple[Document, ...], trace: str, load: Load = Load()) -> Experiment:  # noqa: B008 - immutable
    """Return the experiment of a plain CSV trace under the built-in policy."""
    found = Experiment(cluster, (), (("built-in", POLICIES),), load)
    found.trace = tuple(read_plain_csv(trace.encode(), "trace.csv", found.is_card))
    return found


def outcome(cluster: tuple[Document, ...], trace: str, *, profile: str = "default", seed: int = 1) -> Outcome:
    """Return the outcome of one run of a plain CSV trace."""
    return simulated(experiment(cluster, trace), Run(0, profile, seed))


def lines(*rows: str, header: str = "arrival,duration,requests") -> str:
    """Return a plain CSV trace."""
    return "\n".join((header, *rows)) + "\n"


def write_experiment(folder: Path, trace: str, nodes: list[dict[str, Any]]) -> tuple[Path, Path]:
    """Return the files of a trace and of a cluster in `folder`."""
    import orjson

    (folder / "trace.csv").write_text(trace)
    items = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": nodes})
    (folder / "cluster.json").write_bytes(items)
    return folder / "trace.csv", folder / "cluster.json"
