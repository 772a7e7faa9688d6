"""One trial: predict the placement of a pod, then compare it with kube-scheduler's."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.controlplane.client import ApiError
from tests.differential.cases import FOLDER, Case
from tests.differential.command import predicted_by_command
from tests.differential.comparison import Disagreement, disagreements
from tests.differential.kube_scheduler import Answer, KubeScheduler
from tests.differential.minimising import minimise
from tests.differential.profiles import PROFILES
from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.worlds import World
from webhook.cluster.snapshot import Snapshot
from webhook.placement.profiles.profile import Profile
from webhook.placement.scheduler import Scheduler

_MOST_QUESTIONS = 600


class AskedScheduler(Protocol):
    """The interface of a scheduler that decides on one pod, such as `KubeScheduler`."""

    def establish(self, world: World) -> None:
        """Make the cluster equal to `world`."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the cluster."""
        ...

    def ask(self, pod: Object) -> tuple[Answer, Object]:
        """Return the result for `pod`, and the pod as it was stored."""
        ...


def profile_of(pod: Object) -> Profile:
    """Return the profile that kube-scheduler uses for `pod`."""
    return PROFILES[pod["spec"].get("schedulerName", "default-scheduler")]


def compare(pod: Object, snapshot: Snapshot, answer: Answer) -> list[Disagreement]:
    """Return where the placement of `pod` disagrees with kube-scheduler's `answer`."""
    profile = profile_of(pod)
    return disagreements(Scheduler(profile).place(pod, snapshot), answer, profile)


class Trial(NamedTuple):
    """A pod as a user wrote it and as the API server stored it, the result, and the predictions that differ."""

    written: Object
    stored: Object
    answer: Answer
    disagreements: list[Disagreement]


def tried(scheduler: AskedScheduler, pod: Object) -> Trial:
    """Return the trial of `pod`."""
    snapshot = scheduler.snapshot()
    answer, stored = scheduler.ask(pod)
    return Trial(pod, stored, answer, [*compare(pod, snapshot, answer), *compare(stored, snapshot, answer)])


def disagreements_of_command(
    scheduler: KubeScheduler, trials: Sequence[Trial], folder: Path
) -> list[tuple[str, Disagreement]]:
    """Return where `placement-webhook check` disagrees with kube-scheduler, by the names of the pods."""
    cluster = scheduler.objects()
    found = []
    for pods in ([each.written for each in trials], [each.stored for each in trials]):
        placements = predicted_by_command(folder, cluster, pods)
        for pod, placement, trial in zip(pods, placements, trials, strict=True):
            differing = disagreements(placement, trial.answer, profile_of(pod))
            found += [(pod["metadata"]["name"], each) for each in differing]
    return found


def report(scheduler: AskedScheduler, world: World, trial: Trial, name: str, folder: Path = FOLDER) -> str:
    """Return the text about the disagreement of `trial`, whose smallest case becomes the file `name` in `folder`.

    The text has the disagreement as it was found, even if kube-scheduler no longer answers.
    """
    try:
        again = str(scheduler.ask(trial.written)[0])
    except (ApiError, TimeoutError) as error:
        again = f"no answer: {error}"
    case = minimised(scheduler, world, trial)
    path = keep(case, name, folder) if case else "not seen again"
    return f"{name}: {trial.disagreements[0]}\nof {trial.answer}\nthen {again}\nminimised: {path}"


def minimised(scheduler: AskedScheduler, world: World, trial: Trial) -> Case | None:
    """Return the smallest case of the first disagreement of `trial`; None if it does not recur.

    A question that is rejected or not answered in time does not make the case smaller.
    """
    kind = trial.disagreements[0].kind
    questions = 0

    def still_disagrees(smaller: World, plainer: Object) -> bool:
        nonlocal questions
        questions += 1
        if questions > _MOST_QUESTIONS:
            return False
        again = _tried_on(scheduler, smaller, plainer)
        return again is not None and kind in {each.kind for each in again.disagreements}

    small_world, small_pod = minimise(world, trial.written, still_disagrees)
    again = _tried_on(scheduler, small_world, small_pod)
    if again is None or not again.disagreements:
        return None
    release = scheduler.snapshot().release.version
    return Case(f"{kind}: another one was predicted", small_world, small_pod, again.answer, release)


def _tried_on(scheduler: AskedScheduler, world: World, pod: Object) -> Trial | None:
    """Return the trial of `pod` in `world`; None if kube-scheduler rejects the world or does not answer."""
    try:
        scheduler.establish(world)
        return tried(scheduler, pod)
    except (ApiError, TimeoutError):
        return None


def keep(case: Case, name: str, folder: Path = FOLDER) -> str:
    """Write `case` to `folder`, by default that of the cases; return the path, for a message."""
    path = folder / f"{name}.yaml"
    case.write(path)
    return str(path)
