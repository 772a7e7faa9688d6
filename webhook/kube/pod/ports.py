"""Host ports of a pod."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.kube.reader import Reader

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - the address as Kubernetes writes it; nothing is bound here


class HostPort(NamedTuple):
    """One port of a node address; ALL_ADDRESSES is every address of the node."""

    protocol: str
    port: int
    ip: str

    def conflicts(self, other: "HostPort") -> bool:
        """Return true if both cannot be in use on one node.

        Source: k8s.io/kube-scheduler/framework/types.go, HostPortInfo.CheckConflict
        """
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.ip == other.ip or ALL_ADDRESSES in (self.ip, other.ip)


def read_host_ports(reader: Reader, spec: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """Return the host ports of a pod's containers and sidecars; `reader` collects the errors.

    With hostNetwork every container port is a host port, as the API server defaults it.

    Source: k8s.io/kubernetes/pkg/scheduler/util/utils.go, GetHostPorts; pkg/apis/core/v1/defaults.go
    """
    host_network = reader.boolean(spec.get("hostNetwork"), "spec.hostNetwork")
    ports: list[HostPort] = []
    for path, container in reader.objects(spec.get("initContainers"), "spec.initContainers"):
        if container.get("restartPolicy") == "Always":
            ports += _ports_of(reader, container, path, host_network)
    for path, container in reader.objects(spec.get("containers"), "spec.containers"):
        if container.get("ports") is not None:
            ports += _ports_of(reader, container, path, host_network)
    return tuple(ports)


def _ports_of(reader: Reader, container: Mapping[str, Any], path: str, host_network: bool) -> list[HostPort]:
    found = []
    for where, port in reader.objects(container.get("ports"), f"{path}.ports"):
        number = reader.integer(port.get("hostPort"), f"{where}.hostPort")
        if number == 0 and host_network:
            number = reader.integer(port.get("containerPort"), f"{where}.containerPort")
        protocol = reader.text(port.get("protocol"), f"{where}.protocol") or "TCP"
        ip = reader.text(port.get("hostIP"), f"{where}.hostIP") or ALL_ADDRESSES
        if number > 0:
            found.append(HostPort(protocol, number, ip))
    return found
