"""A kube-scheduler with the Coscheduling plugin of scheduler-plugins beside the control plane."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane.client import Client, Object
from tests.controlplane.cluster import Cluster
from tests.schedulers.build import Built
from tests.schedulers.running import Programs, apply_definitions, remove_all
from tests.support.admission import policy_with

POD_GROUPS = "scheduling.x-k8s.io/v1alpha1"
NAME = "gang-scheduler"
TO_COSCHEDULING = policy_with(
    schedulers={NAME: {"backend": "coscheduling"}},
    workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": NAME}},
)

_DEFINITION = "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml"


class Coscheduling:
    """A running scheduler of the name `gang-scheduler`."""

    def __init__(self, cluster: Cluster) -> None:
        self._client: Client = cluster.client
        self._namespace = cluster.namespace

    def make_pod_group(self, name: str, members: int) -> None:
        """Make a PodGroup of the test's namespace, which needs that many members to start."""
        spec = {"minMember": members, "scheduleTimeoutSeconds": 5}
        group = {"apiVersion": POD_GROUPS, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
        self._client.create(group, namespace=self._namespace)


@contextmanager
def running(cluster: Cluster, built: Built, folder: Path) -> Iterator[Coscheduling]:
    """Run the scheduler; afterwards, nothing of it is left but the definition."""
    apply_definitions(cluster.control_plane, built.file(_DEFINITION))
    configuration = folder / "coscheduling.json"
    configuration.write_text(json.dumps(_configuration(cluster.control_plane.kubeconfig)))
    with Programs(folder) as programs:
        programs.start(
            built.program("coscheduling"),
            f"--config={configuration}",
            "--secure-port=0",
            "-v=3",
            ready="Caches populated",
        )
        try:
            yield Coscheduling(cluster)
        finally:
            programs.stop()
            remove_all(cluster.client, POD_GROUPS, "PodGroup")


def _configuration(kubeconfig: Path) -> Object:
    plugins = {
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        # A scheduler has one order of its queue.
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000},
        "podMaxBackoffSeconds": 1,
        "profiles": [{"schedulerName": NAME, "plugins": plugins}],
    }
