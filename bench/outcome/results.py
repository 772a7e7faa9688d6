"""The result of one replay, as it is kept in a file."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from bench.outcome.arrivals import Trace
from bench.outcome.configurations import Configuration
from bench.outcome.figures import Figures


@dataclass(frozen=True, slots=True)
class Result:
    """One replay: the workload, the configuration, who placed the pods, the seed, and the figures of each step."""

    pod_list: str
    every: int
    first: int
    nodes: int
    gpus: int
    configuration: str
    placed_by: str
    seed: int
    steps: tuple[Figures, ...]

    @classmethod
    def of(
        cls, trace: Trace, configuration: Configuration, is_simulated: bool, seed: int, steps: Iterable[Figures]
    ) -> "Result":
        """Return the result of a replay of `trace`."""
        return cls(
            trace.sample.pod_list,
            trace.sample.every,
            trace.sample.first,
            len(trace.nodes),
            trace.gpus,
            configuration.name,
            "simulation" if is_simulated else "kube-scheduler",
            seed,
            tuple(steps),
        )

    @property
    def title(self) -> str:
        """The name of the replay, and the GPUs allocated in the end."""
        last = self.steps[-1]
        return (
            f"{self.pod_list}, {self.nodes} nodes, seed {self.seed}, {self.configuration}, {self.placed_by}:"
            f" {last.allocated:.1f} % allocated, not placed {dict(last.unplaced)}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Result":
        """Return the result of a line of a file."""
        return cls(**{**content, "steps": tuple(Figures(**each) for each in content["steps"])})


def read_results(file: Path) -> list[Result]:
    """Return the results in a file."""
    return [Result.from_json(orjson.loads(line)) for line in file.read_bytes().splitlines()]
