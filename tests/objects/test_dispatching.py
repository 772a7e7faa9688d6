"""A costly workload object is left to the worker thread, so that the pods of others do not wait for it."""

import asyncio
import time

import orjson
import pytest

from tests.support.admission import TYPE, policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.workloads import SAMPLES
from tests.support.servers.server import World, arrival, review_bytes
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.serving.clock import rfc3339_now
from webhook.serving.scheduling.dispatcher import SMALL_BYTES

DEPLOYMENT = SAMPLES[0]
NODE = make_node_object(
    "n", labels={"maip.mxsf.io/node.usage": "training"}, capacity={"nvidia.com/gpu": 2_000_000, "pods": 2_000_000}
)


@pytest.mark.slow
def test_an_object_with_a_million_replicas_is_left_to_the_worker() -> None:
    template = make_pod("").gpu(1).label("app", "web").annotate(TYPE, "training").template()
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    body = review_bytes(DEPLOYMENT.object(template, replicas=1_000_000), kind=kind, resource=kind)
    view = ClusterView(snapshot_from_documents([Document("cluster", NODE)]), scheduler_for(policy_with()))
    world = World(cluster=view, clock=time.monotonic)

    async def story() -> bytes:
        dispatcher = world.dispatcher()
        answer = asyncio.ensure_future(dispatcher.answer(body, arrival(rfc3339_now())))
        await asyncio.sleep(0)
        assert dispatcher.waiting == 1
        found = await answer
        dispatcher.close()
        return found.body

    assert len(body) < SMALL_BYTES
    warnings = orjson.loads(asyncio.run(story()))["response"]["warnings"]
    assert warnings[0].startswith(("placement check: Unknown: at least ", "placement check: at least 1000 of 1000000"))
    assert [record.kind for record in world.records] == ["Deployment"]
