"""VolumeRestrictions: a claim for one pod."""

from tests.placement.framework.volumes import (
    KNOWN,
    all_kinds,
    place,
    pod_with,
    running_pod,
)
from tests.support.objects.storage import (
    make_pv,
    make_pvc,
    uses,
)

_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def test_claim_for_one_pod_in_use_anywhere_waits() -> None:
    claim = make_pvc("data", volume="v", accessModes=["ReadWriteOncePod"])
    running = running_pod("first", uses("data"))
    placement = place(pod_with("data"), *KNOWN, claim, make_pv("v"), running)
    assert (placement.verdict, placement.message) == ("Waiting", all_kinds(f"3 {_IN_USE}"))


def test_claim_of_the_same_name_in_another_namespace_is_another_claim() -> None:
    claim = make_pvc("data", volume="v", accessModes=["ReadWriteOncePod"])
    other = running_pod("first", uses("data"))
    other["metadata"]["namespace"] = "team-b"
    assert place(pod_with("data"), *KNOWN, claim, make_pv("v"), other).verdict == "Feasible"
