"""A pod as charts create it, with many containers, variables and volumes; the patch stays small and exact."""

from typing import Any

import jsonpatch
import orjson

from tests.support.admission import PRODUCT, TYPE, admit_pod
from tests.support.objects.builders import make_pod, match_expressions
from tests.support.objects.frozen import frozen
from tests.support.patch_checks import canonical


def container(number: int) -> dict[str, Any]:
    return {
        "name": f"worker-{number}",
        "image": f"example.com/team/worker:{number}",
        "env": [{"name": f"SETTING_{index}", "value": "value " * 8} for index in range(300)],
        "volumeMounts": [{"name": f"volume-{index}", "mountPath": f"/data/{index}"} for index in range(60)],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
    }


def large_pod() -> dict[str, Any]:
    builder = make_pod("trainer").annotate(TYPE, "training").annotate(PRODUCT, "NVIDIA-H20").gpu(8)
    for number in range(50):
        builder = builder.annotate(f"example.com/annotation-{number}", "x" * 200)
        builder = builder.label(f"example.com/label-{number}", "x" * 60)
        builder = builder.toleration(f"example.com/taint-{number}", operator="Exists", effect="NoSchedule")
    terms = [match_expressions(("zone", "In", [f"zone-{number}"])) for number in range(3)]
    pod = builder.require_node(*terms).obj()
    pod["spec"]["containers"] = [pod["spec"]["containers"][0], *map(container, range(39))]
    pod["spec"]["volumes"] = [{"name": f"volume-{index}", "emptyDir": {}} for index in range(60)]
    return pod


def test_the_patch_of_a_large_pod_is_small_and_exact() -> None:
    pod = large_pod()
    assert len(orjson.dumps(pod)) > 500_000

    verdict = admit_pod(frozen(pod))

    assert verdict.outcome == "Patched"
    assert len(orjson.dumps(verdict.operations)) < 3000
    assert canonical(jsonpatch.apply_patch(pod, verdict.operations)) == canonical(verdict.pod)


def test_patch_size_does_not_depend_on_unchanged_fields() -> None:
    small = large_pod()
    small["spec"]["containers"] = small["spec"]["containers"][:1]
    del small["spec"]["volumes"]

    large, little = admit_pod(large_pod()), admit_pod(small)

    assert large.outcome == "Patched"
    assert little.outcome == "Patched"
    assert large.operations == little.operations


def test_a_second_admission_of_a_large_pod_changes_nothing() -> None:
    once = admit_pod(large_pod())
    assert once.outcome == "Patched"

    assert admit_pod(frozen(once.pod)).outcome == "Unchanged"
