"""Invariants of admission for every pod."""

from collections import Counter
from copy import deepcopy
from itertools import permutations
from typing import Any

import jsonpatch
import orjson
from hypothesis import given
from hypothesis import strategies as st

from tests.support.admission import DOMAIN, USAGE, admit_pod, make_request, policy_with
from tests.support.invariants import lost_values, overruled_values
from tests.support.patch_checks import canonical, check_pod_patch
from tests.support.random.random_pods import CARD, EFFECTS, PRODUCTS, USAGES, pods
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Allowed, Verdict
from webhook.kube.api.json_patch import patched
from webhook.kube.pod.taints import Taint, Toleration, covers
from webhook.kube.selectors import requirement_matches
from webhook.policy.policy import Policy

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

# What the API server fills in before the webhook sees the pod.
FILLED_IN = {"spec.schedulerName", "spec.priorityClassName", "spec.priority", "spec.preemptionPolicy"}

taints = st.fixed_dictionaries(
    {
        "key": st.sampled_from([f"{DOMAIN}/node.usage", CARD, "nvidia.com/gpu", f"{DOMAIN}/control-plane"]),
        "value": st.sampled_from([*USAGES, *PRODUCTS, ""]),
        "effect": st.sampled_from(EFFECTS),
    }
)


POLICIES = {
    "default": policy_with(),
    "restricted products": policy_with(allowedProducts={"NVIDIA-H20": ["team-a"]}, invalidAnnotations="warn"),
    "limits": policy_with(
        namespaceLimits=[{"namespaces": ["*"], "products": ["NVIDIA-H20"]}], invalidAnnotations="warn"
    ),
    "listed products": policy_with(allowedProducts={"*": [], "NVIDIA-A10": ["*"]}, invalidAnnotations="warn"),
    **{
        f"{mode} {form}": policy_with(
            workloadTypes={
                name: {
                    "nodeUsage": {"allow": [name, "hybrid"]},
                    "spread": {"topology": "zone", "mode": mode, "form": form},
                    "binPacking": True,
                }
                for name in ("training", "inference")
            },
        )
        for mode in ("preferred", "required")
        for form in ("antiAffinity", "topologySpread")
    },
    "guaranteed": policy_with(
        workloadTypes={
            name: {
                "nodeUsage": {"allow": [name, "hybrid"]},
                "qos": {"class": "Guaranteed", "limitsFromRequests": True, "wholeCpus": True},
            }
            for name in ("training", "inference")
        },
    ),
    **{
        f"gangs of {backend} within {queueing}": policy_with(
            queueing=queueing,
            schedulers={
                name: {"backend": backend, **({"tiers": {"rack": 1}} if backend == "volcano" else {})}
                | ({"topologyName": "racks"} if backend == "kai" else {})
                for name in ("default-scheduler", "volcano")
            },
            workloadTypes={
                name: {"nodeUsage": {"allow": [name]}, "within": {"topology": "rack", "mode": "required"}}
                for name in ("training", "inference")
            },
            workloadObjects={"mutateTemplates": True},
        )
        for backend, queueing in (
            ("default", "kueue"),
            ("default", "scheduler"),
            ("kai", "scheduler"),
            ("volcano", "scheduler"),
        )
    },
    "priority classes": policy_with(
        defaultPriorityClass="normal",
        workloadTypes={
            name: {"nodeUsage": {"allow": [name, "hybrid"]}, "priorityClassName": "high"}
            for name in ("training", "inference")
        },
    ),
    "variants and taints of a provider": policy_with(
        productVariants=["-SHARED"],
        binPacking={"namespaces": "same"},
        accelerators=[
            {
                "name": "nvidia",
                "resources": ["nvidia.com/gpu"],
                "card": "nvidia.com/gpu",
                "extraTolerations": [
                    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                    {"key": "nvidia.com/gpu.product", "effect": "NoExecute", "value": "NVIDIA-H20"},
                ],
            }
        ],
        workloadTypes={
            name: {
                "nodeUsage": {"allow": [name, "hybrid"], "prefer": {name: 100, "hybrid": 10}},
                "extraTolerations": [
                    {"key": CARD, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
                ],
            }
            for name in ("training", "inference")
        },
    ),
}
policies = st.sampled_from(sorted(POLICIES)).map(lambda name: POLICIES[name])


def admitted(pod: dict[str, Any], policy: Policy) -> Allowed:
    verdict: Verdict = admit_pod(pod, policy)
    assert isinstance(verdict, Allowed)
    return verdict


@given(pods(), policies)
def test_operations_turn_the_original_into_the_mutated_pod(pod: dict[str, Any], policy: Policy) -> None:
    original = deepcopy(pod)

    verdict = admitted(pod, policy)

    assert pod == original
    operations = orjson.loads(orjson.dumps(verdict.operations if verdict.outcome == "Patched" else []))
    assert canonical(jsonpatch.apply_patch(original, operations)) == canonical(verdict.pod)
    check_pod_patch(PodContent(make_request(pod), {}), operations, policy)


@given(pods(), policies)
def test_admitting_twice_is_admitting_once(pod: dict[str, Any], policy: Policy) -> None:
    once = admitted(pod, policy)

    twice = admitted(deepcopy(once.pod), policy)

    assert twice.outcome == "Unchanged"
    assert twice.pod == once.pod
    assert twice.warnings == once.warnings


@given(pods(), policies)
def test_every_value_of_the_user_survives(pod: dict[str, Any], policy: Policy) -> None:
    verdict = admitted(pod, policy)
    after = patched(pod, verdict.operations if verdict.outcome == "Patched" else [])

    lost = {".".join(place) for place in lost_values(pod, after)}

    own = {f"metadata.annotations.{key}" for key in (policy.policy_annotation, policy.rules_annotation)}
    assert lost <= FILLED_IN | own
    assert [*overruled_values(pod, after, policy)] == []
    if "spec.schedulerName" in lost:
        assert pod["spec"]["schedulerName"] in ("", "default-scheduler")
    if lost_priority := lost - own - {"spec.schedulerName"}:
        assert after["spec"]["priorityClassName"] == "high", lost_priority
        is_default = pod["spec"].get("priorityClassName") == "normal"
        assert is_default or not pod["spec"].get("priorityClassName")
        assert is_default or pod["spec"].get("priority") in (None, 0)
        assert is_default or pod["spec"].get("preemptionPolicy") in (None, "PreemptLowerPriority")


@given(pods(), policies, taints)
def test_an_added_toleration_never_shrinks_the_feasible_set(
    pod: dict[str, Any], policy: Policy, taint: dict[str, str]
) -> None:
    before = pod["spec"].get("tolerations") or []
    after = admitted(pod, policy).pod["spec"].get("tolerations") or []

    old, new = (any(Toleration.of(each).tolerates(Taint.of(taint)) for each in those) for those in (before, after))
    assert new or not old


@given(pods(), policies)
def test_no_added_toleration_is_covered_by_another(pod: dict[str, Any], policy: Policy) -> None:
    before = pod["spec"].get("tolerations") or []
    after = admitted(pod, policy).pod["spec"].get("tolerations") or []
    added = after[len(before) :]

    covered = [new for index, new in enumerate(added, len(before)) for other in after[:index] if covers(other, new)]

    assert covered == []


@given(pods(), policies)
def test_the_control_plane_is_never_tolerated_by_us(pod: dict[str, Any], policy: Policy) -> None:
    taint = Taint(f"{DOMAIN}/control-plane", "", "NoSchedule")
    before = pod["spec"].get("tolerations") or []
    after = admitted(pod, policy).pod["spec"].get("tolerations") or []

    assert [each for each in after[len(before) :] if Toleration.of(each).tolerates(taint)] == []


pool_terms = st.fixed_dictionaries(
    {
        "weight": st.sampled_from([1, 10, 50, 100]),
        "preference": st.fixed_dictionaries(
            {
                "matchExpressions": st.lists(
                    st.fixed_dictionaries(
                        {
                            "key": st.just(USAGE),
                            "operator": st.sampled_from(["In", "NotIn"]),
                            "values": st.lists(st.sampled_from(USAGES), min_size=1, max_size=2, unique=True),
                        }
                    ),
                    min_size=1,
                    max_size=2,
                )
            }
        ),
    }
)


@given(pods(), policies, st.lists(pool_terms, max_size=3))
def test_no_preference_for_a_pool_reverses_the_users(
    pod: dict[str, Any], policy: Policy, terms: list[dict[str, Any]]
) -> None:
    pod["spec"]["affinity"] = {"nodeAffinity": {PREFERRED: terms}}

    after = admitted(pod, policy).pod["spec"]["affinity"]["nodeAffinity"].get(PREFERRED) or []

    for better, worse in permutations(USAGES, 2):
        if preference(terms, better) > preference(terms, worse):
            assert preference(after, better) > preference(after, worse)


def preference(terms: list[dict[str, Any]], usage: str) -> int:
    """The sum of the weights of the preferred `terms` that match nodes of the pool `usage`."""
    return sum(
        term["weight"]
        for term in terms
        if all(requirement_matches(each, {USAGE: usage}) for each in term["preference"]["matchExpressions"])
    )


@given(pods(), policies)
def test_no_term_lets_the_pod_pass_its_pools_by(pod: dict[str, Any], policy: Policy) -> None:
    verdict = admitted(pod, policy)
    allowed = {"training": {"training", "hybrid"}, "inference": {"inference", "hybrid"}}[verdict.workload_type]
    required = verdict.pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    for term in required.get("nodeSelectorTerms") or []:
        expressions = term.get("matchExpressions") or []
        held = any(
            each["key"] == f"{DOMAIN}/node.usage" and each["operator"] == "In" and set(each["values"]) <= allowed
            for each in expressions
        )
        assert held or not (expressions or term.get("matchFields"))


@given(pods(), policies)
def test_replicas_are_spread_over_a_topology_that_the_user_has_not_settled(pod: dict[str, Any], policy: Policy) -> None:
    before, after = spread_keys(pod), spread_keys(admitted(pod, policy).pod)

    added = after - before

    assert before <= after
    assert added.total() <= 1
    assert not added.keys() & before.keys()


def spread_keys(pod: dict[str, Any]) -> Counter[str]:
    """The topology keys of the spread constraints and of the pod anti-affinity."""
    anti_affinity = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    terms = [
        *(pod["spec"].get("topologySpreadConstraints") or []),
        *(anti_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []),
        *(each["podAffinityTerm"] for each in anti_affinity.get(PREFERRED) or []),
    ]
    return Counter(each["topologyKey"] for each in terms)
