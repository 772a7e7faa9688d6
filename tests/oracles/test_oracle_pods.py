"""The fast placement check gives the answers of the plain one for pods that mind other pods."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.oracles.plain_answer import as_plain
from tests.oracles.strategies_pods import clusters, pending_pods
from tests.support.effort import examples
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.placement.scheduler import Scheduler

Object = dict[str, Any]


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cluster=clusters(), pods=st.lists(pending_pods(), min_size=1, max_size=3))
def test_fast_and_plain_placement_agree_on_pods_and_their_peers(
    cluster: tuple[list[Object], list[Object], list[Object]], pods: list[Object]
) -> None:
    nodes, running, others = cluster
    snapshot = snapshot_from_documents(Document("cluster", each) for each in (*nodes, *running, *others))
    framework = Scheduler()
    for pod in (*pods, *pods):
        placement = framework.place(pod, snapshot)
        assert as_plain(placement) == oracle.place(pod, nodes, running, others)
        assert placement.unmodelled == ()
