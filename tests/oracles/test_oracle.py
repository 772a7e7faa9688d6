"""The fast placement check gives the answers of the plain one."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.oracles.strategies import clusters, pending_pods
from tests.support.effort import examples
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.framework.result import to_check_json
from webhook.placement.profiles.profile import PROFILES
from webhook.placement.scheduler import Scheduler

Object = dict[str, Any]


@pytest.mark.parametrize("profile", ["default", "binpack"])
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cluster=clusters(), pods=st.lists(pending_pods(), min_size=1, max_size=3))
def test_fast_and_plain_placement_agree(
    profile: str, cluster: tuple[list[Object], list[Object]], pods: list[Object]
) -> None:
    nodes, running = cluster
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*nodes, *running))
    framework = Scheduler(PROFILES[profile])
    for pod in (*pods, *pods):
        expected = oracle.place(pod, nodes, running, binpack=profile == "binpack")
        found = to_check_json("default/incoming", framework.place(pod, snapshot))
        # The oracle knows what kube-scheduler says, not what would do.
        found.pop("notSure", None)
        assert found == {
            "pod": "default/incoming",
            "verdict": expected.verdict,
            "node": expected.node,
            "nodes": {"total": expected.total, "feasible": expected.feasible},
            "message": expected.message,
            "scores": expected.scores,
            "suggestions": [],
            "unmodelled": [],
        }
