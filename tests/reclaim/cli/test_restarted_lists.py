"""The report on a live cluster whose lists start again, because their continue token has expired."""

from collections import defaultdict
from typing import Any

import orjson
import pytest

from tests.controlplane.cluster import Cluster
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.devices import exactly, make_resource_claim
from tests.support.on_cluster.held import ago
from tests.support.programs.command import Run
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import GONE, ApiServer, Query

HOUR = 3600
DRIVER = "gpu.nvidia.com"


def test_a_pod_that_is_deleted_before_a_list_starts_again_is_not_reported(
    cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.make_nodes(make_node_object("n1", capacity={"nvidia.com/gpu": 8}))
    waiting = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    statuses = [{**waiting, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    for name in ("stays", "gone"):
        cluster.create(make_pod(name).gpu(2).node_name("n1"))
        status = {"status": {"startTime": ago(HOUR), "containerStatuses": statuses}}
        cluster.client.patch("Pod", name, status, namespace=cluster.namespace, subresource="status")
    for name, phase in (("bert-0", "Running"), ("bert-1", "Succeeded")):
        pod = make_pod(name).gpu(2).node_name("n1").annotate("maip.mxsf.io/gang", "bert")
        cluster.create(pod.annotate("maip.mxsf.io/gang-size", "2"))
        status = {"status": {"startTime": ago(HOUR), "phase": phase}}
        cluster.client.patch("Pod", name, status, namespace=cluster.namespace, subresource="status")
    body, asked = ApiServer.body, defaultdict[str, int](int)

    async def expiring(server: ApiServer, path: str, query: Query, most_bytes: int) -> bytes:
        found = await body(server, path, {key: query[key] for key in query if key != "continue"}, most_bytes)
        if path != "/api/v1/pods":
            return found
        selected = str(query.get("fieldSelector"))
        asked[selected] += 1
        match asked[selected]:
            case 1:
                page = orjson.loads(found)
                page["metadata"]["continue"] = "token"
                return orjson.dumps(page)
            case 2:
                name = "bert-1" if "!=Running" in selected else "gone"
                cluster.delete_pod(cluster.client.get("Pod", name, cluster.namespace))
                raise ApiServerError("GET /api/v1/pods: 410 The provided continue parameter is too old", GONE)
        return found

    monkeypatch.setattr(ApiServer, "body", expiring)
    given = ("--kubeconfig", cluster.control_plane.kubeconfig, "-n", cluster.namespace, "-o", "json")
    outcome = run("reclaim", *given)

    # With a completed pod, the gang would not be reported.
    assert sorted(each["name"] for each in orjson.loads(outcome.output)["held"]) == ["bert", "stays"]
    assert set(asked.values()) == {3}


def test_a_claim_that_is_deleted_before_a_list_starts_again_is_not_reported(
    cluster: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.make_nodes(make_node_object("n1"))
    result = {"request": "cards", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    status = {"allocation": {"devices": {"results": [result]}}}
    given: dict[str, Any] = {"namespace": cluster.namespace, "api_version": "resource.k8s.io/v1"}
    for name in ("stays", "gone"):
        claim = make_resource_claim(name, exactly(device_class=DRIVER))
        cluster.client.create({**claim, "metadata": {"name": name, "namespace": cluster.namespace}})
        cluster.client.patch("ResourceClaim", name, {"status": status}, subresource="status", **given)
    body, asked = ApiServer.body, list[str]()

    async def expiring(server: ApiServer, path: str, query: Query, most_bytes: int) -> bytes:
        found = await body(server, path, {key: query[key] for key in query if key != "continue"}, most_bytes)
        if not path.endswith("/resourceclaims"):
            return found
        asked.append(path)
        if len(asked) == 1:
            page = orjson.loads(found)
            page["metadata"]["continue"] = "token"
            return orjson.dumps(page)
        if len(asked) == 2:
            cluster.client.delete("ResourceClaim", "gone", **given)
            raise ApiServerError("410 The provided continue parameter is too old", GONE)
        return found

    monkeypatch.setattr(ApiServer, "body", expiring)
    connection = ("--kubeconfig", cluster.control_plane.kubeconfig, "-n", cluster.namespace)
    outcome = run("reclaim", *connection, "--older-than", "0", "-o", "json")

    assert ([each["name"] for each in orjson.loads(outcome.output)["held"]], len(asked)) == (["stays"], 3)
