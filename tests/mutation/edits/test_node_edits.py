"""The labels that the rule GpuProduct requires of a node, vendor by vendor."""

from itertools import product
from typing import Any

import orjson
import pytest

from tests.support.admission import DOMAIN, TYPE, policy_with
from tests.support.objects.builders import make_pod
from webhook.mutation.edits.editor import PodEditor
from webhook.mutation.edits.edits import LARGEST_GROWTH_BYTES, PodTooLargeError
from webhook.mutation.edits.node_edits import PREFERRED_NODES, REQUIRED_NODE, PreferNode, RequireNode
from webhook.mutation.edits.node_terms import NodeLabelRequirement
from webhook.mutation.rules import gpu_product
from webhook.mutation.workload.workload import read_workload
from webhook.policy.policy import Policy


def required_labels(policy: Policy, resource: str, **annotations: str) -> dict[str, tuple[str, ...]]:
    """The bounds by label of a training pod that requests `resource` and has these annotations of ours."""
    pod = make_pod().annotate(TYPE, "training").requests(**{resource: 1}).limits(**{resource: 1})
    for name, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{name.replace('_', '-')}", value)
    workload = read_workload(pod.obj(), "default", {}, policy).workload
    assert workload is not None
    edits: Any = gpu_product(workload, policy)
    return {edit.requirement.key: edit.requirement.values for edit in edits if isinstance(edit, RequireNode)}


@pytest.mark.parametrize(
    ("resource", "label"),
    [
        pytest.param("nvidia.com/gpu", "nvidia.com/cuda.driver-version.major", id="the vendor's own label"),
        pytest.param("huawei.com/npu", "huawei.com/npu.driver-version", id="a vendor without one"),
    ],
)
def test_the_driver_label_is_the_vendors_or_made_of_the_card(resource: str, label: str) -> None:
    assert required_labels(policy_with(), resource, gpu_driver="550") == {label: ("549",)}


def test_memory_and_count_labels_are_made_of_the_card() -> None:
    labels = required_labels(policy_with(), "hygon.com/dcu", gpu_memory="40Gi", gpu_count="4")
    least_mib = 40 * 1024 * 95 // 100
    assert labels == {"hygon.com/dcu.memory": (str(least_mib - 1),), "hygon.com/dcu.count": ("3",)}


def test_memory_in_values_with_a_unit_is_one_of_those_that_are_large_enough() -> None:
    labels = required_labels(policy_with(), "amd.com/gpu", gpu_memory="190Gi")
    assert labels == {"amd.com/gpu.vram": ("192G", "256G", "288G", "432G")}


@pytest.mark.parametrize(
    ("unit", "more_than"),
    # 80Gi less 5 %, rounded up to the unit, less 1 for Gt.
    [("B", "81604378623"), ("MB", "81604"), ("MiB", "77823"), ("GB", "81"), ("GiB", "75")],
)
def test_memory_is_compared_in_the_unit_of_the_label(unit: str, more_than: str) -> None:
    policy = accelerator_policy(memory=["example.com/memory"], memoryUnit=unit)
    assert required_labels(policy, "nvidia.com/gpu", gpu_memory="80Gi") == {"example.com/memory": (more_than,)}


def accelerator_policy(**labels: Any) -> Policy:
    return policy_with(
        accelerators=[
            {"name": "nvidia", "resources": ["nvidia.com/gpu"], "card": "nvidia.com/gpu", "labels": labels},
        ]
    )


OTHERS = RequireNode(NodeLabelRequirement("a", "In", ("x", "y")), ("b",))


def terms_with(edit: RequireNode, *terms: Any) -> list[Any]:
    """The terms of a pod after the edit, which changes nothing the second time."""
    affinity = {"nodeAffinity": {REQUIRED_NODE[-1]: {"nodeSelectorTerms": list(terms)}}} if terms else {}
    editor = PodEditor({"spec": {"affinity": affinity}})
    edit.apply(editor)
    made: list[Any] = editor.get(*REQUIRED_NODE, "nodeSelectorTerms")
    again = PodEditor(editor.pod)
    assert not edit.apply(again).changed
    return made


def on(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([], [[on("a", "x", "y")], [on("b", "x", "y")]], id="no terms"),
        pytest.param(
            [[on("z", "1")]],
            [[on("z", "1"), on("a", "x", "y")], [on("z", "1"), on("b", "x", "y")]],
            id="a term is copied",
        ),
        pytest.param([[on("b", "x")]], [[on("b", "x")]], id="a term that meets it by another label stays"),
        pytest.param(
            [[on("a", "w")]], [[on("a", "w"), on("b", "x", "y")]], id="a label that the user excludes is left out"
        ),
        pytest.param(
            [[on("a", "w"), on("b", "w")]],
            [[on("a", "w"), on("b", "w"), on("a", "x", "y")]],
            id="the user excludes all labels",
        ),
    ],
)
def test_a_node_needs_one_of_several_labels(before: list[Any], after: list[Any]) -> None:
    terms = terms_with(OTHERS, *({"matchExpressions": each} for each in before))
    assert [each["matchExpressions"] for each in terms] == after


def test_copied_terms_keep_their_fields() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n"]}]
    terms = terms_with(OTHERS, {"matchFields": fields})
    assert terms == [
        {"matchFields": fields, "matchExpressions": [on("a", "x", "y")]},
        {"matchFields": fields, "matchExpressions": [on("b", "x", "y")]},
    ]


def test_too_many_copies_are_refused() -> None:
    term = {"matchExpressions": [on("z", *(f"value-{number}" for number in range(100)))]}
    with pytest.raises(PodTooLargeError):
        terms_with(OTHERS, *[term] * 2000)


@pytest.mark.parametrize(
    ("selector", "warnings"),
    [pytest.param({"a": "w"}, 0, id="another label can match"), pytest.param({"a": "w", "b": "w"}, 1, id="none can")],
)
def test_a_node_selector_contradicts_if_it_excludes_every_label(selector: dict[str, str], warnings: int) -> None:
    effect = OTHERS.apply(PodEditor({"spec": {"nodeSelector": selector}}))
    assert len(effect.warnings) == warnings


POOLS = tuple((weight, NodeLabelRequirement("a", "In", (value,))) for weight, value in ((9, "x"), (5, "y"), (1, "z")))
TERMS = [{"weight": weight, "preference": {"matchExpressions": [each.to_json()]}} for weight, each in POOLS]


@pytest.mark.parametrize("present", [*product((False, True), repeat=3)])
@pytest.mark.parametrize("index", range(3))
def test_preferences_of_the_policy_are_those_without_a_gap_and_others_are_the_users(
    index: int, present: tuple[bool, ...]
) -> None:
    """An earlier admission adds them in the policy's order, so one after a missing one is that of the user."""
    before = [each for each, is_present in zip(TERMS, present, strict=True) if is_present]
    editor = PodEditor({"spec": {"affinity": {"nodeAffinity": {PREFERRED_NODES[-1]: before}}}})
    effect = PreferNode(*POOLS[index], POOLS).apply(editor)

    without_gap = next((number for number, is_present in enumerate(present) if not is_present), 3)
    users = [number for number in range(3) if present[number] and number >= without_gap]
    # The requirement itself is no contradiction.
    is_added = not present[index] and not users
    assert effect.changed is is_added
    assert editor.get(*PREFERRED_NODES) == [*before, *([TERMS[index]] if is_added else [])]
    assert bool(effect.warnings) is (not present[index] and bool(users))


@pytest.mark.parametrize("changed", ["weight", "matchFields"])
def test_a_preference_with_another_weight_or_for_a_node_is_that_of_the_user(changed: str) -> None:
    (theirs,) = TERMS[:1]
    if changed == "weight":
        theirs = {**theirs, "weight": 8}
    else:
        theirs = {**theirs, "preference": {**theirs["preference"], "matchFields": [{"key": "metadata.name"}]}}  # type: ignore[dict-item]
    effect = PreferNode(*POOLS[1], POOLS).apply(
        PodEditor({"spec": {"affinity": {"nodeAffinity": {PREFERRED_NODES[-1]: [theirs]}}}})
    )

    assert (effect.changed, effect.kept_value) == (False, "preference for a")


VALUES = (None, "x", "w")


@pytest.mark.parametrize(("a", "b"), [*product(VALUES, VALUES)])
def test_a_node_selector_leaves_no_node_if_it_excludes_each_label(a: str | None, b: str | None) -> None:
    selector = {key: value for key, value in (("a", a), ("b", b)) if value is not None}
    single, either = (
        RequireNode(NodeLabelRequirement("a", "In", ("x", "y")), others).apply(
            PodEditor({"spec": {"nodeSelector": selector}})
        )
        for others in ((), ("b",))
    )

    assert bool(single.warnings) is (a == "w")
    assert bool(either.warnings) is (a == b == "w")


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("others", [(), ("b",)])
def test_a_pod_grows_by_no_byte_too_many(others: tuple[str, ...], over: int) -> None:
    """With another label, the term is copied, too; the term has an even number of bytes."""
    term = {"matchExpressions": [on("z", "zz")]}
    copied = len(orjson.dumps(term)) if others else 0
    assert copied % 2 == 0
    least = NodeLabelRequirement("a", "In", ("",)).size_bytes
    length = (LARGEST_GROWTH_BYTES - copied) // (1 + len(others)) - least
    edit = RequireNode(NodeLabelRequirement("a", "In", ("v" * (length + over),)), others)

    if over:
        with pytest.raises(PodTooLargeError):
            terms_with(edit, term)
    else:
        assert len(terms_with(edit, term)) == 1 + len(others)
