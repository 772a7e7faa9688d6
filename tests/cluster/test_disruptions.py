"""The limits on moving pods: the budgets of each namespace, if all of them are known."""

import pytest

from tests.support.objects.moves import running
from tests.support.preemption import budget
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.left_out import LeftOut
from webhook.cluster.objects.disruption_budget import DISRUPTION_BUDGET_KIND
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document

WEB = budget(1)
OTHER = budget(2)


@pytest.mark.parametrize(
    ("left_out", "are_known"),
    [
        pytest.param({}, True, id="all are there"),
        pytest.param({("ReplicaSet", "default"): {"a"}}, True, id="an object of another kind is left out"),
        pytest.param({(DISRUPTION_BUDGET_KIND, "default"): {"large"}}, False, id="one is too large"),
        pytest.param({(DISRUPTION_BUDGET_KIND, "elsewhere"): {"large"}}, False, id="one of another namespace is"),
    ],
)
def test_budgets_are_known_unless_one_is_left_out(
    left_out: dict[tuple[str, str], set[str]], *, are_known: bool
) -> None:
    """A pod may be selected by a budget that is left out, so that its eviction could not be allowed."""
    snapshot = Snapshot.of((), disruption_budgets=(WEB, OTHER), left_out=LeftOut(left_out))

    found = Disruptions.of(snapshot, [Document("f", running("p", "a").obj())])

    assert found.budgets == ({"default": [WEB, OTHER]} if are_known else None)
    assert [pod.name for pod in found.bound["a"]] == ["p"]


def test_budgets_of_a_cluster_that_does_not_list_them_are_not_known() -> None:
    assert Disruptions.of(Snapshot.of(()), []).budgets is None
    assert Disruptions.of(Snapshot.of((), disruption_budgets=()), []).budgets == {}
