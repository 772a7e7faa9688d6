"""Which pod of the table a pod of the cluster is, and which pods are given up."""

import pytest

from tests.support.objects.builders import make_pod
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.placement.waiting.pending_placement import WaitingPod
from webhook.placement.waiting.pod_table import PodTable

POD = WaitingPod.of(make_pod("p").obj())


def identity(name: str = "", generate_name: str = "j-", controller: str = "u", token: str = "") -> PodIdentity:
    return PodIdentity("x", name, generate_name, controller, token)


def admit(table: PodTable, admitted: PodIdentity, until_seconds: float = 60) -> int:
    return table.admit(admitted, 0, b"", POD, until_seconds)


def take(table: PodTable, seen: PodIdentity) -> int | None:
    """Remove and return the pod that `seen` is."""
    number = table.find(seen)
    if number is not None:
        table.remove(number)
    return number


def give_up(table: PodTable, now_seconds: float) -> list[int]:
    numbers = []
    while table.unseen and (number := table.given_up(now_seconds)) is not None:
        table.remove(number)
        numbers.append(number)
    return numbers


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
    table = PodTable()
    number = admit(table, admitted)
    assert take(table, seen) == number
    assert take(table, seen) is None
    assert len(table) == 0


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
    table = PodTable()
    admit(table, admitted)
    assert table.find(seen) is None


def test_pods_of_one_controller_are_found_in_their_order() -> None:
    table = PodTable()
    numbers = [admit(table, identity()) for _ in range(3)]
    assert [take(table, identity(f"j-{number}")) for number in range(4)] == [*numbers, None]


def test_only_a_name_or_a_token_proves_that_a_pod_is_the_same() -> None:
    table = PodTable()
    admit(table, identity())
    number = admit(table, identity(token="a"))
    assert table.find_admitted(identity()) is None
    assert table.find_admitted(identity(token="a")) == number


def test_pods_are_given_up_after_their_time() -> None:
    table = PodTable()
    first, second = admit(table, identity("p"), 10), admit(table, identity("q"), 20)
    assert give_up(table, 9) == []
    assert give_up(table, 10) == [first]
    assert give_up(table, 100) == [second]


def test_the_oldest_pods_are_given_up_first_when_memory_is_short() -> None:
    table = PodTable(budget_bytes=20_000 + POD.signature.size_bytes)
    numbers = [admit(table, identity(f"p{number}")) for number in range(5)]
    assert give_up(table, 0) == numbers[:3]
