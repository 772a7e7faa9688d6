"""A simulation that follows the choices of the real kube-scheduler, and where these are not among its own.

The real kube-scheduler picks one of the best nodes at random. If the simulation takes the same one, both have the same
cluster before the next pod, so each choice is compared exactly.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from placement_planner.simulation.arrival import Arrival
from placement_planner.simulation.backlog import TracePod
from placement_planner.simulation.outcome import Cards, Recorder
from placement_planner.simulation.preemption import ChooseVictims
from placement_planner.simulation.simulator import Choose, Simulation
from placement_planner.simulation.sweep import Experiment, Run
from placement_planner.simulation.templates import Template, Templates
from webhook.cluster.snapshot import Rows

Object = dict[str, Any]


class Followed(NamedTuple):
    """How a simulation differs that follows the real kube-scheduler, in the numbers of pods.

    `other_nodes` were bound to a node that is not among the best of the simulation, `other_outcomes` have a node in one
    and none in the other.
    """

    pods: int
    placed: int
    cards: int
    other_nodes: tuple[int, ...]
    other_outcomes: tuple[int, ...]


def created(templates: Templates, arrivals: Sequence[Arrival], scheduler: str) -> list[Object]:
    """Return the pods as the webhook admits them, for the API server; `scheduler` places them."""
    pods = []
    for number, arrival in enumerate(arrivals):
        template = templates.of(arrival)
        assert isinstance(template, Template), template
        pod = deepcopy(template.created)
        metadata = {key: pod["metadata"].get(key, {}) for key in ("labels", "annotations")} | {"name": f"pod-{number}"}
        spec = pod["spec"] | {"schedulerName": scheduler}
        pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return pods


def followed(experiment: Experiment, run: Run, arrivals: Sequence[Arrival], nodes: Sequence[str | None]) -> Followed:
    """Return how a simulation of `arrivals`, one pod each, differs; `nodes` has the real node of each, None without."""
    snapshot = experiment.snapshot
    other_nodes: list[int] = []

    def choose(rows: Rows, pod: TracePod) -> int:
        number = numbers.setdefault(pod, len(simulation.pods) - 1)
        real = nodes[number]
        if real is None:
            return int(rows[0])
        if snapshot.rows[real] not in rows:
            other_nodes.append(number)
        return snapshot.rows[real]

    numbers: dict[TracePod, int] = {}
    simulation, recorder = simulation_of(experiment, run, arrivals, choose)
    simulation.run(arrivals)
    is_placed = [pod in recorder.waited for pod in simulation.pods]
    others = [
        number for number, (own, real) in enumerate(zip(is_placed, nodes, strict=True)) if own != (real is not None)
    ]
    placed = sum(pod.template.cards for pod in recorder.waited)
    return Followed(len(nodes), sum(is_placed), placed, tuple(other_nodes), tuple(others))


def simulation_of(
    experiment: Experiment,
    run: Run,
    arrivals: Sequence[Arrival],
    choose: Choose,
    choose_victims: ChooseVictims | None = None,
) -> tuple[Simulation, Recorder]:
    """Return a simulation of `arrivals` that has not run, and what notes its state."""
    cards = Cards(experiment.snapshot, experiment.is_card, ())
    recorder = Recorder(cards, arrivals[0].at_seconds, arrivals[-1].at_seconds)
    return Simulation(experiment.snapshot, experiment.templates(run), recorder, choose, choose_victims), recorder
