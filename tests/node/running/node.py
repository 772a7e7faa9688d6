"""A real node: control plane, containerd, kubelet, kube-proxy and CoreDNS in namespaces of their own."""

import datetime as dt
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from tests.controlplane.client import Client
from tests.controlplane.configuration import webhook_authentication, webhook_kubeconfig
from tests.controlplane.polling import wait_for
from tests.node.running import configuration
from tests.node.running.admin_client import admin_client, allocatable, is_ready, is_serving
from tests.node.running.archive import write_image
from tests.node.running.configuration import CONTAINERD_SOCKET, NODE_NAME, SERVER
from tests.node.running.credentials import WEBHOOK_CLIENT, NodeCredentials, issue
from tests.node.running.namespaces import Namespaces, children, make_cgroup, new_namespaces, run
from tests.node.running.programs import Programs
from tests.node.running.remains import record_machine, record_process, remove_node

Progress = Callable[[str], None]

_MANIFESTS = Path(__file__).parent / "manifests"
_START_SECONDS = 120.0
# A program is started again when it ends: kube-scheduler and kube-controller-manager do when they lose their Lease.
_KEEP_RUNNING = 'while :; do "$@"; sleep 0.2; done'


class Node:
    """A cluster of one real node, whose files are in `folder`; a context manager.

    `held`: the node ends with this process. Otherwise it runs until `remove_node`.
    """

    def __init__(self, programs: Programs, folder: Path, progress: Progress, *, held: bool = True) -> None:
        self.folder = folder
        self.programs = programs
        self.audit_log = folder / "audit.log"
        self._progress = progress
        self._held = held
        self._cgroup = f"placement-webhook-{folder.name}"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._cards: dict[str, int] = {}
        self._credentials = NodeCredentials(folder / "credentials")
        self._namespaces: Namespaces | None = None

    def __enter__(self) -> Self:
        self.create()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def namespaces(self) -> Namespaces:
        """The namespaces of the running node."""
        assert self._namespaces is not None, "the node is off"
        return self._namespaces

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator."""
        return self._credentials.kubeconfig("admin")

    @property
    def ca(self) -> Path:
        """The CA of the API server, as PEM."""
        return self._credentials.certificate("ca")

    @property
    def admin(self) -> tuple[Path, Path]:
        """The certificate and the key of the administrator."""
        return self._credentials.certificate("admin"), self._credentials.key("admin")

    def create(self) -> None:
        """Make a new cluster, and return when its node is ready and DNS answers."""
        remove_node(self.folder)
        self.folder.mkdir(parents=True)
        self._write_files()
        record_machine(self.folder, self._cgroup)
        try:
            self.switch_on()
            with self.network():
                self._add_dns()
        except BaseException:
            self.remove()
            raise

    def switch_on(self) -> None:
        """Start everything, and return when the node is ready."""
        make_cgroup(self._cgroup)
        with (self.folder / "process-1.log").open("ab") as log:
            self._namespaces, self._processes["unshare"] = new_namespaces(
                self.folder, configuration.ADDRESS, NODE_NAME, self.programs["pause"], log, held=self._held
            )
        record_process(self.folder, self.namespaces)
        self._start_control_plane()
        self._start_container_engine()
        self.start_kubelet()
        self.start("kube-proxy", f"--config={self.folder / 'kube-proxy.json'}")
        with self.network():
            client = self.client()
            self._wait("a node that is ready", lambda: is_ready(client), "kubelet")
        for resource, count in self._cards.items():
            self.add_cards(resource, count)

    def switch_off(self) -> None:
        """End all at once, as a power cut does. The disk stays."""
        self.namespaces.end()
        self._forget()

    def remove(self) -> None:
        """End all and remove all files."""
        remove_node(self.folder)
        self._forget()

    def _forget(self) -> None:
        for process in self._processes.values():
            process.wait()
        self._processes.clear()
        self._namespaces = None

    @contextmanager
    def network(self) -> Iterator[None]:
        """Let this thread, and what it starts, use the network of the node."""
        with self.namespaces.network():
            yield

    def client(self) -> Client:
        """Return a client of the administrator, to be used within `network`."""
        return admin_client(self.ca, *self.admin)

    @property
    def kubectl_environment(self) -> dict[str, str]:
        """The variables under which a shell within `network` finds this kubectl, as the administrator."""
        return {
            "PATH": os.pathsep.join([str(self.programs["kubectl"].parent), os.environ["PATH"]]),
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.folder / "kubectl"),
            "KUBERC": "off",
        }

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Return the outcome of kubectl as the administrator.

        Raises:
            CalledProcessError: it failed, and `check` was left on.
        """
        command = ["nsenter", f"--net=/proc/{self.namespaces.pid}/ns/net", "--", str(self.programs["kubectl"])]
        return run([*command, *arguments], stdin=stdin, check=check, environment=self.kubectl_environment)

    def load_image(self, archive: Path) -> None:
        """Import an image archive, as `docker save` writes it."""
        self._ctr("images", "import", "--no-unpack", archive)

    def tag_image(self, reference: str, other: str) -> None:
        """Give an image another name."""
        self._ctr("images", "tag", "--force", reference, other)

    def _ctr(self, *arguments: str | Path) -> None:
        program = (self.programs["ctr"], "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io")
        run(self.namespaces.command(*program, *arguments))

    def load_program(self, name: str, reference: str) -> None:
        """Import an image of one static program."""
        archive = self.folder / f"{name}.tar"
        write_image(self.programs[name], reference, archive)
        self.load_image(archive)
        archive.unlink()

    def add_cards(self, resource: str, count: int) -> None:
        """Register cards with the kubelet, also after a power cut, and return when the node has them."""
        self._cards[resource] = count
        self.start("device-plugin", resource, str(count), log=f"device-plugin-{resource.replace('/', '-')}")
        with self.network():
            client = self.client()
            self._wait(f"{count} {resource}", lambda: allocatable(client, resource) == str(count), "kubelet")

    def start(
        self, program: str, *arguments: str, log: str = "", environment: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Start a program of the node, and again whenever it ends. Its output goes to `log`.log."""
        name = log or program
        command = self.namespaces.command("sh", "-c", _KEEP_RUNNING, "sh", self.programs[program], *arguments)
        with (self.folder / f"{name}.log").open("ab") as output:
            self._processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, "PATH": f"{self._search_path()}", **environment},
            )

    def stop(self, name: str, ended_by: signal.Signals = signal.SIGTERM) -> None:
        """End a program that `start` started under this name of its log."""
        process = self._processes.pop(name)
        (shell,) = children(process.pid)
        programs = children(shell)
        os.kill(shell, signal.SIGKILL)
        for pid in programs:
            with suppress(ProcessLookupError):
                os.kill(pid, ended_by)
        process.wait()
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in programs), f"the end of {name}")

    def start_kubelet(self) -> None:
        """Start the kubelet, which must not run yet."""
        self.start(
            "kubelet",
            f"--config={self.folder / 'kubelet.json'}",
            f"--kubeconfig={self._credentials.kubeconfig('kubelet')}",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={configuration.ADDRESS}",
        )

    def _start_control_plane(self) -> None:
        self.start("etcd", *configuration.etcd(self.folder))
        self.start("kube-apiserver", *configuration.api_server(self._credentials, self.folder))
        with self.network():
            client = self.client()
            self._wait("the API server", lambda: is_serving(client), "kube-apiserver")
        self._progress("kube-apiserver is ready")
        self.start("kube-controller-manager", *configuration.controller_manager(self._credentials))
        self.start("kube-scheduler", *configuration.scheduler(self._credentials))

    def _start_container_engine(self) -> None:
        self.start("containerd", "--config", str(self.folder / "containerd.toml"))
        socket = Path(f"/proc/{self.namespaces.pid}/root{CONTAINERD_SOCKET}")
        self._wait("containerd", socket.is_socket, "containerd")
        self.load_program("pause", configuration.PAUSE_IMAGE)
        self.load_program("coredns", configuration.COREDNS_IMAGE)
        self._progress("containerd has its images")

    def _add_dns(self) -> None:
        self._progress("the node is ready")
        self.kubectl("apply", "-f", str(_MANIFESTS / "coredns.yaml"))
        self.kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=60s")
        self._progress("CoreDNS is available")

    def _write_files(self) -> None:
        addresses = (configuration.API_SERVICE, configuration.ADDRESS, "127.0.0.1")
        credentials = issue(self._credentials.folder, SERVER, NODE_NAME, addresses, dt.datetime.now(dt.UTC))
        webhooks = webhook_kubeconfig(credentials.certificate(WEBHOOK_CLIENT), credentials.key(WEBHOOK_CLIENT))
        (self.folder / "cni").mkdir()
        self._write("webhooks.kubeconfig", webhooks)
        self._write("admission.json", webhook_authentication(self.folder / "webhooks.kubeconfig"))
        self._write("audit-policy.json", configuration.audit_policy())
        self._write("kubelet.json", configuration.kubelet(credentials, self.folder, self._cgroup))
        self._write("kube-proxy.json", configuration.kube_proxy(credentials))
        self._write("cni/10-bridge.conflist", configuration.network(self.folder))
        (self.folder / "containerd.toml").write_text(configuration.containerd(self.folder))
        (self.folder / "resolv.conf").touch()

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        (self.folder / name).write_text(json.dumps(content, indent=1))

    def _wait(self, what: str, ask: Callable[[], bool], log: str) -> None:
        try:
            wait_for(ask, what, deadline_seconds=_START_SECONDS)
        except TimeoutError as late:
            lines = (self.folder / f"{log}.log").read_text(errors="replace").splitlines()[-25:]
            late.add_note("\n".join([f"the end of {log}.log:", *lines]))
            raise

    def _search_path(self) -> str:
        # containerd finds its shim, kubelet and kube-proxy their tools.
        return os.pathsep.join([str(self.programs["containerd"].parent), "/usr/sbin", "/sbin", os.environ["PATH"]])
