"""One test's view of the control plane: a namespace, nodes and pods of its own, and what became of them."""

import base64
import json
import subprocess
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any, TypeVar

from tests.controlplane import webhooks
from tests.controlplane.cleanup import Cleanup
from tests.controlplane.client import Answer, ApiError, Client, Object, Objects
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.controlplane.scheduler_log import Scores, first_refusal_from_log, scores_from_log
from tests.support.objects.builders import PodBuilder, Quantity, make_node_object

_T = TypeVar("_T")
_UNSCHEDULABLE = ("PodScheduled", "Unschedulable")

# The scheduling gate of a nominated pod.
NOMINATION_GATE = "example.com/nomination"


class Cluster:
    """Nodes and pods for one test.

    What is made or deleted by its methods is known to the scheduler when they return, so the order in a test is the
    order in which the scheduler sees things. `remove_everything` ends it.
    """

    def __init__(self, control_plane: ControlPlane) -> None:
        self.control_plane = control_plane
        self.client: Client = control_plane.client
        self._log_began = control_plane.scheduler_log.end()
        self._audit_log_began = control_plane.audit_log.stat().st_size
        self._log_began_of_pod: dict[str, int] = {}
        self.namespace = self.make_namespace()

    def make_namespace(
        self,
        name: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> str:
        """Return the name of a new namespace; one never used before, if none is given."""
        name = name or f"test-{uuid.uuid4().hex[:8]}"
        metadata = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
        self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        return name

    def make_node(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        taints: Iterable[str] = (),
        capacity: Mapping[str, Quantity] | None = None,
        allocatable: Mapping[str, Quantity] | None = None,
        unschedulable: bool = False,
    ) -> Object:
        """Return a new node, as `make_node_object` describes it."""
        node = make_node_object(
            name,
            labels=labels,
            annotations=annotations,
            taints=taints,
            capacity=capacity,
            allocatable=allocatable,
            unschedulable=unschedulable,
        )
        return self.make_nodes(node)[0]

    def make_nodes(self, *nodes: Object) -> Objects:
        """Return new nodes, as the API server has them."""
        since = self.control_plane.scheduler_log.end()
        made = [self.client.create(node).object for node in nodes]
        self._wait_for_scheduler("Add event for node", "node", map(_key, made), since)
        return made

    def create(self, obj: Object | PodBuilder, *, dry_run: bool = False) -> Answer:
        """Create a pod, or any object, in the test's namespace if it names none."""
        since = self.control_plane.scheduler_log.end()
        given = obj.obj() if isinstance(obj, PodBuilder) else obj
        answer = self.client.create(given, namespace=self.namespace, dry_run=dry_run)
        if not dry_run:
            self._log_began_of_pod[_key(answer.object)] = since
            self._wait_for_scheduler("Add event for scheduled pod", "pod", _bound([answer.object]), since)
        return answer

    def nominate(self, pod: Object | PodBuilder, node: str, *, wait: bool = True) -> Object:
        """Return a new pending pod with a nominated node, held back by a scheduling gate.

        The scheduler hears of the nomination after it has heard of the pod: of a gated pod it takes note in no other
        order. `wait` for that, unless it is none of its pods.
        """
        log, since = self.control_plane.scheduler_log, self.control_plane.scheduler_log.end()
        given = deepcopy(pod.obj() if isinstance(pod, PodBuilder) else pod)
        given["spec"]["schedulingGates"] = [{"name": NOMINATION_GATE}]
        made = self.client.create(given, namespace=self.namespace).object
        if wait:
            log.wait_for_events("Add event for unscheduled pod", "pod", [_key(made)], since=since)
        name, namespace = made["metadata"]["name"], made["metadata"]["namespace"]
        status = {"status": {"nominatedNodeName": node}}
        nominated = self.client.patch("Pod", name, status, namespace=namespace, subresource="status").object
        if wait:
            log.wait_for_events("Update event for unscheduled pod", "pod", [_key(made)], since=since)
        return nominated

    def release(self, nominated: Object) -> None:
        """Let the scheduler have a pod that `nominate` has made."""
        metadata = nominated["metadata"]
        self._log_began_of_pod[_key(nominated)] = self.control_plane.scheduler_log.end()
        body = {"spec": {"schedulingGates": None}}
        self.client.patch("Pod", metadata["name"], body, namespace=metadata["namespace"])

    def delete_pod(self, pod: Object) -> None:
        """Delete a pod; what it had is free when this returns."""
        since = self.control_plane.scheduler_log.end()
        current = self._current(pod)
        self.client.delete("Pod", current["metadata"]["name"], namespace=current["metadata"]["namespace"])
        self._wait_for_scheduler("Delete event for scheduled pod", "pod", _bound([current]), since)

    def pods(self, selector: str = "", *, namespace: str | None = None) -> Objects:
        """Return the pods of a namespace (the test's) that a label selector selects."""
        return self.client.list("Pod", namespace or self.namespace, label_selector=selector)

    def wait_pods(self, count: int, selector: str = "", *, namespace: str | None = None) -> Objects:
        """Return the pods, once there are that many."""

        def enough() -> Objects | None:
            found = self.pods(selector, namespace=namespace)
            return found if len(found) == count else None

        return wait_for(enough, f"{count} pods {selector}")

    def wait_bound(self, pod: Object) -> str:
        """Return the name of the node that the scheduler gave to the pod, once it did."""
        node: str = self._wait_pod(pod, "a node", lambda current: current["spec"].get("nodeName"))
        return node

    def wait_unschedulable(self, pod: Object) -> str:
        """Return the scheduler's message once it found no node for the pod."""

        def verdict(current: Object) -> str | None:
            conditions = current["status"].get("conditions", [])
            messages = [c["message"] for c in conditions if (c["type"], c.get("reason")) == _UNSCHEDULABLE]
            return messages[0] if messages else None

        return self._wait_pod(pod, "being Unschedulable", verdict)

    def first_refusal(self, pod: Object) -> str:
        """Return the scheduler's message of the first time that it found no node for the pod."""
        return wait_for(lambda: self.first_refusal_yet(pod), f"no node for {_key(pod)}")

    def first_refusal_yet(self, pod: Object) -> str | None:
        """Return the same, None if it has not happened yet."""
        since = self._log_began_of_pod.get(_key(pod), self._log_began)
        return first_refusal_from_log(self.control_plane.scheduler_log.lines(since), _key(pod))

    def scores(self, pod: Object) -> Scores:
        """`{node: {plugin: weighted score}}` of the latest attempt at the pod; {} where only one node was feasible."""
        since = self._log_began_of_pod.get(_key(pod), self._log_began)
        return scores_from_log(self.control_plane.scheduler_log.lines(since), _key(pod))

    def register_webhook(
        self, url: str, ca_bundle_pem: str, *, configuration: str = "placement-webhook", **overrides: Any
    ) -> Object:
        """A MutatingWebhookConfiguration that sends pods to `url`, in force; `overrides` are fields of its webhook.

        `caBundle` needs no overriding: it is `ca_bundle_pem`.
        """
        ca_bundle = base64.b64encode(ca_bundle_pem.encode()).decode()
        made = self.client.create(webhooks.webhook_configuration(configuration, url, ca_bundle, overrides)).object
        self.settle_webhooks()
        return made

    def settle_webhooks(self) -> None:
        """Wait until the webhook configurations are in force that were written in another way."""
        webhooks.settle(self.client, self.namespace)

    def audit_event(self, answer: Answer) -> Object:
        """Return the audit event of a request that wrote a pod; its `annotations` contain the changes of webhooks."""

        def written() -> Object | None:
            with self.control_plane.audit_log.open() as log:
                log.seek(self._audit_log_began)
                found = [line for line in log if answer.audit_id in line and line.endswith("}\n")]
            return json.loads(found[0]) if found else None

        return wait_for(written, f"the audit event {answer.audit_id}")

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Return kubectl's output, in the test's namespace unless the arguments name one; see ControlPlane.kubectl."""
        return self.control_plane.kubectl("--namespace", self.namespace, *arguments, stdin=stdin, check=check)

    def take_another_namespace(self) -> None:
        """Begin a test that shares nodes and registrations with the tests before it, whose objects are removed."""
        self.control_plane.stop_controller_manager()
        since = self.control_plane.scheduler_log.end()
        removed = self._cleanup().remove_contents()
        self._wait_for_scheduler("Delete event for scheduled pod", "pod", removed, since)
        self.namespace = self.make_namespace()

    def remove_everything(self) -> None:
        """Leave the control plane as if the test had not been, its own scheduler running and no controller."""
        self.control_plane.stop_controller_manager()
        cleanup = self.remove_registrations()
        since = self.control_plane.scheduler_log.end()
        # The nodes go first: a pod that waited must not be bound to what another's removal sets free.
        self._wait_for_scheduler("Delete event for node", "node", cleanup.remove_nodes(), since)
        removed = cleanup.remove_namespaces()
        self._wait_for_scheduler("Delete event for scheduled pod", "pod", removed, since)
        self.control_plane.restore_scheduler()

    def remove_added(self, before: Collection[str]) -> None:
        """Remove the objects whose keys in etcd are not among those of `before`, except those of custom kinds."""
        since = self.control_plane.scheduler_log.end()
        removed = Cleanup(self.control_plane, kept=before).remove_namespaces()
        self._wait_for_scheduler("Delete event for scheduled pod", "pod", removed, since)

    def remove_registrations(self) -> Cleanup:
        """Remove webhook configurations and admission policies; return what removes the rest."""
        cleanup = self._cleanup()
        if cleanup.remove_webhook_configurations():
            self.settle_webhooks()
        if cleanup.remove_admission_policies():
            self._settle_admission_policies()
        return cleanup

    def _cleanup(self) -> Cleanup:
        return Cleanup(self.control_plane)

    def _settle_admission_policies(self) -> None:
        """Wait until removed policies change and deny nothing: the API server drops them after a moment."""
        annotations = {"maip.mxsf.io/workload-type": "training"}
        metadata = {"name": "settle", "annotations": annotations}
        spec = {"containers": [{"name": "main", "image": "i"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

        def unchanged() -> bool:
            with suppress(ApiError):
                stored = self.client.create(pod, namespace="default", dry_run=True).object["metadata"]
                return stored["annotations"] == annotations and "labels" not in stored
            return False

        wait_for(unchanged, "the admission policies to be dropped")

    def _wait_for_scheduler(self, event: str, what: str, keys: Iterable[str], since: int) -> None:
        if self.control_plane.scheduler_runs and (awaited := [*keys]):
            self.control_plane.scheduler_log.wait_for_events(event, what, awaited, since=since)

    def _current(self, pod: Object) -> Object:
        return self.client.get("Pod", pod["metadata"]["name"], pod["metadata"].get("namespace", self.namespace))

    def _wait_pod(self, pod: Object, what: str, ask: Callable[[Object], _T | None]) -> _T:
        return wait_for(lambda: ask(self._current(pod)), lambda: f"{what}: {json.dumps(self._current(pod)['status'])}")


def _bound(objects: Objects) -> list[str]:
    """Return the keys of the pods that the scheduler counts on their nodes."""
    pods = [obj for obj in objects if obj["kind"] == "Pod" and obj["spec"].get("nodeName")]
    return [_key(pod) for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]


def _key(obj: Object) -> str:
    """Return `namespace/name`, or the name of what has no namespace."""
    metadata = obj["metadata"]
    return "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)
