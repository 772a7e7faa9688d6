"""A sweep: one run for each policy, scheduler profile and seed, on all processors."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

from placement_planner.simulation.arrival import Arrival, IsCard, Load
from placement_planner.simulation.backlog import TracePod
from placement_planner.simulation.outcome import Cards, Outcome, Recorder
from placement_planner.simulation.preemption import victims_by
from placement_planner.simulation.simulator import Simulation
from placement_planner.simulation.templates import Template, Templates
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Rows, Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput, invalid
from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.packing.free_cards import accelerator_of
from webhook.placement.profiles.profile import Profile
from webhook.policy.policy_set import PolicySet


class Run(NamedTuple):
    """One run: the number of the policy, the name of the profile (empty for the pods' schedulers), and the seed."""

    policy: int
    profile: str
    seed: int


@dataclass
class Experiment:
    """The inputs that all runs of a sweep share. They can be sent to another process.

    `policies` have names. `scheduler_config` is a KubeSchedulerConfiguration and its place, or None for the built-in
    profiles. `priorities` by workload type apply to pods without a priority. `preempts` is true if pods are evicted for
    other pods.
    """

    cluster: tuple[Document, ...]
    trace: tuple[Arrival, ...]
    policies: tuple[tuple[str, PolicySet], ...]
    load: Load
    scheduler_config: tuple[bytes, str] | None = None
    priorities: Mapping[str, int] = field(default_factory=dict)
    preempts: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without cached values that are computed from them."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @cached_property
    def snapshot(self) -> Snapshot:
        """The cluster before the first pod arrives."""
        return snapshot_from_documents(self.cluster)

    @cached_property
    def profiles(self) -> Mapping[str, Profile] | None:
        """The profiles of the scheduler configuration, or None if there is none."""
        return None if self.scheduler_config is None else parse_profiles(*self.scheduler_config)

    @property
    def is_card(self) -> IsCard:
        """A function that returns true for a resource whose units are cards of one of the policies."""
        cards = [each for _, policies in self.policies for policy in policies for each in policy.spec.accelerators]
        return cache(lambda resource: accelerator_of(resource, cards) is not None)

    def templates(self, run: Run) -> Templates:
        """Return the templates of the pods in a run."""
        policies = self.policies[run.policy][1]
        return Templates(policies, run.profile, self.profiles, self.snapshot, self.is_card, self.priorities)


def simulated(experiment: Experiment, run: Run, on_progress: Callable[[int, int], object] | None = None) -> Outcome:
    """Return the outcome of a run. Equal runs have equal outcomes.

    `on_progress` gets the number of arrivals so far, and the total.

    Raises:
        InvalidInput: a pod of the trace is malformed, or lacks the lifetime that its way of arrival needs.
    """
    snapshot, templates = experiment.snapshot, experiment.templates(run)
    # The mix is that of the trace, so that it is the same for all runs.
    read = [templates.of(each) for each in experiment.trace]
    requests = (each.signature.info.requests for each in read if isinstance(each, Template))
    cards = Cards(snapshot, experiment.is_card, requests)
    arrivals = experiment.load.arrivals(experiment.trace, cards.total, run.seed)
    if not arrivals:
        raise InvalidInput([invalid("--trace", "no pod", "no pod of the trace arrives; check --load and --span")])
    recorder = Recorder(cards, arrivals[0].at_seconds, arrivals[-1].at_seconds)
    # Dice of its own: the nodes of a run without preemption stay those of the seed.
    choose_victims = victims_by(random.Random(f"preemption {run.seed}")) if experiment.preempts else None  # noqa: S311
    simulation = Simulation(snapshot, templates, recorder, random_choice(run.seed), choose_victims)
    total = len(arrivals)
    simulation.run(arrivals, lambda done: on_progress(done, total) if on_progress else None)
    return Outcome(
        policy=experiment.policies[run.policy][0],
        profile=run.profile,
        seed=run.seed,
        nodes=len(snapshot.nodes),
        cards=cards.total,
        pods=len(simulation.pods),
        denied=len(simulation.denied),
        placed=len(recorder.waited),
        allocated=recorder.allocated,
        most_allocated=recorder.most_allocated,
        last_allocated=recorder.series[-1].allocated,
        fragmented=recorder.fragmented,
        waits=recorder.waits(simulation.pods, by_priority=experiment.preempts),
        series=tuple(recorder.series),
        unmodelled=_unmodelled(simulation.pods, snapshot),
        denial=simulation.denied[0] if simulation.denied else "",
        unplaced=simulation.unplaced(),
        evictions=recorder.evicted if experiment.preempts else None,
    )


def random_choice(seed: int) -> Callable[[Rows, TracePod | None], int]:
    """Return the function that picks one of the best nodes at random."""
    dice = random.Random(seed)  # noqa: S311 - a simulation
    return lambda rows, _: int(rows[dice.randrange(len(rows))])


def _unmodelled(pods: Sequence[TracePod], snapshot: Snapshot) -> tuple[str, ...]:
    found: set[str] = set()
    for template in dict.fromkeys(pod.template for pod in pods):
        found.update(template.scheduler.scheduler.answer_alone(template.signature, snapshot).unmodelled)
    return tuple(sorted(found))


def swept(experiment: Experiment, runs: Sequence[Run], processes: int) -> Iterator[tuple[Run, Outcome]]:
    """Yield the outcome of each of `runs` when it is complete. The runs use `processes` processes.

    Raises:
        InvalidInput: as in `simulated`.
    """
    with ProcessPoolExecutor(processes, initializer=_take, initargs=(experiment,)) as pool:
        futures = {pool.submit(_simulated, run): run for run in runs}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


_experiment: Experiment | None = None


def _take(experiment: Experiment) -> None:
    """Store the experiment of this process."""
    global _experiment
    _experiment = experiment


def _simulated(run: Run) -> Outcome:
    assert _experiment is not None  # noqa: S101 - the process was given it
    return simulated(_experiment, run)
