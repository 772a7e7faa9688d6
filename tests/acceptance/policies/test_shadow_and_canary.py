"""Policies in force on a real API server: in shadow mode, and for a canary of the owners."""

from typing import Any

import pytest

from tests.acceptance.conftest import Webhook
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.admission import DOMAIN, TYPE, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.policy.exempt import owner_bucket

MARK = f"{DOMAIN}/placement-policy"
TRAINER = make_pod("trainer").annotate(TYPE, "training").gpu(1)


@pytest.mark.parametrize("pod", [TRAINER, TRAINER.annotate(TYPE, "no-such-type")], ids=["patched", "denied"])
def test_a_pod_in_shadow_mode_is_stored_as_it_was_sent(cluster: Cluster, webhook: Webhook, pod: PodBuilder) -> None:
    enforced = _outcome(cluster, pod)
    webhook.world.policy = policy_with(mode="shadow")

    answer = cluster.create(pod, dry_run=True)

    assert answer.warnings == []
    assert answer.object["spec"]["schedulerName"] == "default-scheduler"
    assert "affinity" not in answer.object["spec"]
    assert answer.object["metadata"]["annotations"] == pod.obj()["metadata"]["annotations"]
    record = webhook.world.records[-1]
    assert record.shadow is not None
    assert (record.outcome, record.shadow.outcome) == ("Bypassed", enforced)


def _outcome(cluster: Cluster, pod: PodBuilder) -> str:
    try:
        cluster.create(pod, dry_run=True)
    except ApiError:
        return "Denied"
    return "Patched"


def test_a_canary_treats_all_pods_of_an_owner_alike(cluster: Cluster, webhook: Webhook) -> None:
    webhook.world.policy = policy_with(canaryPercent=50)
    patched: dict[str, set[bool]] = {}
    for number in range(24):
        uid = f"uid-of-owner-{number % 8}"
        pod: dict[str, Any] = make_pod(f"canary-{number}").annotate(TYPE, "training").obj()
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": uid, "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
        stored = cluster.create(pod, dry_run=True).object
        patched.setdefault(uid, set()).add(MARK in stored["metadata"]["annotations"])
        assert patched[uid] == {owner_bucket(pod, cluster.namespace, "") < 50}
    assert {True, False} == {found for each in patched.values() for found in each}
