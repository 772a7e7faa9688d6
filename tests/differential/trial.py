"""One pod before the judge: foretold first, then asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.controlplane.client import ApiError
from tests.differential.cases import FOLDER, Case
from tests.differential.command import foretold_by_command
from tests.differential.comparison import Disagreement, disagreements
from tests.differential.constraints import Object
from tests.differential.judge import Answer, Judge
from tests.differential.minimising import minimise
from tests.differential.profiles import PROFILES
from tests.differential.worlds import World
from webhook.cluster.snapshot import Snapshot
from webhook.placement.profile import Profile
from webhook.placement.scheduler import Scheduler

_MOST_QUESTIONS = 600


def profile_of(pod: Object) -> Profile:
    """The profile that kube-scheduler uses for `pod`."""
    return PROFILES[pod["spec"].get("schedulerName", "default-scheduler")]


def compare(pod: Object, snapshot: Snapshot, answer: Answer) -> list[Disagreement]:
    """Where the placement of `pod` is at odds with kube-scheduler's `answer`."""
    profile = profile_of(pod)
    return disagreements(Scheduler(profile).place(pod, snapshot), answer, profile)


class Trial(NamedTuple):
    """A pod as a user wrote it and as the API server stored it, what became of it, and what else was foretold."""

    written: Object
    stored: Object
    answer: Answer
    disagreements: list[Disagreement]


def tried(judge: Judge, pod: Object) -> Trial:
    """`pod` before the judge."""
    snapshot = judge.snapshot()
    answer, stored = judge.ask(pod)
    return Trial(pod, stored, answer, [*compare(pod, snapshot, answer), *compare(stored, snapshot, answer)])


def disagreements_of_command(judge: Judge, trials: Sequence[Trial], folder: Path) -> list[tuple[str, Disagreement]]:
    """Where `placement-webhook check` is at odds with kube-scheduler, by the names of the pods."""
    cluster = judge.objects()
    found = []
    for pods in ([each.written for each in trials], [each.stored for each in trials]):
        placements = foretold_by_command(folder, cluster, pods)
        for pod, placement, trial in zip(pods, placements, trials, strict=True):
            differing = disagreements(placement, trial.answer, profile_of(pod))
            found += [(pod["metadata"]["name"], each) for each in differing]
    return found


def minimised(judge: Judge, world: World, pod: Object, found: list[Disagreement]) -> Case | None:
    """The smallest case of the first disagreement in `found`; None if it is not seen again."""
    kind = found[0].kind
    questions = 0

    def still_disagrees(smaller: World, plainer: Object) -> bool:
        nonlocal questions
        questions += 1
        if questions > _MOST_QUESTIONS:
            return False
        try:
            judge.establish(smaller)
            disagreed = tried(judge, plainer).disagreements
        except ApiError:
            return False
        return kind in {each.kind for each in disagreed}

    small_world, small_pod = minimise(world, pod, still_disagrees)
    judge.establish(small_world)
    trial = tried(judge, small_pod)
    if not trial.disagreements:
        return None
    return Case(f"{kind}: another one was foretold", small_world, small_pod, trial.answer)


def keep(case: Case, name: str) -> str:
    """Write `case` to the folder of cases; the path, for a message."""
    path = FOLDER / f"{name}.yaml"
    case.write(path)
    return str(path)
