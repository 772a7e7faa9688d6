"""What is read of a mutated pod, and the memory that it takes."""

from tests.serving.decisions.decided import decided, evaluated
from tests.support.admission import DOMAIN, TYPE
from tests.support.objects.builders import make_pod
from webhook.admission.mutated_pod import Mutated
from webhook.kube.deadline import never
from webhook.placement.scorer import PodSignature
from webhook.serving.decisions.decision_cache import DecisionCache

TRAINING = make_pod("a").annotate(TYPE, "training")


def test_each_operation_counts_for_a_kibibyte_of_memory() -> None:
    used_bytes, operations = [], []
    for pod in (TRAINING.spec(schedulerName="volcano"), TRAINING):
        decisions = DecisionCache()
        operations.append(len(decided(decisions, pod, cluster=None).answer.operations()))
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
