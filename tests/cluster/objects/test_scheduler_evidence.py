"""Signs of schedulers in the API groups and Leases of a cluster."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webhook.backends.kai import Kai
from webhook.backends.volcano import Volcano
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence

Object = dict[str, Any]
NOW = datetime(2026, 5, 1, 8, tzinfo=UTC)


def lease(name: Any, holder: Any = None) -> Object:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder}}


def test_names_and_holders_of_leases_and_names_of_groups_are_kept() -> None:
    groups = {"groups": [{"name": "apps"}, {"name": "scheduling.run.ai"}]}
    leases = {"items": [lease("second-scheduler", "host_1"), lease("kube-scheduler", "host_1"), {"metadata": {}}]}

    evidence = SchedulerEvidence.of(groups, leases, NOW)

    assert evidence == SchedulerEvidence(
        frozenset({"apps", "scheduling.run.ai"}), "host_1\nkube-scheduler\nsecond-scheduler"
    )
    shown = [evidence.shows("kai-scheduler", Kai.api_groups), evidence.shows("second-scheduler", ())]
    assert [*shown, evidence.shows("volcano", Volcano.api_groups)] == [True, True, False]


@pytest.mark.parametrize("items", [None, "x", [None], [{"name": 1}], [lease(1, 2)], [{"metadata": "x", "spec": []}]])
def test_malformed_items_are_no_evidence(items: Any) -> None:
    evidence = SchedulerEvidence.of({"groups": items}, {"items": items}, NOW)
    assert evidence == SchedulerEvidence(frozenset(), "")


def ago(minutes: float) -> str:
    return (NOW - timedelta(minutes=minutes)).isoformat()


def renewed(minutes: float, *, seconds: Any = 15, written: float | None = None, created: float = 600) -> Object:
    """Return a Lease of Volcano that was renewed by its holder's clock, and `written` by that of the API server."""
    spec = {"holderIdentity": "volcano-0", "leaseDurationSeconds": seconds, "renewTime": ago(minutes)}
    metadata: Object = {"name": "volcano", "namespace": "volcano-system", "creationTimestamp": ago(created)}
    if written is not None:
        metadata["managedFields"] = [owned(written, "renewTime", "holderIdentity")]
    return {"metadata": metadata, "spec": spec}


def owned(minutes: float, *fields: str) -> Object:
    return {"time": ago(minutes), "fieldsV1": {"f:spec": {f"f:{each}": {} for each in fields}}}


@pytest.mark.parametrize(
    ("item", "counts"),
    [
        pytest.param(renewed(0), True, id="renewed"),
        pytest.param(renewed(4), True, id="its scheduler is restarted, or its clock is behind"),
        pytest.param(renewed(9), False, id="nine minutes old"),
        pytest.param(renewed(-60), True, id="of a clock that is ahead"),
        pytest.param(renewed(60, written=0), True, id="of a clock that is an hour behind"),
        pytest.param(renewed(-60, written=9), False, id="of a clock that was an hour ahead"),
        pytest.param(renewed(60, written=0, created=0), False, id="created with an old time"),
        pytest.param(renewed(9, seconds=3600), True, id="of a long duration"),
        pytest.param(renewed(9, seconds=None), True, id="without a duration"),
        pytest.param({**renewed(9), "spec": {"leaseDurationSeconds": 15, "renewTime": "x"}}, True, id="no time"),
        pytest.param(
            {**renewed(9), "spec": {"leaseDurationSeconds": 15, "renewTime": "2026-05-01T07"}}, True, id="no zone"
        ),
    ],
)
def test_a_lease_is_a_sign_while_it_is_renewed(item: Object, counts: bool) -> None:
    assert SchedulerEvidence.of({}, {"items": [item]}, NOW).shows("volcano", ()) is counts


def test_another_client_that_writes_the_time_renews_no_lease() -> None:
    item = renewed(9)
    item["metadata"]["managedFields"] = [owned(0, "renewTime"), owned(9, "holderIdentity")]
    assert not SchedulerEvidence.of({}, {"items": [item]}, NOW).shows("volcano", ())


def test_the_age_is_by_the_newest_lease_of_the_system_if_our_clock_differs() -> None:
    """Those of other namespaces can be written by users."""
    of_system = {
        "metadata": {"name": "apiserver-1", "namespace": "kube-system", "managedFields": [owned(0, "renewTime")]}
    }
    of_user = {"metadata": {"name": "x", "namespace": "u", "managedFields": [owned(-600, "renewTime")]}}
    for ours in (NOW + timedelta(hours=1), NOW - timedelta(hours=1)):
        shown = [
            SchedulerEvidence.of({}, {"items": [renewed(age), of_system, of_user]}, ours).shows("volcano", ())
            for age in (0, 9)
        ]
        assert shown == [True, False]
