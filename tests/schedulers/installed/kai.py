"""The real KAI scheduler beside the control plane: scheduler, binder and pod grouper."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.controlplane.client import Client, NotFound, Object, Objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.controlplane.process import HeldPort
from tests.schedulers.build import Built
from tests.schedulers.running import (
    Programs,
    apply_definitions,
    pod_group_of,
    remove_all,
    serving_certificate,
)
from tests.support.admission import policy_with

TO_KAI = policy_with(
    workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": "kai-scheduler"}}
)
QUEUES = "scheduling.run.ai/v2"
POD_GROUPS = "scheduling.run.ai/v2alpha2"
TOPOLOGIES = "kai.scheduler/v1alpha1"
BIND_REQUESTS = "scheduling.run.ai/v1alpha2"

_OWN_PODS = "object.spec.schedulerName == 'kai-scheduler'"
_SILENT = ("--metrics-bind-address=0", "--health-probe-bind-address=0", "--qps=1000", "--burst=1000")
_RESERVATIONS = "kai-resource-reservation"
_CARD = "run.ai/reserve_for_gpu_index"
_NAMESPACES = ("kai-scheduler", _RESERVATIONS, "kai-scale-adjust")
_PRIORITIES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
_UNLIMITED = {resource: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for resource in ("cpu", "gpu", "memory")}


class Kai:
    """A running KAI; pods whose schedulerName is `kai-scheduler` are its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._client: Client = cluster.client
        self.namespace = cluster.namespace

    def make_queue(self, name: str, *, limit: int = -1, parents_limit: int = -1) -> None:
        """Make a queue below the one that has its name and `-parent`, with limits of cards; -1: without a limit."""
        parent = f"{name}-parent"
        for queue, spec, cards in ((parent, {}, parents_limit), (name, {"parentQueue": parent}, limit)):
            content = {"apiVersion": QUEUES, "kind": "Queue", "metadata": {"name": queue}}
            resources = {**_UNLIMITED, "gpu": {**_UNLIMITED["gpu"], "limit": cards}}
            self._client.create({**content, "spec": {**spec, "resources": resources}})

    def make_topology(self, name: str, *levels: str) -> None:
        """Make a topology of levels by node labels."""
        spec = {"levels": [{"nodeLabel": each} for each in levels]}
        self._client.create({"apiVersion": TOPOLOGIES, "kind": "Topology", "metadata": {"name": name}, "spec": spec})

    def make_pod_group(self, name: str, members: int, queue: str, **spec: Any) -> None:
        """Make a PodGroup of the test's namespace, which needs that many members to start, with further fields."""
        spec = {"minMember": members, "queue": queue, **spec}
        group = {"apiVersion": POD_GROUPS, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
        self._client.create(group, namespace=self.namespace)

    def pod_groups(self) -> Objects:
        """Return the PodGroups of the test's namespace."""
        return self._client.list("PodGroup", self.namespace, api_version=POD_GROUPS)

    def pod_group_of(self, pod: Object) -> Object:
        """Return the PodGroup of a pod, once the pod grouper, or the pod's author, has given it one."""
        return pod_group_of(self._client, pod, "pod-group-name", self.pod_groups)

    def allocate_reserved_cards(self) -> None:
        """Give each pod that reserves a card for others its card, as its kubelet would."""
        for pod in self._client.list("Pod", _RESERVATIONS):
            if _CARD not in pod["metadata"].get("annotations", {}):
                with suppress(NotFound):
                    body = {"metadata": {"annotations": {_CARD: "0"}}}
                    self._client.patch("Pod", pod["metadata"]["name"], body, namespace=_RESERVATIONS)

    def wait_refused(self, group: str) -> str:
        """Return the scheduler's message on a PodGroup that it cannot start."""

        def refused() -> str | None:
            found = self._client.get("PodGroup", group, self.namespace, api_version=POD_GROUPS)
            conditions = found.get("status", {}).get("schedulingConditions", [])
            return conditions[0]["message"] if conditions else None

        return wait_for(refused, f"{group} being refused")


@contextmanager
def admission_running(cluster: Cluster, built: Built, folder: Path) -> Iterator[Object]:
    """Run KAI's admission of pods; the fields of a webhook that calls it, as later releases register it."""
    # It reads its certificate from a fixed path in the folder for temporary files.
    serving = folder / "kai" / "k8s-webhook-server" / "serving-certs"
    serving.parent.mkdir(parents=True)
    certificates = serving_certificate(serving)
    ca_bundle = base64.b64encode((certificates / "ca.crt").read_bytes()).decode()
    with HeldPort() as port, Programs(folder) as programs:
        programs.start(
            built.program("admission"),
            *_SILENT,
            f"--webhook-addr={port.number}",
            "--gpu-sharing-enabled=true",
            "--gpu-pod-runtime-class-name=",
            ready="Serving webhook server",
            environment={"KUBECONFIG": str(cluster.control_plane.kubeconfig), "TMPDIR": str(folder / "kai")},
        )
        yield {
            "clientConfig": {"url": f"https://127.0.0.1:{port.number}/mutate--v1-pod", "caBundle": ca_bundle},
            "matchConditions": [{"name": "scheduler", "expression": _OWN_PODS}],
        }


@contextmanager
def running(cluster: Cluster, built: Built, folder: Path) -> Iterator[Kai]:
    """Run KAI as its programs are by default; afterwards, nothing of it is left but the definitions."""
    control_plane, client = cluster.control_plane, cluster.client
    apply_definitions(control_plane, built.file("deployments/kai-scheduler/crds"))
    for name in _NAMESPACES:
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name, value in _PRIORITIES.items():
        content = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        client.apply({**content, "value": value})
    environment = {"KUBECONFIG": str(control_plane.kubeconfig)}
    with Programs(folder) as programs:
        programs.start(
            built.program("scheduler"),
            "--schedule-period=200ms",
            "--listen-address=127.0.0.1:0",
            "--plugin-server-port=0",
            "--v=3",
            ready="Start scheduling",
            environment=environment,
        )
        for name in ("binder", "podgrouper"):
            programs.start(built.program(name), *_SILENT, ready="Starting workers", environment=environment)
        try:
            yield Kai(cluster)
        finally:
            programs.stop()
            kinds = {"BindRequest": BIND_REQUESTS, "PodGroup": POD_GROUPS, "Queue": QUEUES, "Topology": TOPOLOGIES}
            for kind, version in kinds.items():
                remove_all(client, version, kind)
