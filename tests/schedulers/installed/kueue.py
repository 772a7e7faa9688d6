"""The real Kueue beside the control plane: its controllers and its webhooks."""

import base64
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from tests.controlplane.client import Client, Object, Objects
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.controlplane.process import HeldPort
from tests.schedulers.build import Built
from tests.schedulers.running import Programs, apply_definitions, remove_all, serving_certificate
from tests.support.admission import policy_with

# The version that it stores: once it has stopped, no other can be read.
KUEUE = "kueue.x-k8s.io/v1beta2"

WITH_KUEUE = policy_with(workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}}}, queueing="kueue")
GATES = {"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"}

_DEFINITIONS = "config/components/crd/bases"
_WEBHOOKS = "config/components/webhook/manifests.yaml"
# The kinds whose two versions differ by more than their names.
_CONVERTED = ("localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters")
_OWN_NAMESPACES = ("kube-system", "kueue-system")
GPU = "nvidia.com/gpu"
_RESOURCES = ("cpu", "memory", GPU)
# Kueue reads the certificate of its metrics from a fixed path: it gets an /etc of its own.
_IN_AN_ETC_OF_ITS_OWN = """
mount -t tmpfs none /etc && mkdir -p /etc/kueue/metrics && ln -s "$1" /etc/kueue/metrics/certs && shift && exec "$@"
"""


class Kueue:
    """A running Kueue; it admits the pods of its queues."""

    def __init__(self, cluster: Cluster) -> None:
        self._client: Client = cluster.client
        self._namespace = cluster.namespace

    def make_queue(
        self,
        name: str,
        gpus: int,
        *,
        labels: Mapping[str, str] = MappingProxyType({}),
        flavor: str = "",
        cohort: str = "",
        borrowing: int | None = None,
        levels: Sequence[str] = (),
    ) -> None:
        """Make a queue of the test's namespace with a quota of cards, and of all else without a limit in practice.

        Its flavor is a new one for nodes with `labels`, or that of another queue. It can borrow so many cards from its
        cohort. With `levels`, node labels, its flavor has a topology.
        """
        if levels:
            self._create("Topology", name, spec={"levels": [{"nodeLabel": each} for each in levels]})
        if not flavor:
            topology = {"topologyName": name} if levels else {}
            self._create("ResourceFlavor", name, spec={"nodeLabels": {**labels}, **topology})
        spec = _cluster_queue(flavor or name, gpus, borrowing)
        self._create("ClusterQueue", name, spec=spec | ({"cohortName": cohort} if cohort else {}))
        self._create("LocalQueue", name, spec={"clusterQueue": name})
        wait_for(lambda: self._is_active(name), f"the queue {name} being active")

    def set_quota(self, name: str, gpus: int) -> None:
        """Change the quota of cards of a queue."""
        self._client.patch("ClusterQueue", name, {"spec": _cluster_queue(name, gpus)}, api_version=KUEUE)

    def wait_held(self, group: str) -> str:
        """Return the message of the Workload of a group of pods, once it has no quota."""

        held = wait_for(lambda: self._condition(group, "QuotaReserved", "False"), f"the Workload {group} being held")
        return str(held["message"])

    def wait_evicted(self, group: str) -> str:
        """Return the reason for which the Workload of a group of pods was evicted, once it was."""
        evicted = wait_for(lambda: self._condition(group, "Evicted", "True"), f"the Workload {group} being evicted")
        return str(evicted["reason"])

    def _condition(self, group: str, kind: str, status: str) -> Object | None:
        """Return the condition of a Workload, whose name is that of the group, or begins with it."""
        found = [each for each in self._workloads() if each["metadata"]["name"].startswith(group)]
        conditions = found[0].get("status", {}).get("conditions", []) if found else []
        return next((each for each in conditions if (each["type"], each["status"]) == (kind, status)), None)

    def _is_active(self, name: str) -> bool:
        queue = self._client.get("LocalQueue", name, self._namespace, api_version=KUEUE)
        conditions = queue.get("status", {}).get("conditions", [])
        return ("Active", "True") in {(each["type"], each["status"]) for each in conditions}

    def _workloads(self) -> list[Object]:
        return self._client.list("Workload", self._namespace, api_version=KUEUE)

    def _create(self, kind: str, name: str, **content: Any) -> None:
        obj = {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, **content}
        self._client.create(obj, namespace=self._namespace)


def gates(pods: Objects) -> set[str]:
    """Return the names of the scheduling gates of pods."""
    return {gate["name"] for pod in pods for gate in pod["spec"].get("schedulingGates", [])}


def gated(pods: Objects) -> list[Object]:
    """Return the pods that have scheduling gates."""
    return [pod for pod in pods if pod["spec"].get("schedulingGates")]


def _cluster_queue(flavor: str, gpus: int, borrowing: int | None = None) -> Object:
    quotas: dict[str, Object] = {
        "cpu": {"nominalQuota": "1000"},
        "memory": {"nominalQuota": "1000Gi"},
        GPU: {"nominalQuota": gpus},
    }
    if borrowing is not None:
        quotas[GPU]["borrowingLimit"] = borrowing
    resources = [{"name": resource, **quotas[resource]} for resource in _RESOURCES]
    flavors = [{"name": flavor, "resources": resources}]
    return {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": [*_RESOURCES], "flavors": flavors}]}


@contextmanager
def running(cluster: Cluster, built: Built, folder: Path, **settings: Any) -> Iterator[Kueue]:
    """Run Kueue with its integration of plain pods; afterwards, nothing of it is left but the definitions.

    `settings` are fields of its configuration, which is where an installation has it.
    """
    certificates = serving_certificate(folder / "kueue")
    ca_bundle = base64.b64encode((certificates / "ca.crt").read_bytes()).decode()
    with HeldPort() as port:
        address = {"url": f"https://127.0.0.1:{port.number}", "caBundle": ca_bundle}
        apply_definitions(cluster.control_plane, _definitions(built, folder / "kueue", address))
        cluster.make_namespace("kueue-system")
        configuration = folder / "kueue" / "configuration.json"
        content = json.dumps({**_configuration(port.number, certificates), **settings})
        configuration.write_text(content)
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kueue-manager-config"}}
        cluster.client.create(
            {**config_map, "data": {"controller_manager_config.yaml": content}}, namespace="kueue-system"
        )
        program = ("sh", "-c", _IN_AN_ETC_OF_ITS_OWN, "sh", str(certificates), str(built.program("kueue")))
        with Programs(folder) as programs:
            programs.start(
                Path(shutil.which("unshare") or "unshare"),
                *("--user", "--map-root-user", "--mount", *program),
                *(f"--config={configuration}", "--feature-gates=VisibilityOnDemand=false"),
                ready="Serving webhook server",
                environment={"KUBECONFIG": str(cluster.control_plane.kubeconfig)},
            )
            for webhooks in _webhook_configurations(built, address):
                cluster.client.create(webhooks)
            cluster.settle_webhooks()
            try:
                yield Kueue(cluster)
            finally:
                # Without its controllers nothing is made again, and without its webhooks nothing asks for them.
                cluster.remove_registrations()
                programs.stop()
                for kind in ("Workload", "LocalQueue", "ClusterQueue", "ResourceFlavor", "Topology"):
                    remove_all(cluster.client, KUEUE, kind)


def _definitions(built: Built, folder: Path, address: Object) -> Path:
    """Return the folder of the definitions, with Kueue converting between versions."""
    target = folder / "definitions"
    target.mkdir()
    for path in built.file(_DEFINITIONS).iterdir():
        definition = yaml.load(path.read_text(), yaml.CSafeLoader)
        if definition["spec"]["names"]["plural"] in _CONVERTED:
            client = {**address, "url": f"{address['url']}/convert"}
            webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
            definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        (target / f"{path.stem}.json").write_text(json.dumps(definition))
    return target


def _webhook_configurations(built: Built, address: Object) -> Iterator[Object]:
    """Yield Kueue's webhook configurations under the names that its installation gives them."""
    selector = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [*_OWN_NAMESPACES]}
    for configuration in yaml.safe_load_all(built.file(_WEBHOOKS).read_text()):
        configuration["metadata"]["name"] = f"kueue-{configuration['metadata']['name']}"
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {**address, "url": address["url"] + path}
            webhook["namespaceSelector"] = {"matchExpressions": [selector]}
        yield configuration


def _configuration(port: int, certificates: Path) -> Object:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(certificates)},
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 1000, "burst": 1000},
        "integrations": {"frameworks": ["batch/job", "pod"]},
    }
