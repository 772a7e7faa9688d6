"""Which admitted pod a pod of the cluster is."""

import pytest

from webhook.kube.pod.pod_identity import PodIdentity
from webhook.serving.waiting.admitted_pods import AdmittedPods


def identity(name: str = "", generate_name: str = "j-", controller: str = "u", token: str = "") -> PodIdentity:
    return PodIdentity("x", name, generate_name, controller, token)


@pytest.mark.parametrize(
    ("admitted", "seen"),
    [
        pytest.param(identity("p"), identity("p"), id="by its name"),
        pytest.param(identity(token="a"), identity("j-1", token="a"), id="by its token"),
        pytest.param(identity(), identity("j-1"), id="by its controller"),
        pytest.param(identity(generate_name="", controller=""), identity("p", "", ""), id="a pod without anything"),
    ],
)
def test_a_pod_is_found(admitted: PodIdentity, seen: PodIdentity) -> None:
    pods = AdmittedPods()
    pods.add(1, admitted, 60, 1)
    assert pods.take(seen) == 1
    assert pods.take(seen) is None
    assert len(pods) == 0


@pytest.mark.parametrize(
    ("admitted", "seen"),
    [
        pytest.param(identity("p"), identity("q"), id="of another name"),
        pytest.param(identity(token="a"), identity("j-1", token="b"), id="of another token"),
        pytest.param(identity(), identity("k-1", "k-"), id="of another generateName"),
        pytest.param(identity(), identity("j-1", controller="v"), id="of another controller"),
        pytest.param(identity("p"), identity("p")._replace(namespace="y"), id="of another namespace"),
    ],
)
def test_another_pod_is_not_found(admitted: PodIdentity, seen: PodIdentity) -> None:
    pods = AdmittedPods()
    pods.add(1, admitted, 60, 1)
    assert pods.take(seen) is None


def test_pods_of_one_controller_are_found_in_their_order() -> None:
    pods = AdmittedPods()
    for number in (1, 2, 3):
        pods.add(number, identity(), 60, 1)
    assert [pods.take(identity(f"j-{number}")) for number in range(4)] == [1, 2, 3, None]


def test_only_a_name_or_a_token_proves_that_a_pod_is_the_same() -> None:
    pods = AdmittedPods()
    pods.add(1, identity(), 60, 1)
    pods.add(2, identity(token="a"), 60, 1)
    assert pods.take_same(identity()) is None
    assert pods.take_same(identity(token="a")) == 2


def test_pods_are_given_up_after_their_time() -> None:
    pods = AdmittedPods()
    pods.add(1, identity("p"), 10, 1)
    pods.add(2, identity("q"), 20, 1)
    assert [*pods.take_given_up(9)] == []
    assert [*pods.take_given_up(10)] == [1]
    assert [*pods.take_given_up(100)] == [2]


def test_the_oldest_pods_are_given_up_first_when_memory_is_short() -> None:
    pods = AdmittedPods(budget_bytes=100)
    for number in range(5):
        pods.add(number, identity(f"p{number}"), 60, 40)
    assert [*pods.take_given_up(0)] == [0, 1, 2]
