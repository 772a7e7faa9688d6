"""Signs of schedulers in the API groups and Leases of a cluster."""

from typing import Any

import pytest

from webhook.backends.kai import Kai
from webhook.backends.volcano import Volcano
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence

Object = dict[str, Any]


def lease(name: Any, holder: Any = None) -> Object:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder}}


def test_names_and_holders_of_leases_and_names_of_groups_are_kept() -> None:
    groups = {"groups": [{"name": "apps"}, {"name": "scheduling.run.ai"}]}
    leases = {"items": [lease("second-scheduler", "host_1"), lease("kube-scheduler", "host_1"), {"metadata": {}}]}

    evidence = SchedulerEvidence.of(groups, leases)

    assert evidence == SchedulerEvidence(
        frozenset({"apps", "scheduling.run.ai"}), "host_1\nkube-scheduler\nsecond-scheduler"
    )
    shown = [evidence.shows("kai-scheduler", Kai.api_groups), evidence.shows("second-scheduler", ())]
    assert [*shown, evidence.shows("volcano", Volcano.api_groups)] == [True, True, False]


@pytest.mark.parametrize("items", [None, "x", [None], [{"name": 1}], [lease(1, 2)], [{"metadata": "x", "spec": []}]])
def test_malformed_items_are_no_evidence(items: Any) -> None:
    evidence = SchedulerEvidence.of({"groups": items}, {"items": items})
    assert evidence == SchedulerEvidence(frozenset(), "")
