"""`python -m tests.differential.record COUNT [FIRST_SEED]`: small cases, each with something new in it.

With CONTROL_PLANE_RELEASE they are those of an older release.
"""

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.controlplane.binaries import find_or_build
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.differential.cases import FOLDER, Case
from tests.differential.kube_scheduler import Answer, KubeScheduler
from tests.differential.profiles import CONFIGURATION, OTHERS, STANDARD
from tests.differential.random_objects.constraints import Object
from tests.differential.random_objects.dice import Dice
from tests.differential.random_objects.worlds import World, pending_pods, random_world

_SIZES = ((4, 5),)
_PODS_PER_WORLD = 12
_SCHEDULERS = (*STANDARD[:1] * 8, *STANDARD, *OTHERS)
_WORLDS = 25


def main(count: int, first_seed: int) -> None:
    """Write up to `count` cases to the folder of cases: those that, together, show everything twice."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane(_programs(), Path(folder)) as control_plane:
        left = {name: (case, _features(case.pod, case.answer)) for name, case in _cases(control_plane, first_seed)}
    shown: Counter[str] = Counter()
    for _ in range(count):
        seldom = {name: [each for each in features if shown[each] < 2] for name, (_, features) in left.items()}
        name = max(seldom, key=lambda each: len(seldom[each]))
        if not seldom[name]:
            break
        case, features = left.pop(name)
        shown.update(features)
        why = f"{case.why} {'; '.join(sorted(seldom[name]))}."
        replace(case, why=why).write(FOLDER / f"{name}.yaml")


def _cases(control_plane: ControlPlane, first_seed: int) -> Iterator[tuple[str, Case]]:
    control_plane.start_scheduler(CONFIGURATION)
    scheduler = KubeScheduler(Cluster(control_plane))
    for seed in range(first_seed, first_seed + _WORLDS):
        dice = Dice(seed)
        world = random_world(dice, _SIZES)
        scheduler.establish(world)
        for pod in pending_pods(dice, world, _PODS_PER_WORLD, _SCHEDULERS):
            answer, _ = scheduler.ask(pod)
            release = scheduler.snapshot().release.version
            name = f"recorded-{release}-{seed}-{pod['metadata']['name']}"
            yield name, Case(f"Recorded from kube-scheduler {release}. It shows", world, pod, answer, release)
        scheduler.establish(World((), (), (), ()))


def _features(pod: Object, answer: Answer) -> set[str]:
    """Return the coverage of a case: reasons, plugins that distinguish nodes, fields and operators of the pod."""
    reasons = re.sub(r"^0/\d+ nodes are available: |\.$", "", answer.message).split(", ") if answer.message else []
    by_plugin: dict[str, set[int]] = {}
    for scores in answer.scores.values():
        for plugin, score in scores.items():
            by_plugin.setdefault(plugin, set()).add(score)
    telling = {f"{plugin} tells nodes apart" for plugin, scores in by_plugin.items() if len(scores) > 1}
    scheduler = f"scheduler {pod['spec'].get('schedulerName')}"
    return {re.sub(r"^\d+ ", "", reason) for reason in reasons} | telling | {scheduler} | set(_fields(pod["spec"]))


def _fields(value: Any, name: str = "") -> Iterator[str]:
    """Yield the names of fields that constrain, with what a choice of words decided on."""
    if isinstance(value, dict):
        for key, child in value.items():
            if key in ("operator", "whenUnsatisfiable", "nodeAffinityPolicy", "nodeTaintsPolicy"):
                yield f"{name} {child}"
            elif key not in ("labels", "matchLabels", "nodeSelector", "requests", "limits", "image", "name"):
                yield key
                yield from _fields(child, key)
    elif isinstance(value, list):
        for child in value:
            yield from _fields(child, name)


def _programs() -> dict[str, Path]:
    return find_or_build(os.environ, lambda line: print(line, file=sys.stderr))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
