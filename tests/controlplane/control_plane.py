"""etcd, kube-apiserver, kube-scheduler and, if asked for, kube-controller-manager, running on loopback."""

import base64
import datetime as dt
import json
import os
import secrets
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import urllib3

from tests.controlplane.client import Client
from tests.controlplane.configuration import (
    CONTROLLERS,
    DISABLED_ADMISSION_PLUGINS,
    audit_policy,
    kubeconfig,
    scheduler_configuration,
    webhook_authentication,
    webhook_kubeconfig,
)
from tests.controlplane.credentials import issue
from tests.controlplane.process import HeldPort, Process
from tests.controlplane.scheduler_log import SchedulerLog

# Scores are logged at level 10, where most other files of the scheduler log far more than is read; ResourceSlices and
# DeviceClasses at 5, the devices that claims have at 6.
_LOGGED_BY_SCHEDULER = ("-v=4", "--vmodule=schedule_one=10,tracker=5,extendedresourcecache=5,allocateddevices=6")
# The garbage collector of Go takes a good part of the processor time of programs that are small and busy.
_GARBAGE_COLLECTION = MappingProxyType({"GOGC": "400", "GOMEMLIMIT": "600MiB"})
# A tenth of the processor time of the API server; nothing here asks it for more than it can do at once.
_NO_FAIRNESS = (
    "--enable-priority-and-fairness=false",
    "--max-requests-inflight=0",
    "--max-mutating-requests-inflight=0",
)
# Of one transaction, by default of etcd.
_MOST_OPERATIONS = 128


class ControlPlane:
    """A control plane of its own in `folder`, which also keeps every log; a context manager.

    Nodes are Node objects and nothing runs on them. There is no kubelet and, of the controllers, only those of
    Deployments, ReplicaSets and Jobs, once a test asks for them. The feature gates `features` are on, and the versions
    of API groups in `served`, such as `scheduling.k8s.io/v1beta1`, are served. The admission `plugins` run beside those
    that are on by default.
    """

    def __init__(
        self,
        programs: Mapping[str, Path],
        folder: Path,
        *,
        features: Iterable[str] = (),
        served: Iterable[str] = (),
        plugins: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.audit_log = folder / "audit.log"
        self.kubeconfig = folder / "kubeconfig"
        self.scheduler_log = SchedulerLog(folder / "kube-scheduler.log")
        self._programs = programs
        self._gates = [f"--feature-gates={feature}=true" for feature in features]
        self._served = [f"--runtime-config={version}=true" for version in served]
        self._plugins = [f"--enable-admission-plugins={','.join(plugins)}"] if plugins else []
        self._ports = {name: HeldPort() for name in ("etcd-peer", *programs)}
        self._processes: dict[str, Process] = {}
        self._scheduler_is_changed = False
        self._credentials = issue(folder / "credentials", dt.datetime.now(dt.UTC))
        self.ca_pem = self._credentials.ca.read_text()
        self.url = self._url("kube-apiserver")
        self._http = urllib3.PoolManager(maxsize=8, ca_certs=str(self._credentials.ca))
        # The API server verifies a client certificate again with each request.
        self._token = secrets.token_hex()
        self.client = Client(self._http, self.url, self._token)

    def __enter__(self) -> Self:
        try:
            self._write("kubeconfig", kubeconfig(self._credentials, self.url))
            self._start_etcd()
            self._start_api_server()
            self.start_scheduler()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Kill everything."""
        for process in self._processes.values():
            process.stop()
        self._processes.clear()
        self._http.clear()
        for port in self._ports.values():
            port.close()

    def pid(self, program: str) -> int:
        """Return the process id of a running program."""
        return self._processes[program].pid

    def stored_keys(self) -> dict[str, str]:
        """Return the keys of all objects in etcd, such as `/registry/pods/NAMESPACE/NAME`, without those of Events.

        Each has the revision of its last change.
        """
        ranges = (("/registry/", "/registry/events/"), ("/registry/events0", "/registry0"))
        asked = [{"key": _base64(first), "range_end": _base64(end), "keys_only": True} for first, end in ranges]
        answers = self._etcd("txn", {"success": [{"request_range": each} for each in asked]})["responses"]
        found = (each for answer in answers for each in answer["response_range"].get("kvs", ()))
        return {base64.b64decode(each["key"]).decode(): each["mod_revision"] for each in found}

    def delete_keys(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Delete the objects of these keys in etcd; return what was stored, by key."""
        stored: dict[str, bytes] = {}
        for batch in (keys[index : index + _MOST_OPERATIONS] for index in range(0, len(keys), _MOST_OPERATIONS)):
            given = [{"request_delete_range": {"key": _base64(key), "prev_kv": True}} for key in batch]
            for response in self._etcd("txn", {"success": given})["responses"]:
                for each in response["response_delete_range"].get("prev_kvs", ()):
                    stored[base64.b64decode(each["key"]).decode()] = base64.b64decode(each["value"])
        return stored

    def _etcd(self, operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self._ports['etcd'].number}/v3/kv/{operation}"
        answer: dict[str, Any] = self._http.request("POST", url, json=given, retries=False).json()
        return answer

    @property
    def scheduler_runs(self) -> bool:
        """Return true if the scheduler is running."""
        return "kube-scheduler" in self._processes

    def start_scheduler(self, configuration: Mapping[str, Any] | None = None, *, verbosity: int | None = None) -> None:
        """Start kube-scheduler, or restart it with another KubeSchedulerConfiguration.

        Without one it is that of `scheduler_configuration`. The connection and the leader election are ours in
        either case. It knows all objects when this returns. Its log has what `SchedulerLog` reads; with a `verbosity`
        below 10 it lacks the scores.
        """
        self.stop_scheduler()
        self._scheduler_is_changed = configuration is not None
        file = self._write(
            "kube-scheduler.json",
            {
                **(scheduler_configuration() if configuration is None else configuration),
                "leaderElection": {"leaderElect": False},
                "clientConnection": {"kubeconfig": str(self.kubeconfig), "qps": 1000, "burst": 1000},
            },
        )
        logged = _LOGGED_BY_SCHEDULER if verbosity is None else (f"-v={verbosity}",)
        self._start("kube-scheduler", f"--config={file}", *logged, *self._gates, *self._serving("kube-scheduler"))

    def stop_scheduler(self) -> None:
        """Let pods stay Pending from now on."""
        if process := self._processes.pop("kube-scheduler", None):
            process.stop()

    def restore_scheduler(self) -> None:
        """Have the first scheduler again, if a test stopped or changed it."""
        if self._scheduler_is_changed or not self.scheduler_runs:
            self.start_scheduler()

    def stop_api_server(self) -> None:
        """Kill kube-apiserver; what it stored stays in etcd."""
        self._processes.pop("kube-apiserver").stop()

    def restart_api_server(self) -> None:
        """Kill kube-apiserver, if it still runs, and have it again under the same address."""
        if "kube-apiserver" in self._processes:
            self.stop_api_server()
        self._http.clear()
        self._start_api_server()

    def start_controller_manager(self, *others: str) -> None:
        """Let Deployments, StatefulSets, Jobs and so on have pods from now on; `others` are controllers to run, too."""
        if "kube-controller-manager" in self._processes:
            return
        self._start(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            f"--controllers={','.join((*CONTROLLERS, *others))}",
            "--leader-elect=false",
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            *self._serving("kube-controller-manager"),
        )

    def stop_controller_manager(self) -> None:
        """Let what has a ReplicaSet's labels be, if controllers run: they would delete what is too much."""
        process = self._processes.pop("kube-controller-manager", None)
        if process is not None:
            process.stop()

    def program(self, name: str) -> Path:
        """Return the program of this name."""
        return self._programs[name]

    @property
    def kubectl_environment(self) -> dict[str, str]:
        """The variables under which a shell finds this kubectl, as the administrator of this control plane."""
        return {
            "PATH": os.pathsep.join([str(self._programs["kubectl"].parent), os.environ["PATH"]]),
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.folder / "kubectl"),
            "KUBERC": "off",
            # A run is over before a collection pays.
            "GOGC": "off",
        }

    def kubectl(
        self,
        *arguments: str,
        stdin: str | None = None,
        check: bool = True,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.CompletedProcess[str]:
        """Return the output of kubectl as the administrator, with further variables of the `environment`.

        Raises:
            CalledProcessError: it failed, and `check` was left on; with its output as notes.
        """
        outcome = subprocess.run(
            [str(self._programs["kubectl"]), *arguments],
            env={**os.environ, **self.kubectl_environment, **environment},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and outcome.returncode != 0:
            failure = subprocess.CalledProcessError(outcome.returncode, outcome.args, outcome.stdout, outcome.stderr)
            failure.add_note(outcome.stdout + outcome.stderr)
            raise failure
        return outcome

    def _start_etcd(self) -> None:
        client_url = f"http://127.0.0.1:{self._ports['etcd'].number}"
        peer_url = f"http://127.0.0.1:{self._ports['etcd-peer'].number}"
        self._start(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client_url}",
            f"--advertise-client-urls={client_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--socket-reuse-port",
            "--unsafe-no-fsync",
            "--heartbeat-interval=40",
            "--election-timeout=200",
            ready_url=f"{client_url}/health",
        )

    def _start_api_server(self) -> None:
        policy = self._write("audit-policy.json", audit_policy())
        client = webhook_kubeconfig(self._credentials.webhook_client_certificate, self._credentials.webhook_client_key)
        webhooks = self._write("webhooks.kubeconfig", client)
        admission = self._write("admission.json", webhook_authentication(webhooks))
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f"{self._token},admin,admin,system:masters\n")
        key = self._credentials.service_account_key
        self._start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd'].number}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            *_NO_FAIRNESS,
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--client-ca-file={self._credentials.ca}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            f"--disable-admission-plugins={','.join(DISABLED_ADMISSION_PLUGINS)}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--allow-privileged",
            f"--admission-control-config-file={admission}",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.audit_log}",
            *self._gates,
            *self._served,
            *self._plugins,
            *self._serving("kube-apiserver"),
        )

    def _serving(self, program: str) -> list[str]:
        return [
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports[program].number}",
            "--permit-port-sharing",
            f"--tls-cert-file={self._credentials.server_certificate}",
            f"--tls-private-key-file={self._credentials.server_key}",
        ]

    def _start(self, program: str, *arguments: str, ready_url: str | None = None) -> None:
        process = Process(self._programs[program], arguments, self.folder / f"{program}.log", _GARBAGE_COLLECTION)
        self._processes[program] = process
        process.wait_ready(lambda: self._answers(ready_url or f"{self._url(program)}/{_READY_PATH[program]}"))

    def _answers(self, url: str) -> bool:
        try:
            return self._http.request("GET", url, retries=False, timeout=5).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def _url(self, program: str) -> str:
        return f"https://127.0.0.1:{self._ports[program].number}"

    def _write(self, name: str, content: Mapping[str, Any]) -> Path:
        file = self.folder / name
        file.write_text(json.dumps(content, indent=1))
        return file


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


_READY_PATH = {"kube-apiserver": "readyz", "kube-scheduler": "readyz", "kube-controller-manager": "healthz"}
