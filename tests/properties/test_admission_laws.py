"""Laws of admission for every pod."""

from copy import deepcopy
from typing import Any

import jsonpatch
import orjson
from hypothesis import given
from hypothesis import strategies as st

from bench.mutations import lost_values
from tests.support.admission import DOMAIN, admit_pod
from tests.support.random_pods import CARD, EFFECTS, PRODUCTS, USAGES, pods
from webhook.kube.taints import covers, tolerates
from webhook.verdict import Patched, Unchanged, Verdict

taints = st.fixed_dictionaries(
    {
        "key": st.sampled_from([f"{DOMAIN}/node.usage", CARD, f"{DOMAIN}/control-plane"]),
        "value": st.sampled_from([*USAGES, *PRODUCTS, ""]),
        "effect": st.sampled_from(EFFECTS),
    }
)


def admitted(pod: dict[str, Any]) -> Patched | Unchanged:
    verdict: Verdict = admit_pod(pod)
    assert isinstance(verdict, Patched | Unchanged)
    return verdict


@given(pods())
def test_operations_turn_the_original_into_the_mutated_pod(pod: dict[str, Any]) -> None:
    original = deepcopy(pod)

    verdict = admitted(pod)

    assert pod == original
    operations = orjson.loads(orjson.dumps(verdict.operations if isinstance(verdict, Patched) else []))
    assert jsonpatch.apply_patch(original, operations) == verdict.pod


@given(pods())
def test_admitting_twice_is_admitting_once(pod: dict[str, Any]) -> None:
    once = admitted(pod)

    twice = admitted(deepcopy(once.pod))

    assert isinstance(twice, Unchanged)
    assert twice.pod == once.pod
    assert twice.warnings == once.warnings


@given(pods())
def test_every_value_of_the_user_survives(pod: dict[str, Any]) -> None:
    after = admitted(pod).pod

    lost = list(lost_values(pod, after, ""))

    assert [path for path in lost if path != ".spec.schedulerName"] == []
    if ".spec.schedulerName" in lost:
        assert pod["spec"]["schedulerName"] in ("", "default-scheduler")


@given(pods(), taints)
def test_an_added_toleration_never_shrinks_the_feasible_set(pod: dict[str, Any], taint: dict[str, str]) -> None:
    before = pod["spec"].get("tolerations") or []
    after = admitted(pod).pod["spec"].get("tolerations") or []

    assert any(tolerates(each, taint) for each in after) or not any(tolerates(each, taint) for each in before)


@given(pods())
def test_no_added_toleration_is_covered_by_another(pod: dict[str, Any]) -> None:
    before = pod["spec"].get("tolerations") or []
    after = admitted(pod).pod["spec"].get("tolerations") or []
    added = after[len(before) :]

    covered = [new for index, new in enumerate(added, len(before)) for other in after[:index] if covers(other, new)]

    assert covered == []


@given(pods())
def test_the_control_plane_is_never_tolerated_by_us(pod: dict[str, Any]) -> None:
    taint = {"key": f"{DOMAIN}/control-plane", "value": "", "effect": "NoSchedule"}
    before = pod["spec"].get("tolerations") or []
    after = admitted(pod).pod["spec"].get("tolerations") or []

    assert [each for each in after[len(before) :] if tolerates(each, taint)] == []


@given(pods())
def test_no_term_lets_the_pod_pass_its_pools_by(pod: dict[str, Any]) -> None:
    verdict = admitted(pod)
    allowed = {"training": {"training", "hybrid"}, "inference": {"inference", "hybrid"}}[verdict.workload_type]
    required = verdict.pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    for term in required.get("nodeSelectorTerms") or []:
        expressions = term.get("matchExpressions") or []
        held = any(
            each["key"] == f"{DOMAIN}/node.usage" and each["operator"] == "In" and set(each["values"]) <= allowed
            for each in expressions
        )
        assert held or not (expressions or term.get("matchFields"))
