"""The fields of a pod that KAI ignores."""

from typing import Any

from tests.support.admission import USAGE, admit_pod, policy_with
from tests.support.objects.builders import PodBuilder, make_pod, match_expressions

_TYPE = "maip.mxsf.io/workload-type"


def _ignored(pod: PodBuilder, scheduler: str = "kai-scheduler", **training: Any) -> list[str]:
    policy = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"], **training}}})
    verdict = admit_pod(pod.annotate(_TYPE, "training").scheduler(scheduler).obj(), policy)
    assert verdict.outcome == "Patched"
    assert admit_pod(verdict.pod, policy).warnings == verdict.warnings
    return [each.partition(": ")[2] for each in verdict.warnings if "ignores preferred node affinity" in each]


def _preferring(key: str) -> PodBuilder:
    return make_pod().prefer_node(10, match_expressions((key, "In", ["nvme"])))


def test_kai_ignores_the_preferences_of_type_and_pod_alike() -> None:
    of_type, own = "the preference for nodes of training has no effect", "the pod's own has no effect"

    assert _ignored(make_pod()) == []
    assert _ignored(make_pod(), prefer={"training": 10}) == [of_type]
    assert _ignored(_preferring("disk")) == [own]
    assert _ignored(_preferring("disk"), prefer={"training": 10}) == [of_type, own]
    assert _ignored(_preferring(USAGE)) == [own]
    assert _ignored(_preferring("disk"), "volcano", prefer={"training": 10}) == []
