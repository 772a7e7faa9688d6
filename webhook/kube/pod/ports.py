"""Host ports of a pod."""

from typing import NamedTuple

from webhook.kube.reader import Reader

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - the address as Kubernetes writes it; nothing is bound here


class HostPort(NamedTuple):
    """One port of a node address; ALL_ADDRESSES is every address of the node."""

    protocol: str
    port: int
    ip: str

    def conflicts(self, other: "HostPort") -> bool:
        """Return true if the two ports cannot be used on the same node.

        Source: k8s.io/kube-scheduler/framework/types.go, HostPortInfo.CheckConflict
        """
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.ip == other.ip or ALL_ADDRESSES in (self.ip, other.ip)


def read_host_ports(spec: Reader) -> tuple[HostPort, ...]:
    """Return the host ports of the containers and sidecars of a pod with `spec`.

    With hostNetwork, every container port is a host port, as the API server sets it by default.

    Source: k8s.io/kubernetes/pkg/scheduler/util/utils.go, GetHostPorts; pkg/apis/core/v1/defaults.go
    """
    host_network = spec.boolean("hostNetwork")
    ports: list[HostPort] = []
    for container in spec.objects("initContainers"):
        if container.raw.get("restartPolicy") == "Always":
            ports += _ports_of(container, host_network)
    for container in spec.objects("containers"):
        if container.raw.get("ports") is not None:
            ports += _ports_of(container, host_network)
    return tuple(ports)


def _ports_of(container: Reader, host_network: bool) -> list[HostPort]:
    found = []
    for port in container.objects("ports"):
        number = port.integer("hostPort")
        if number == 0 and host_network:
            number = port.integer("containerPort")
        protocol, ip = port.text("protocol") or "TCP", port.text("hostIP") or ALL_ADDRESSES
        if number > 0:
            found.append(HostPort(protocol, number, ip))
    return found
