"""What is read of a mutated pod, and the memory that it takes."""

from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from tests.serving.decisions.decided import decided, evaluated
from tests.support.admission import DOMAIN, TYPE
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.admission.mutated_pod import MAX_SCORED_BYTES, Mutated, as_created
from webhook.kube.deadline import never
from webhook.kube.pod.pod_status import MISSING
from webhook.kube.pod.pod_view import PodView
from webhook.placement.scorer import PodSignature
from webhook.serving.decisions.decision_cache import DecisionCache

TRAINING = make_pod("a").annotate(TYPE, "training")


def test_each_operation_counts_for_a_kibibyte_of_memory() -> None:
    used_bytes, operations = [], []
    for pod in (TRAINING.spec(schedulerName="volcano"), TRAINING):
        decisions = DecisionCache()
        operations.append(len(orjson.loads(decided(decisions, pod, cluster=None).answer.patch)))
        used_bytes.append(decisions.caches["decisions"][1].used_bytes)
        result = evaluated(pod)
        assert isinstance(result, Mutated)
        assert not result.injection.warnings

    assert operations[0] < operations[1]
    assert used_bytes[1] - used_bytes[0] == 1024 * (operations[1] - operations[0])


def test_each_character_of_a_warning_counts_four_bytes() -> None:
    used_bytes, characters = [], []
    for key in ("x", "x" * 40):
        decisions, pod = DecisionCache(), TRAINING.annotate(f"{DOMAIN}/{key}", "y")
        result = evaluated(pod)
        assert isinstance(result, Mutated)
        characters.append(sum(map(len, result.injection.warnings)))
        decided(decisions, pod, cluster=None)
        used_bytes.append(decisions.caches["decisions"][1].used_bytes)

    assert characters[0] < characters[1]
    assert used_bytes[1] - used_bytes[0] == 4 * (characters[1] - characters[0])


def test_what_is_read_of_a_pod_counts_once_it_is_read() -> None:
    result = evaluated(TRAINING)
    assert isinstance(result, Mutated)
    sizes = [result.size_bytes]
    assert isinstance(signature := result.signature, PodSignature)
    sizes.append(result.size_bytes)
    assert result.waiting is not None
    sizes.append(result.size_bytes)

    assert sizes == [0, signature.size_bytes, 3 * signature.size_bytes]


def test_what_the_deadline_left_unread_is_read_for_the_next_equal_pod() -> None:
    tolerations = [{"key": f"key-{number}", "operator": "Exists"} for number in range(2000)]
    result = evaluated(TRAINING.spec(tolerations=tolerations))
    assert isinstance(result, Mutated)
    content = result.content
    result.bind(content, lambda: True)
    assert result.known_signature is None
    assert isinstance(result.signature, str)
    result.release()
    result.bind(content, never)
    signature: object = result.signature

    assert isinstance(signature, PodSignature)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_fields_that_are_read_of_a_pod_are_bounded_and_no_others(over: int) -> None:
    """The environment, here the larger part, is not counted."""
    environment = [{"name": "A", "value": "x" * MAX_SCORED_BYTES}]

    def reading(length: int) -> PodSignature | str:
        pod = TRAINING.node_selector("key", "x" * length).obj()
        pod["spec"]["containers"][0]["env"] = environment
        result = evaluated(PodBuilder(pod))
        assert isinstance(result, Mutated)
        assert "x" * length in str(result.pod["spec"]["nodeSelector"])
        return result.signature

    view = PodView.of(_mutated(TRAINING.node_selector("key", "")))
    assert view is not None
    read = replace(view, metadata=replace(view.metadata, annotations=MISSING)).created()
    found = reading(MAX_SCORED_BYTES - len(read) + over)

    assert isinstance(found, PodSignature) is (over <= 0)
    if isinstance(found, str):
        assert found.endswith("more than 256 KiB, beside environment, commands and mounts")


def _mutated(pod: PodBuilder) -> dict[str, Any]:
    result = evaluated(pod)
    assert isinstance(result, Mutated)
    return result.pod


def test_a_bound_result_is_that_of_the_other_pod_and_a_released_one_keeps_what_was_read() -> None:
    result = evaluated(TRAINING)
    assert isinstance(result, Mutated)
    first, signature, waiting = result.pod, result.signature, result.waiting
    other = evaluated(make_pod("b").annotate(TYPE, "training"))
    assert isinstance(other, Mutated)
    assert result.pod is first
    result.release()
    result.bind(other.content, never)

    assert result.content is other.content
    assert result.pod == first
    assert result.pod is not first
    assert (result.known_signature, result.waiting) == (signature, waiting)
    assert result.like is None


@pytest.mark.parametrize(("namespace", "asked", "wanted"), [("", "", ""), ("", "lab", "lab"), ("own", "lab", "own")])
@pytest.mark.parametrize("status", [None, {}, {"phase": "Running"}])
def test_a_pod_is_stored_with_its_namespace_and_without_status(
    namespace: str, asked: str, wanted: str, status: dict[str, str] | None
) -> None:
    pod = make_pod("a").obj() | ({"status": status} if status is not None else {})
    pod["metadata"] |= {"namespace": namespace} if namespace else {}
    before = orjson.dumps(pod)
    stored = as_created(pod, asked)

    assert orjson.dumps(pod) == before
    assert stored["metadata"].get("namespace", "") == wanted
    assert stored.get("status") == (None if status is None else {})
    assert {**stored, "metadata": 0, "status": 0} == {**pod, "metadata": 0, "status": 0}
