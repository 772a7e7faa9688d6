"""One pod before the judge: foretold first, then asked."""

from tests.controlplane.client import ApiError
from tests.differential.cases import FOLDER, Case
from tests.differential.comparison import Disagreement, disagreements
from tests.differential.constraints import Object
from tests.differential.judge import Answer, Judge
from tests.differential.minimising import minimise
from tests.differential.profiles import PROFILES
from tests.differential.worlds import World
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework import Framework
from webhook.placement.profile import Profile

_MOST_QUESTIONS = 600


def profile_of(pod: Object) -> Profile:
    """The profile that kube-scheduler uses for `pod`."""
    return PROFILES[pod["spec"].get("schedulerName", "default-scheduler")]


def compare(pod: Object, snapshot: Snapshot, answer: Answer) -> list[Disagreement]:
    """Where the placement of `pod` is at odds with kube-scheduler's `answer`."""
    profile = profile_of(pod)
    return disagreements(Framework(profile).place(pod, snapshot), answer, profile)


def tried(judge: Judge, pod: Object) -> tuple[list[Disagreement], Answer]:
    """The disagreements about `pod`, as a user wrote it and as the API server stored it."""
    snapshot = judge.snapshot()
    answer, stored = judge.ask(pod)
    return [*compare(pod, snapshot, answer), *compare(stored, snapshot, answer)], answer


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
            disagreed, _ = tried(judge, plainer)
        except ApiError:
            return False
        return kind in {each.kind for each in disagreed}

    small_world, small_pod = minimise(world, pod, still_disagrees)
    judge.establish(small_world)
    disagreed, answer = tried(judge, small_pod)
    if not disagreed:
        return None
    return Case(f"{kind}: another one was foretold", small_world, small_pod, answer)


def keep(case: Case, name: str) -> str:
    """Write `case` to the folder of cases; the path, for a message."""
    path = FOLDER / f"{name}.yaml"
    case.write(path)
    return str(path)
