"""The simulation places each pod when and where a queue does that tries every waiting pod at every event."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_planner.simulation.outcome import Cards, Recorder
from placement_planner.simulation.simulator import Simulation
from placement_planner.simulation.sweep import Experiment, Run
from tests.planner.simulation.plain_queue import PlainQueue
from tests.support.effort import examples
from tests.support.programs.traces import experiment, gpu_nodes, lines

_HEADER = "arrival,duration,requests,priority,labels,annotations"
_APART = "workload-type=training;spread=host"


def placed(trace: Experiment, run: Run) -> dict[int, float]:
    """When each pod was placed, by its number in the trace."""
    cards = Cards(trace.snapshot, trace.is_card, ())
    recorder = Recorder(cards, 0, 1)
    simulation = Simulation(trace.snapshot, trace.templates(run), recorder, lambda rows, _: int(rows[0]))
    order = sorted(range(len(trace.trace)), key=lambda number: trace.trace[number].at_seconds)
    simulation.run([trace.trace[number] for number in order])

    pods = zip(order, simulation.pods, strict=True)
    return {number: pod.created_at + recorder.waited[pod] for number, pod in pods if pod in recorder.waited}


@st.composite
def traces(draw: st.DrawFn) -> str:
    rows = []
    # Pods end every second or so, and halves fall into and between the seconds of the backoff.
    for _ in range(draw(st.integers(5, 20))):
        arrival, duration = draw(st.integers(0, 24)) / 2, draw(st.integers(1, 12)) / 2
        gpus, cpu = draw(st.sampled_from((2, 4, 8))), draw(st.sampled_from((1, 16, 32)))
        priority = draw(st.sampled_from((0, 0, 0, 100)))
        annotations = draw(st.sampled_from(("", "", _APART)))
        rows.append(f"{arrival},{duration},cpu={cpu};nvidia.com/gpu={gpus},{priority},app=a,{annotations}")
    return lines(*rows, header=_HEADER)


@pytest.mark.slow
@given(traces(), st.sampled_from(("default", "binpack")))
@settings(max_examples=examples(24))
def test_each_pod_is_placed_when_a_plain_queue_places_it(trace: str, profile: str) -> None:
    found = experiment(gpu_nodes(8, 2), trace)
    run = Run(0, profile, 1)

    expected = PlainQueue(found, run).placed

    assert placed(found, run) == expected
