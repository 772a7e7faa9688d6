"""The processes, the definitions of kinds and the removal of objects, for all schedulers."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

from tests.controlplane.client import Client, Object, Objects
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.polling import wait_for
from tests.controlplane.process import Process
from tests.support.servers.server import write_certificate

KUBE_SCHEDULER_ALONE = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "percentageOfNodesToScore": 100,
    "podMaxBackoffSeconds": 1,
}


class Programs:
    """The processes of one scheduler, with their logs in `folder`; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(
        self, program: Path, *arguments: str, ready: str, environment: Mapping[str, str] = MappingProxyType({})
    ) -> Path:
        """Return the log of a new process, once it has the text `ready`."""
        log = self._folder / f"{program.parent.name.partition('-')[0]}-{program.name}.log"
        process = Process(program, arguments, log, environment)
        self._processes.append(process)
        process.wait_ready(lambda: ready in log.read_text(errors="replace"))
        return log

    def stop(self) -> None:
        """Kill the processes."""
        while self._processes:
            self._processes.pop().stop()


def apply_definitions(control_plane: ControlPlane, *paths: Path) -> None:
    """Serve the kinds of the CustomResourceDefinitions in files and folders; they stay until the control plane ends."""
    files = [f"--filename={path}" for path in paths]
    control_plane.kubectl("apply", "--server-side", "--force-conflicts", *files)
    control_plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", *files)


def remove_all(client: Client, api_version: str, kind: str, *, but: Collection[str] = ()) -> None:
    """Remove the objects of a kind in all namespaces, past the finalizers of the controllers, which are stopped."""
    for obj in client.list(kind, api_version=api_version):
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace")
        if name in but:
            continue
        if obj["metadata"].get("finalizers"):
            body = {"metadata": {"finalizers": None}}
            client.patch(kind, name, body, namespace=namespace, api_version=api_version)
        client.delete(kind, name, namespace=namespace, api_version=api_version)


def pod_group_of(client: Client, pod: Object, annotation: str, groups: Callable[[], Objects]) -> Object:
    """Return the PodGroup that `annotation` of the pod names, once it is set and one of `groups()`."""

    def named() -> Object | None:
        current = client.get("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
        name = current["metadata"].get("annotations", {}).get(annotation)
        return next((each for each in groups() if each["metadata"]["name"] == name), None)

    return wait_for(named, f"a PodGroup of {pod['metadata']['name']}")


def serving_certificate(folder: Path) -> Path:
    """Return a new folder with ca.crt, and with tls.crt and tls.key of a server on loopback."""
    folder.mkdir()
    write_certificate(folder)
    return folder
