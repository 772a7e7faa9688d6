"""A recorded API server: a large cluster listed and watched, in which admitted pods appear, are bound and go again.

Its objects are as large as real ones, and it needs no control plane.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import count, cycle
from typing import Any

import orjson
from aiohttp import web

from tests.support.objects.clusters import DOMAIN, cluster_documents

Object = dict[str, Any]

# Of any other kind there is no object.
_PATHS = {"/api/v1/nodes": "Node", "/api/v1/namespaces": "Namespace", "/api/v1/pods": "Pod"}
_NAMESPACES = 50
_FIRST_VERSION = 1_000_000
# kube-scheduler binds a pod of an empty queue about as fast. A pod goes before its node is full.
_BOUND_AFTER_SECONDS = 0.05
_GONE_AFTER_SECONDS = 2.0
_FIELDS: dict[str, Any] = {f"f:field{index}": {f"f:inner{inner}": {} for inner in range(4)} for index in range(40)}


def _recorded(nodes: int, pods_per_node: int) -> dict[str, dict[str, bytes]]:
    """Return the objects by kind and name, as large as managed fields, environment and statuses make real ones."""
    found: dict[str, dict[str, bytes]] = {"Node": {}, "Pod": {}}
    for number, document in enumerate(cluster_documents(nodes, pods_per_node)):
        content = document.content
        metadata = content["metadata"]
        metadata |= {"uid": f"uid-{number:036}", "resourceVersion": str(number + 1)}
        metadata["managedFields"] = [{"manager": f"manager-{each}", "fieldsV1": _FIELDS} for each in range(2)]
        if content["kind"] == "Pod":
            _fill_pod(content, number)
        found[content["kind"]][metadata["name"]] = orjson.dumps(content)
    names = ("team-a", *(f"team-{number}" for number in range(_NAMESPACES)))
    found["Namespace"] = {name: orjson.dumps({"metadata": {"name": name, "labels": {"team": name}}}) for name in names}
    return found


def _fill_pod(content: dict[str, Any], number: int) -> None:
    content["metadata"]["labels"] |= {"pod-template-hash": f"hash-{number % 500}", "team": f"team-{number % 40}"}
    content["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": f"rs-{number % 500}", "controller": True}]
    (main,) = content["spec"]["containers"]
    main["env"] = [{"name": f"VARIABLE_{index}", "value": "x" * 40} for index in range(20)]
    content["status"] |= {
        "podIP": "10.0.0.1",
        "conditions": [{"type": f"Condition{each}", "status": "True", "reason": "R" * 20} for each in range(5)],
        "containerStatuses": [{"name": "main", "imageID": "sha256:" + "0" * 64, "ready": True}],
    }


class Recording:
    """Lists in pages, and watches. What happens is sent to every watch, also to one that comes back later."""

    def __init__(self, nodes: int, pods_per_node: int, waiting: Iterable[Object] = ()) -> None:
        self._objects = _recorded(nodes, pods_per_node)
        self._objects["Pod"] |= {each["metadata"]["name"]: orjson.dumps(each) for each in waiting}
        self._events: list[bytes] = []
        self._happened = asyncio.Event()
        self._numbers = count()
        self._nodes = cycle(range(nodes))
        self._labels = [orjson.loads(each)["metadata"]["labels"] for each in self._objects["Node"].values()]

    def store(self, pod: Object) -> None:
        """Let an admitted pod appear. It is bound a moment later to a node of its pool and product, and then goes."""
        name = f"stored-{next(self._numbers)}"
        metadata = pod["metadata"] | {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        pending = {**pod, "metadata": metadata, "status": {"phase": "Pending"}}
        bound = {**pending, "spec": pod["spec"] | {"nodeName": self._node_of(metadata["annotations"])}}
        self._send("ADDED", pending)
        loop = asyncio.get_running_loop()
        loop.call_later(_BOUND_AFTER_SECONDS, self._send, "MODIFIED", bound)
        loop.call_later(_GONE_AFTER_SECONDS, self._send, "DELETED", bound)

    async def churn(self, events_per_second: int) -> None:
        """Delete and make running pods, so many events a second, until cancelled."""
        for content in cycle([*self._objects["Pod"].values()]):
            pod = orjson.loads(content)
            for event in ("DELETED", "ADDED"):
                self._send(event, pod)
            await asyncio.sleep(2 / events_per_second)

    @asynccontextmanager
    async def served(self, port: int) -> AsyncIterator[None]:
        """Serve until the block ends."""
        application = web.Application()
        application.router.add_get("/{tail:.*}", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield
        finally:
            await runner.cleanup()

    def _node_of(self, annotations: Object) -> str:
        usage, product = (annotations[f"{DOMAIN}/{key}"] for key in ("workload-type", "gpu-product"))
        wanted = {f"{DOMAIN}/node.usage": usage, "nvidia.com/gpu.product": product}.items()
        return next(f"node-{number:05}" for number in self._nodes if self._labels[number].items() >= wanted)

    def _send(self, event: str, pod: Object) -> None:
        """Send an event to the watches of pods."""
        version = {"resourceVersion": str(_FIRST_VERSION + len(self._events) + 1)}
        content = orjson.dumps({**pod, "metadata": pod["metadata"] | version})
        self._events.append(b'{"type":"%s","object":%s}\n' % (event.encode(), content))
        if event == "DELETED":
            self._objects["Pod"].pop(pod["metadata"]["name"], None)
        else:
            self._objects["Pod"][pod["metadata"]["name"]] = content
        self._happened.set()
        self._happened = asyncio.Event()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        kind = _PATHS.get(request.path, "")
        events = self._events if kind == "Pod" else []
        if "watch" in request.query:
            return await self._watch(request, events)
        if "limit" not in request.query:
            # Discovery, the version and objects by name: the server goes on without them.
            return web.Response(status=404)
        objects = [*self._objects.get(kind, {}).values()]
        begin = int(request.query.get("continue", "0"))
        end = begin + int(request.query["limit"])
        version = str(_FIRST_VERSION + len(events))
        metadata = {"resourceVersion": version} | ({"continue": str(end)} if end < len(objects) else {})
        head = orjson.dumps({"kind": "List", "metadata": metadata})[:-1]
        body = head + b',"items":[' + b",".join(objects[begin:end]) + b"]}"
        return web.Response(body=body, content_type="application/json")

    async def _watch(self, request: web.Request, events: list[bytes]) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        sent = int(request.query["resourceVersion"]) - _FIRST_VERSION
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(float(request.query["timeoutSeconds"])):
                while True:
                    happened = self._happened
                    if sent < len(events):
                        new = events[sent:]
                        sent = len(events)
                        await response.write(b"".join(new))
                    await happened.wait()
        return response
