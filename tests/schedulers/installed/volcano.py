"""The real Volcano beside the control plane: its scheduler and its controllers."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.controlplane.client import Client, Object, Objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.schedulers.build import Built
from tests.schedulers.jobs import worker
from tests.schedulers.running import KUBE_SCHEDULER_ALONE, Programs, apply_definitions, pod_group_of, remove_all

SCHEDULING = "scheduling.volcano.sh/v1beta1"
COMMANDS = "bus.volcano.sh/v1alpha1"
JOBS = "batch.volcano.sh/v1alpha1"
TOPOLOGY = "topology.volcano.sh/v1alpha1"
NAMESPACE = "volcano-system"

DEFAULT_CONFIGURATION = "installer/helm/chart/volcano/config/volcano-scheduler.conf"

_DEFINITIONS = ("config/crd/volcano/bases", "config/crd/jobflow/bases")
_OWN_QUEUES = ("default", "root")
_SCORES = re.compile(r"Prioritize nodeScoreMap for task<(?P<pod>\S+)> is: map\[(?P<scores>[^\]]*)\]")


class Volcano:
    """A running Volcano; pods whose schedulerName is `volcano` are its own."""

    def __init__(self, cluster: Cluster, log: Path) -> None:
        self._client: Client = cluster.client
        self._log = log
        self.namespace = cluster.namespace

    def make_queue(self, name: str, **spec: object) -> Object:
        """Return a new queue, once it is open."""
        queue = {"apiVersion": SCHEDULING, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1, **spec}}
        made = self._client.create(queue).object
        wait_for(lambda: self._state_of_queue(name) == "Open", f"the queue {name} being open")
        return made

    def close_queue(self, name: str) -> None:
        """Close a queue by a Command, as `vcctl queue operate --action close` does."""
        queue = self._client.get("Queue", name, api_version=SCHEDULING)
        owner = {"apiVersion": SCHEDULING, "kind": "Queue", "name": name, "uid": queue["metadata"]["uid"]}
        command = {"apiVersion": COMMANDS, "kind": "Command", "metadata": {"name": f"close-{name}"}}
        target = {"target": {**owner, "controller": True}, "action": "CloseQueue"}
        self._client.create({**command, **target}, namespace="default")
        wait_for(lambda: self._state_of_queue(name) == "Closed", f"the queue {name} being closed")

    def make_pod_group(self, name: str, members: int, queue: str = "default", **more: object) -> Object:
        """Return a new PodGroup of the test's namespace, which needs that many members to start.

        `more` are fields of its spec, such as `networkTopology`.
        """
        spec = {"minMember": members, "queue": queue, **more}
        group = {"apiVersion": SCHEDULING, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
        return self._client.create(group, namespace=self.namespace).object

    def make_hyper_node(self, name: str, tier: int, *selectors: Object, of: str = "Node", **more: object) -> None:
        """Make a HyperNode with a member of the type `of` for each selector, such as `{"regexMatch": …}`."""
        spec = {"tier": tier, **more, "members": [{"type": of, "selector": each} for each in selectors]}
        made = {"apiVersion": TOPOLOGY, "kind": "HyperNode", "metadata": {"name": name}, "spec": spec}
        self._client.create(made)

    def wait_enqueued(self, name: str) -> None:
        """Wait until the scheduler lets the pods of a PodGroup be scheduled."""

        def phase() -> str:
            group = self._client.get("PodGroup", name, self.namespace, api_version=SCHEDULING)
            return str(group.get("status", {}).get("phase"))

        wait_for(lambda: phase() not in ("None", "Pending"), lambda: f"{name} being enqueued, not {phase()}")

    def wait_older(self, name: str) -> None:
        """Wait until a PodGroup that is made now would be younger than this one: Volcano starts the older one first.

        The API server states whole seconds. Equal ones are ordered by their random UIDs.
        """
        group = self._client.get("PodGroup", name, self.namespace, api_version=SCHEDULING)
        made = datetime.fromisoformat(group["metadata"]["creationTimestamp"])
        wait_for(lambda: datetime.now(UTC) >= made + timedelta(seconds=1), f"{name} being a second old")

    def pod_groups(self) -> Objects:
        """Return the PodGroups of the test's namespace."""
        return self._client.list("PodGroup", self.namespace, api_version=SCHEDULING)

    def pod_group_of(self, pod: Object) -> Object:
        """Return the PodGroup of a pod, once Volcano's controller, or the pod's author, has given it one."""
        return pod_group_of(self._client, pod, "scheduling.k8s.io/group-name", self.pod_groups)

    def wait_group_is_held(self, job: str) -> Object:
        """Return the PodGroup of a Job of Volcano, once the scheduler has refused to start it."""

        def held() -> Object | None:
            groups = [each for each in self.pod_groups() if each["metadata"]["name"].startswith(f"{job}-")]
            events = self._client.list("Event", self.namespace) if groups else []
            refused = {each["involvedObject"]["name"] for each in events if each["reason"] == "Unschedulable"}
            return next((each for each in groups if each["metadata"]["name"] in refused), None)

        return wait_for(held, f"the PodGroup of {job} being refused")

    def scores(self, pod: Object) -> Mapping[str, float]:
        """Return the scores of the latest attempt at a pod, by node; {} where at most one node was feasible."""
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        found = [each for each in _SCORES.finditer(self._log.read_text(errors="replace")) if each["pod"] == name]
        if not found:
            return {}
        pairs = (item.rpartition(":") for item in found[-1]["scores"].split())
        return {node: float(score) for node, _, score in pairs}

    def _state_of_queue(self, name: str) -> str | None:
        state: str | None = self._client.get("Queue", name, api_version=SCHEDULING).get("status", {}).get("state")
        return state


def volcano_job(name: str, replicas: int, own_queue: str, **keys: object) -> Object:
    """Return a Job of Volcano whose pods must all run together, with our annotations `keys` on their template."""
    template = worker("unused", **keys).template()
    return {
        "apiVersion": JOBS,
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": replicas,
            "queue": own_queue,
            "tasks": [{"name": "worker", "replicas": replicas, "template": template}],
        },
    }


@contextmanager
def running(
    cluster: Cluster, built: Built, folder: Path, *, flags: Iterable[str] = (), plugins: Iterable[str] = ()
) -> Iterator[Volcano]:
    """Run Volcano with the default configuration of its chart; afterwards, nothing of it is left but the definitions.

    Its own name belongs to it: kube-scheduler restarts without the stand-in profile of that name. `plugins` are added
    to the last tier of the configuration, which the cluster has in the ConfigMap of the chart.
    """
    text = built.file(DEFAULT_CONFIGURATION).read_text() + "".join(f"  - name: {each}\n" for each in plugins)
    configuration = folder / "volcano-scheduler.conf"
    configuration.write_text(text)
    # Applied, because a test can run it several times.
    cluster.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "volcano-scheduler-configmap"}}
    cluster.client.apply({**config_map, "data": {configuration.name: text}}, namespace=NAMESPACE)
    control_plane = cluster.control_plane
    apply_definitions(control_plane, *(built.file(path) for path in _DEFINITIONS))
    control_plane.start_scheduler(KUBE_SCHEDULER_ALONE)
    common = (f"--kubeconfig={control_plane.kubeconfig}", "--leader-elect=false", "--kube-api-qps=1000")
    with Programs(folder) as programs:
        log = programs.start(
            built.program("scheduler"),
            *common,
            "--schedule-period=200ms",
            "--plugins-dir=",
            f"--scheduler-conf={configuration}",
            "--cache-dumper=false",
            "-v=5",
            *flags,
            ready="Scheduler completes Initialization",
        )
        programs.start(built.program("controller-manager"), *common, "-v=2", ready="PodgroupController is running")
        try:
            yield Volcano(cluster, log)
        finally:
            programs.stop()
            remove_all(cluster.client, JOBS, "Job")
            remove_all(cluster.client, SCHEDULING, "PodGroup")
            remove_all(cluster.client, TOPOLOGY, "HyperNode")
            remove_all(cluster.client, SCHEDULING, "Queue", but=_OWN_QUEUES)
