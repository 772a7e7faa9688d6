"""The files that the programs of a node are started with, and their flags."""

from pathlib import Path
from typing import Any

from tests.node.running.credentials import (
    API_SERVER,
    FRONT_PROXY,
    KUBELET_CLIENT,
    KUBELET_SERVER,
    SERVICE_ACCOUNT,
    NodeCredentials,
)
from tests.node.running.machine import CNI_PLUGINS, may_lower_oom_scores

NODE_NAME = "node-1"
ADDRESS = "10.99.0.2"
SERVER = f"https://{ADDRESS}:6443"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "localhost/pause:1"
COREDNS_IMAGE = "localhost/coredns:1"

_SERVICES = "10.96.0.0/16"
_PODS = "10.244.0.0/24"
_ETCD = "http://127.0.0.1:2379"
_PEER = "http://127.0.0.1:2380"


def etcd(folder: Path) -> list[str]:
    """Return the flags of etcd."""
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={_ETCD}",
        f"--advertise-client-urls={_ETCD}",
        f"--listen-peer-urls={_PEER}",
        f"--initial-advertise-peer-urls={_PEER}",
        f"--initial-cluster=default={_PEER}",
        "--log-level=warn",
        "--unsafe-no-fsync",
    ]


def api_server(credentials: NodeCredentials, folder: Path) -> list[str]:
    """Return the flags of kube-apiserver: with ServiceAccounts, RBAC, Pod Security and NodeRestriction."""
    return [
        f"--etcd-servers={_ETCD}",
        f"--advertise-address={ADDRESS}",
        "--secure-port=6443",
        f"--service-cluster-ip-range={_SERVICES}",
        "--allow-privileged",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--admission-control-config-file={folder / 'admission.json'}",
        f"--client-ca-file={credentials.certificate('ca')}",
        f"--tls-cert-file={credentials.certificate(API_SERVER)}",
        f"--tls-private-key-file={credentials.key(API_SERVER)}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={credentials.key(SERVICE_ACCOUNT)}",
        f"--service-account-signing-key-file={credentials.key(SERVICE_ACCOUNT)}",
        f"--kubelet-client-certificate={credentials.certificate(KUBELET_CLIENT)}",
        f"--kubelet-client-key={credentials.key(KUBELET_CLIENT)}",
        f"--kubelet-certificate-authority={credentials.certificate('ca')}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--requestheader-client-ca-file={credentials.certificate('ca')}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={credentials.certificate(FRONT_PROXY)}",
        f"--proxy-client-key-file={credentials.key(FRONT_PROXY)}",
        f"--audit-policy-file={folder / 'audit-policy.json'}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--audit-log-maxsize=10000",
    ]


def controller_manager(credentials: NodeCredentials) -> list[str]:
    """Return the flags of kube-controller-manager, whose controllers all run."""
    return [
        *_of_user(credentials.kubeconfig("kube-controller-manager")),
        "--use-service-account-credentials",
        f"--root-ca-file={credentials.certificate('ca')}",
        f"--service-account-private-key-file={credentials.key(SERVICE_ACCOUNT)}",
        f"--cluster-signing-cert-file={credentials.certificate('ca')}",
        f"--cluster-signing-key-file={credentials.key('ca')}",
        f"--client-ca-file={credentials.certificate('ca')}",
        f"--requestheader-client-ca-file={credentials.certificate('ca')}",
    ]


def scheduler(credentials: NodeCredentials) -> list[str]:
    """Return the flags of kube-scheduler, whose configuration is the default one."""
    return _of_user(credentials.kubeconfig("kube-scheduler"))


def _of_user(kubeconfig: Path) -> list[str]:
    flags = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    return [*(f"--{flag}={kubeconfig}" for flag in flags), "--bind-address=127.0.0.1"]


def audit_policy() -> dict[str, Any]:
    """Return the metadata of each request: its user, its object and whether it was allowed."""
    rule = {"level": "Metadata"}
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [rule],
    }


def kubelet(credentials: NodeCredentials, folder: Path, cgroup: str) -> dict[str, Any]:
    """Return the KubeletConfiguration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0 if not may_lower_oom_scores() else -999,
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "volumePluginDir": str(folder / "volume-plugins"),
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": "cluster.local",
        "resolvConf": str(folder / "resolv.conf"),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(credentials.certificate("ca"))},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(credentials.certificate(KUBELET_SERVER)),
        "tlsPrivateKeyFile": str(credentials.key(KUBELET_SERVER)),
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "2%", "imagefs.available": "2%"},
        "imageGCHighThresholdPercent": 98,
        "imageGCLowThresholdPercent": 97,
        "shutdownGracePeriod": "0s",
    }


def kube_proxy(credentials: NodeCredentials) -> dict[str, Any]:
    """Return the KubeProxyConfiguration."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(credentials.kubeconfig("kube-proxy"))},
        "hostnameOverride": NODE_NAME,
        "clusterCIDR": "10.244.0.0/16",
        "conntrack": {"maxPerCore": 0},
        "oomScoreAdj": 0 if not may_lower_oom_scores() else -999,
    }


def network(folder: Path) -> dict[str, Any]:
    """Return the list of CNI plugins: a bridge, and ports of the node for pods that ask for them."""
    addresses = {
        "type": "host-local",
        "dataDir": str(folder / "cni-addresses"),
        "ranges": [[{"subnet": _PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "bridge", "plugins": [bridge, ports]}


def containerd(folder: Path) -> str:
    """Return the configuration of containerd, in TOML."""
    return f"""
version = 3
root = "{folder / "containerd"}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = {"false" if may_lower_oom_scores() else "true"}
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["{CNI_PLUGINS}"]
  conf_dir = "{folder / "cni"}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  SystemdCgroup = false
"""
