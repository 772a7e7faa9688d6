"""RuntimeClass: what a class adds to its pods, and pods that contradict it."""

import pytest

from tests.admission.api_server.completing import KATA, of, refusal, view
from tests.support.objects.api_server import Object
from webhook.admission.api_server.plugins import check_admitted, completed
from webhook.admission.api_server.runtime_class import with_runtime_class
from webhook.cluster.objects.runtime_class import RuntimeClass


def test_the_class_adds_overhead_nodes_and_tolerations() -> None:
    own = {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
    }

    found = of(view(KATA), runtimeClassName="kata", **own)

    spec = found.pod["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "500m"}, {"disk": "ssd", "rack": "r1"})
    assert spec["tolerations"] == [*own["tolerations"], {"key": "kata", "operator": "Exists"}]
    assert found.sources == ("RuntimeClass kata",)
    assert completed(found.pod, view(KATA)) == found


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"runtimeClassName": "gone"}, 'pod rejected: RuntimeClass "gone" not found'),
        (
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "kata", "nodeSelector": {"rack": "r2"}},
            "conflict: runtimeClass.scheduling.nodeSelector[rack] = r1; pod.spec.nodeSelector[rack] = r2",
        ),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
    ],
)
def test_pods_that_contradict_their_class_are_refused(spec: Object, words: str) -> None:
    assert refusal(view(KATA), **spec) == words


def test_class_is_unknown_while_the_classes_are() -> None:
    found = of(view(), runtimeClassName="kata")

    assert (
        found.unknown
        == "the RuntimeClass kata is not known: add runtimeclasses to the cluster file, or grant list and watch of them"
    )
    check_admitted(found.pod, view())


def test_of_several_contradictions_the_first_by_its_key_is_reported() -> None:
    selector = dict.fromkeys("cab", "theirs")
    pod = {"metadata": {}, "spec": {"nodeSelector": {"a": "theirs", "b": "own", "c": "own"}}}

    with pytest.raises(
        ValueError, match=r"^conflict: runtimeClass.scheduling.nodeSelector\[b\] = theirs; .*\[b\] = own$"
    ):
        with_runtime_class(pod, RuntimeClass("kata", None, selector, ()))
