"""The cases: each prepares a server, so that its caches are filled, and returns the work that is counted."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jsonpatch
import orjson

from tests.call_counts.served import Served
from tests.support.objects.clusters import DOMAIN, review
from tests.support.servers.server import review_bytes

Object = dict[str, Any]
Work = Callable[[], object]

# Pods without a place in the cluster of which a namespace gets no more room.
_MORE_THAN_HAVE_ROOM = 300
_WARM = 8


class Case(NamedTuple):
    """A case: what is prepared, the number of nodes, and the outcome in the last audit record."""

    prepared: Callable[[Served], Work]
    nodes: int
    outcome: str

    def work(self, folder: Path) -> tuple[Served, Work]:
        """Return a server, and the work to count."""
        served = Served(folder, self.nodes)
        return served, self.prepared(served)


def _next_of(body: Callable[[int], bytes], before: int = _WARM) -> Callable[[Served], Work]:
    """Return the case of the review after so many earlier ones."""

    def prepared(served: Served) -> Work:
        for number in range(before):
            served.admit(body(number))
        last = body(before)
        return lambda: served.admit(last)

    return prepared


def _pod(number: int, annotations: Object | None = None, **request: Any) -> bytes:
    """Return the review of a pod of one template, of 1 card and with further annotations."""
    asked = orjson.loads(review(number, shape=0))
    asked["request"] |= request
    asked["request"]["object"]["metadata"]["annotations"] |= annotations or {}
    return orjson.dumps(asked)


def _evicting(number: int) -> bytes:
    """Return the review of a pod of one template that fits on 222 nodes once their pods end, and on none before."""
    asked = orjson.loads(review(number, shape=0, usage="inference"))
    spec = asked["request"]["object"]["spec"]
    spec["priority"] = 1000
    for amounts in spec["containers"][0]["resources"].values():
        amounts["cpu"] = "126"
    return orjson.dumps(asked)


def _would_evict(served: Served) -> Work:
    for number in range(_WARM):
        answer = served.admit(_evicting(number))
        assert any("would evict" in each for each in answer["warnings"]), answer
    last = _evicting(_WARM)
    return lambda: served.admit(last)


def _bypassed(number: int) -> bytes:
    asked = orjson.loads(review(number, shape=0))
    del asked["request"]["object"]["metadata"]["annotations"]
    for amounts in asked["request"]["object"]["spec"]["containers"][0]["resources"].values():
        del amounts["nvidia.com/gpu"]
    return orjson.dumps(asked)


def _denied(number: int) -> bytes:
    return _pod(number, {f"{DOMAIN}/workload-type": "trainig"})


def _of_a_gang(number: int) -> bytes:
    return _pod(number, {f"{DOMAIN}/gang": f"gang-{number // 4}", f"{DOMAIN}/gang-size": "4"})


def _deployment(number: int) -> bytes:
    pod = orjson.loads(review(number, shape=number))["request"]["object"]
    labels = {"app": "trainer"}
    metadata = {"labels": labels, "annotations": pod["metadata"]["annotations"]}
    template = {"metadata": metadata, "spec": pod["spec"] | {"restartPolicy": "Always"}}
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    content = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"trainer-{number}", "namespace": "team-a"},
        "spec": {"replicas": 8, "selector": {"matchLabels": labels}, "template": template},
    }
    resource = {"group": "apps", "version": "v1", "resource": "deployments"}
    return review_bytes(content, kind=kind, resource=resource, name=f"trainer-{number}")


def _namespace(number: int) -> bytes:
    name = f"team-{number}"
    metadata = {"name": name, "annotations": {f"{DOMAIN}/workload-type": "training"}}
    kind = {"group": "", "version": "v1", "kind": "Namespace"}
    resource = {"group": "", "version": "v1", "resource": "namespaces"}
    content = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    return review_bytes(content, kind=kind, resource=resource, namespace=name, name=name)


def _patched(served: Served, number: int) -> Object:
    """Return the pod `number` as it is stored but for its name."""
    body = _pod(number)
    operations = orjson.loads(base64.b64decode(served.admit(body)["patch"]))
    pod: Object = jsonpatch.apply_patch(orjson.loads(body)["request"]["object"], operations)
    return pod


def _reinvoked(served: Served) -> Work:
    """Another webhook has added a label, so the API server asks once more."""
    body = b""
    for number in range(_WARM):
        if body:
            served.admit(body)
        pod = _patched(served, number)
        pod["metadata"]["labels"]["mesh"] = "on"
        body = _pod(number, uid=f"again-{number}", object=pod)
    return lambda: served.admit(body)


def _events(served: Served) -> Work:
    """A pod is admitted, appears pending and is bound."""
    for number in range(_WARM):
        _take(served, *_stored(_patched(served, number), number))
    pods = _stored(_patched(served, _WARM), _WARM)
    return lambda: _take(served, *pods)


def _stored(pod: Object, number: int) -> tuple[Object, Object]:
    """Return the pod as it is stored, and as it is once it is bound to a node of its pool."""
    name = f"trainer-{number}"
    stored = {
        "name": name,
        "uid": name,
        "creationTimestamp": "2026-01-31T12:00:00Z",
        "resourceVersion": f"{number + 1}",
    }
    pending = {**pod, "metadata": pod["metadata"] | stored, "status": {"phase": "Pending"}}
    # The nodes of one pool and product are every ninth.
    return pending, {**pending, "spec": pod["spec"] | {"nodeName": f"node-{9 * number:05}"}}


def _take(served: Served, pending: Object, bound: Object) -> None:
    served.see("ADDED", pending)
    served.see("MODIFIED", bound)
    served.settle()


def _shape(number: int) -> bytes:
    return review(number, shape=number)


CASES = {
    "a pod that is left alone": Case(_next_of(_bypassed), 1000, "Bypassed"),
    "a pod like earlier ones, without room": Case(_next_of(_pod, _MORE_THAN_HAVE_ROOM), 1000, "Patched"),
    "a pod like earlier ones that would evict others": Case(_would_evict, 1000, "Patched"),
    "a pod like earlier ones, with room": Case(_next_of(_pod), 1000, "Patched"),
    "a pod like earlier ones, with room on few nodes": Case(_next_of(_pod), 100, "Patched"),
    "a pod of another shape, 100 nodes": Case(_next_of(_shape), 100, "Patched"),
    "a pod of another shape, 1000 nodes": Case(_next_of(_shape), 1000, "Patched"),
    "a denied pod": Case(_next_of(_denied), 1000, "Denied"),
    "the last pod of a gang of 4": Case(_next_of(_of_a_gang, 7), 1000, "Patched"),
    "a Deployment of 8": Case(_next_of(_deployment), 1000, "Unchanged"),
    "a Namespace": Case(_next_of(_namespace), 1000, "Unchanged"),
    "a pod admitted again": Case(_reinvoked, 1000, "Unchanged"),
    "the events of a bound pod": Case(_events, 1000, "Patched"),
}
