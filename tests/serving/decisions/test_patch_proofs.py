"""One answer in a number is proven before it leaves, with its own pod; a wrong patch is an internal error."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
import structlog

from tests.support.admission import DOMAIN, PRODUCT, TYPE, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.workloads import SAMPLES, Object
from tests.support.servers.server import Clock, World, review_bytes
from webhook.mutation.edits.editor import PodEditor
from webhook.mutation.edits.edits import CHANGED, AddLabel, Edit, Effect
from webhook.mutation.mutate import Rule
from webhook.mutation.rules import RULES
from webhook.serving.decisions.admissions import Answer
from webhook.serving.decisions.patch_proofs import MAX_BYTES

TRAINING = make_pod("trainer").annotate(TYPE, "training").annotate(PRODUCT, "NVIDIA-H20").label("app", "web")
DEPLOYMENT = next(each for each in SAMPLES if (each.group, each.kind) == ("apps", "Deployment"))


@dataclass(frozen=True, slots=True)
class RemoveLabels:
    """An edit that breaks the second invariant."""

    def apply(self, pod: PodEditor) -> Effect:
        pod.remove("metadata", "labels")
        return CHANGED


@dataclass(frozen=True, slots=True)
class ReplaceApp:
    """Another one."""

    def apply(self, pod: PodEditor) -> Effect:
        pod.set("ours", "metadata", "labels", "app")
        return CHANGED


def rules_with(edit: Edit) -> Mapping[str, Rule]:
    return {**RULES, "Wrong": lambda *_: (edit,)}


def answer_to(world: World, pod: PodBuilder, number: int = 0) -> Answer:
    return world.admissions().answer(review_bytes(pod.obj(), uid=f"uid-{number}"), 1000.0, None)


def proofs(world: World) -> tuple[float, float]:
    """The proven and the failed."""
    proven, failed = (world.count("patch_proofs_total", result=result) for result in ("proven", "failed"))
    return proven, failed


@pytest.mark.parametrize("edit", [RemoveLabels(), ReplaceApp()], ids=["a rule that removes", "a rule that replaces"])
def test_a_rule_that_takes_a_value_of_the_user_is_an_internal_error(
    edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webhook.admission.evaluation.RULES", rules_with(edit))
    world = World()

    with structlog.testing.capture_logs() as logs:
        answer = answer_to(world, TRAINING)

    assert (answer.status, proofs(world)) == (500, (0, 1))
    assert b"decision-1" in answer.body
    (record,) = world.records
    assert (record.outcome, record.patch) == ("Error", ())
    assert record.error is not None
    assert "the patch removes or replaces what the user wrote: /metadata/labels" in record.error
    assert world.policy.identity in record.error
    (line,) = logs
    assert (line["event"], line["decision"]) == ("admission failed", "decision-1")
    assert "the patch removes" in str(line["exc_info"])
    assert world.count("admission_requests_total", outcome="Error", workload_type="") == 1


def test_cached_decisions_are_proven_with_the_pod_of_their_own_request(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    admissions = world.admissions()
    first = admissions.answer(review_bytes(TRAINING.obj()), 1000.0, None)
    monkeypatch.setattr("webhook.admission.evaluation.RULES", rules_with(AddLabel("team", "ours", "")))

    second = admissions.answer(review_bytes(TRAINING.obj()), 1000.0, None)

    assert (first.status, second.status, proofs(world)) == (200, 500, (1, 1))
    assert world.records[-1].error is not None
    assert "the patch does not give what was judged" in world.records[-1].error
    assert "/metadata/labels/team" in world.records[-1].error


@pytest.mark.parametrize(("one_in", "proven"), [(0, 0), (1, 20), (4, 5), (100, 1)])
def test_one_answer_in_a_number_is_proven(one_in: int, proven: int) -> None:
    clock = Clock()
    world = World(prove_patches=one_in, clock=clock)
    admissions = world.admissions()

    for number in range(20):
        clock.seconds += 1
        pod = make_pod(f"trainer-{number}").annotate(TYPE, "training")
        admissions.answer(review_bytes(pod.obj(), uid=f"uid-{number}"), 1000.0, None)

    assert proofs(world) == (proven, 0)


@pytest.mark.parametrize(("one_in", "proven"), [(1, 100), (2, 10)])
def test_ten_answers_a_second_are_proven_at_most(one_in: int, proven: int) -> None:
    clock = Clock()
    world = World(prove_patches=one_in, clock=clock)
    admissions = world.admissions()

    for number in range(100):
        clock.seconds += 1 / 128
        admissions.answer(review_bytes(TRAINING.obj(), uid=f"uid-{number}"), 1000.0, None)

    found, failed = proofs(world)
    assert found == pytest.approx(proven, abs=3 * (one_in > 1))
    assert failed == 0


def test_pods_that_alternate_are_all_proven_at_times() -> None:
    """A Job's two kinds of pods, one after the other, and one proof in two: a fixed step would see one kind only."""
    clock = Clock()
    world = World(prove_patches=2, clock=clock)
    admissions = world.admissions()
    proven = set()

    for number in range(40):
        clock.seconds += 1
        before = proofs(world)
        kind = "training" if number % 2 else "inference"
        admissions.answer(review_bytes(make_pod().annotate(TYPE, kind).obj(), uid=f"uid-{number}"), 1000.0, None)
        if proofs(world) != before:
            proven.add(kind)

    assert proven == {"training", "inference"}


@pytest.mark.parametrize(
    "pod", [make_pod("web"), make_pod().annotate(TYPE, "trainning")], ids=["a bypassed pod", "a denied pod"]
)
def test_an_answer_without_a_patch_is_not_counted(pod: PodBuilder) -> None:
    world = World()

    assert answer_to(world, pod).status == 200
    assert proofs(world) == (0, 0)


def test_a_large_pod_is_not_proven_and_gets_its_patch() -> None:
    world = World()

    answer = answer_to(world, TRAINING.annotate("notes", "x" * MAX_BYTES))

    assert b'"patch"' in answer.body
    assert proofs(world) == (0, 0)


def test_a_pod_nested_too_deeply_to_be_compared_gets_its_patch() -> None:
    world = World()
    deep = b'{"a":' * 400 + b"1" + b"}" * 400
    body = review_bytes(TRAINING.obj()).replace(b'"spec":{', b'"spec":{"unknown":' + deep + b",")

    answer = world.admissions().answer(body, 1000.0, None)

    assert b'"patch"' in answer.body
    assert proofs(world) == (0, 0)


def deployment(**labels: str) -> bytes:
    template = TRAINING.template()
    template["metadata"]["labels"] |= labels
    content: Object = DEPLOYMENT.object(template, 2)
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    return review_bytes(content, kind=kind, resource={"group": "apps", "version": "v1", "resource": "deployments"})


def test_the_patch_of_a_template_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(policy=policy_with(workloadObjects={"mutateTemplates": True}))

    answer = world.admissions().answer(deployment(), 1000.0, None)

    response: dict[str, Any] = orjson.loads(answer.body)["response"]
    operations = orjson.loads(base64.b64decode(response["patch"]))
    assert any(each["path"].startswith("/spec/template/spec/") for each in operations)
    assert proofs(world) == (1, 0)


def test_a_template_that_loses_a_value_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.admission.evaluation.RULES", rules_with(ReplaceApp()))
    world = World(policy=policy_with(workloadObjects={"mutateTemplates": True}))

    answer = world.admissions().answer(deployment(), 1000.0, None)

    assert (answer.status, proofs(world)) == (500, (0, 1))
    assert world.records[0].error is not None
    assert "/spec/template/metadata/labels/app" in world.records[0].error
    assert DOMAIN not in world.records[0].error
