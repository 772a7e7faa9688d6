"""The age of a Lease, by the clock of the API server where that is known."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webhook.cluster.objects.lease import is_expired, last_renewal, newest_write, time_of

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).isoformat()


def lease(renewed: float, written: float | None = None, namespace: str = "kube-system") -> dict[str, Any]:
    fields: dict[str, Any] = {"f:spec": {"f:renewTime": {}, "f:holderIdentity": {}}}
    managed = [] if written is None else [{"time": at(written), "fieldsV1": fields}]
    return {
        "metadata": {"namespace": namespace, "creationTimestamp": at(-3600), "managedFields": managed},
        "spec": {"renewTime": at(renewed), "leaseDurationSeconds": 15},
    }


@pytest.mark.parametrize("text", [None, 3, "", "noon", "2026-01-01T12:00:00"])
def test_a_time_has_a_zone(text: object) -> None:
    assert time_of(text) is None


def test_a_write_of_the_holder_counts_before_its_clock() -> None:
    assert last_renewal(lease(renewed=7)) == NOW + timedelta(seconds=7)
    assert last_renewal(lease(renewed=7, written=-5)) == NOW - timedelta(seconds=5)


@pytest.mark.parametrize(("renewed", "expired"), [(-15 - 300, False), (-15 - 301, True)])
def test_a_lease_expires_five_minutes_after_its_duration(renewed: float, expired: bool) -> None:
    assert is_expired(lease(renewed), NOW) == expired


def test_a_lease_without_a_duration_does_not_expire() -> None:
    assert not is_expired({"spec": {"renewTime": at(-10_000)}}, NOW)


def test_the_newest_write_is_one_in_kube_system() -> None:
    leases = [lease(0, written=-9), lease(0, written=-4), lease(0, written=0, namespace="team-a")]

    assert newest_write(leases) == NOW - timedelta(seconds=4)
    assert newest_write([]) is None


def test_newest_write_of_the_holder_since_the_creation_counts() -> None:
    several = lease(renewed=7, written=-5)
    (first,) = several["metadata"]["managedFields"]
    several["metadata"]["managedFields"] += [first | {"time": at(-2)}, first | {"time": at(-9)}]

    assert last_renewal(several) == NOW - timedelta(seconds=2)
    assert last_renewal(lease(renewed=7, written=-3600)) == NOW + timedelta(seconds=7)
