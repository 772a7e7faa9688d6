"""The webhook on the node, as its users and its administrator see it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.client import ApiError, Client, NotFound, Object
from tests.controlplane.polling import Stopwatch, wait_for
from tests.node.running.configuration import NODE_NAME, PAUSE_IMAGE
from tests.node.running.node import Node
from tests.node.shell import Shell

NAMESPACE = "placement-webhook"
CERTS_NAMESPACE = "placement-webhook-certs"
CONFIGURATION = "00-placement-webhook"
DOMAIN = "maip.mxsf.io"
TEAM = "team-a"
CARD = "nvidia.com/gpu"
PRODUCT = "NVIDIA-H20"
CARDS = 8

_PART_OF = f"app.kubernetes.io/part-of={NAMESPACE}"
ROLLOUT_SECONDS = 60.0
_CLUSTER_KINDS = (
    ("v1", "Namespace"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
)


def pod(name: str, cards: int = 1, **annotations: str) -> Object:
    """Return a training pod as its user writes it."""
    keys = {f"{DOMAIN}/workload-type": "training", f"{DOMAIN}/gpu-product": PRODUCT, **annotations}
    resources = {"limits": {"cpu": "10m", "memory": "16Mi", CARD: str(cards)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": TEAM, "annotations": keys},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": PAUSE_IMAGE, "resources": resources}],
        },
    }


class Installation:
    """The webhook on the node, as its users and its administrator see it. It must be used within the network."""

    def __init__(self, node: Node, shell: Shell) -> None:
        self.node = node
        self.shell = shell
        self.client: Client = node.client()
        self._began = node.audit_log.stat().st_size

    def wait_for_rollout(self, began: Stopwatch, *deployments: str) -> None:
        """Return when the Deployments are available and the webhook is registered, a minute after `began` at most."""
        for name in deployments or (NAMESPACE,):
            left = max(1.0, ROLLOUT_SECONDS - began.seconds)
            namespace = CERTS_NAMESPACE if name == CERTS_NAMESPACE else NAMESPACE
            self.shell(f"kubectl -n {namespace} rollout status deployment/{name} --timeout={left:.0f}s")
        left = max(1.0, ROLLOUT_SECONDS - began.seconds)
        wait_for(self._is_registered, "a caBundle of the webhook", deadline_seconds=left)

    @contextmanager
    def pool(self) -> Iterator[None]:
        """Let the node be one of the hybrid pool, which takes no pod without the injected tolerations."""
        labels = f"{DOMAIN}/node.usage=hybrid {CARD}.product={PRODUCT}"
        self.shell(f"kubectl label node {NODE_NAME} --overwrite {labels}")
        taints = f"{DOMAIN}/node.usage=hybrid:NoSchedule {CARD}.product={PRODUCT}:NoSchedule"
        self.shell(f"kubectl taint node {NODE_NAME} --overwrite {taints}")
        try:
            yield
        finally:
            keys = f"{DOMAIN}/node.usage- {CARD}.product-"
            self.shell(f"kubectl taint node {NODE_NAME} {keys}")

    @contextmanager
    def team(self) -> Iterator[None]:
        """Make the namespace of a team, and remove it with its pods."""
        self.create_team()
        try:
            yield
        finally:
            self.remove_team()

    def create_team(self) -> None:
        """Make the namespace of a team."""
        self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        wait_for(lambda: self._exists("ServiceAccount", "default", TEAM), "the service account of the team")

    def remove_team(self) -> None:
        """Remove the namespace of the team with its pods."""
        self.shell(f"kubectl delete namespace {TEAM} --wait --timeout=60s")

    def create(self, made: Object) -> str:
        """Create an object by kubectl, as a user does; return the warnings."""
        file = self.shell.folder / "created.yaml"
        file.write_text(yaml.safe_dump(made))
        return self.shell(f"kubectl create -f {file}").stderr

    def wait_running(self, name: str) -> Object:
        """Return the pod once its container runs."""

        def running() -> Object | None:
            found = self.client.get("Pod", name, TEAM)
            return found if found["status"].get("phase") == "Running" else None

        return wait_for(running, lambda: json.dumps(self.client.get("Pod", name, TEAM)["status"], indent=1))

    def wait_unschedulable(self, name: str) -> str:
        """Return the message of kube-scheduler about a pod that waits."""

        def message() -> str | None:
            conditions = self.client.get("Pod", name, TEAM)["status"].get("conditions", [])
            found = [each["message"] for each in conditions if each.get("reason") == "Unschedulable"]
            return found[0] if found else None

        return wait_for(message, f"a verdict of kube-scheduler on {name}")

    def wait_event(self, name: str, reason: str) -> Object:
        """Return the Event about an object of the team with this reason."""

        def found() -> Object | None:
            events = self.client.list("Event", TEAM, field_selector=f"involvedObject.name={name},reason={reason}")
            return events[0] if events else None

        return wait_for(found, f"the Event {reason} about {name}")

    def choose_default_scheduler(self) -> None:
        """Choose the scheduler as deploy/README.md asks for, in the policy of the base."""
        self.shell.replace("deploy/base/policy.yaml", "schedulerName: volcano", "schedulerName: default-scheduler")

    def assert_pod_security(self) -> None:
        """The namespace of the webhook enforces the Pod Security Standard `restricted`."""
        privileged = f"kubectl -n {NAMESPACE} run privileged --image={PAUSE_IMAGE} --privileged --restart=Never"
        outcome = self.shell(privileged, check=False)
        assert outcome.returncode != 0
        assert 'violates PodSecurity "restricted' in outcome.stderr

    def records(self, name: str) -> list[dict[str, Any]]:
        """Return the audit records of the running replicas about a pod, by the command of the pages."""
        printed = self.shell(f"placement-webhook audit list --kubeconfig {self.node.kubeconfig} -o json").stdout
        found = [json.loads(line) for line in printed.splitlines()]
        return [each for each in found if each["name"] == name]

    def replicas(self) -> list[str]:
        """Return the names of the running replicas."""
        selector = "app.kubernetes.io/component=server"
        found = self.client.list("Pod", NAMESPACE, label_selector=selector)
        return [each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"]]

    def metric(self, line: str) -> float:
        """Return the sum over the replicas of a metric with these labels."""
        return sum(self.metrics(line))

    def metrics(self, line: str) -> list[float]:
        """Return a metric of each replica with these labels."""
        found: list[float] = []
        for replica in self.replicas():
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{replica}:8080/proxy/metrics"
            text = self.shell(f"kubectl get --raw {path}").stdout
            found += [float(each.rpartition(" ")[2]) for each in text.splitlines() if each.startswith(line)]
        assert found, f"no metric {line}"
        return found

    def assert_works(self, outcome: str = "Patched") -> None:
        """A GPU pod is injected, bound where it was predicted, and runs; one that fits nowhere is warned of.

        Warning, Event, audit record and metrics report both, doctor finds no fault, and no call of ours is denied. The
        namespace of the team and the pool are there.
        """
        assert self.create(pod("trainer")) == ""
        running = self.wait_running("trainer")
        assert running["spec"]["nodeName"] == NODE_NAME
        rules = running["metadata"]["annotations"][f"{DOMAIN}/placement-rules"].split(",")
        assert "NodeUsageAffinity" in rules
        tolerated = {each["key"] for each in running["spec"]["tolerations"]}
        assert {f"{DOMAIN}/node.usage", f"{CARD}.product"} <= tolerated

        assert f"Insufficient {CARD}" in self.create(pod("too-large", CARDS + 1))
        self.wait_event("too-large", "PlacementInfeasible")

        (record,) = self.records("trainer")
        placement = record["placement"]
        assert (record["outcome"], placement["verdict"], placement["node"]) == (outcome, "Feasible", NODE_NAME)
        (record,) = self.records("too-large")
        assert record["placement"]["verdict"] == "Infeasible"
        assert self.metric("placement_webhook_admission_requests_total{") >= 2
        assert self.metric('placement_webhook_placement_verdicts_total{verdict="Infeasible"}') >= 1
        assert self.metric('placement_webhook_audit_records_total{result="written"}') >= 2
        assert "no fault" in self.doctor()
        self.assert_no_call_is_denied()

    def doctor(self) -> str:
        """Return the findings of doctor.

        Raises:
            CalledProcessError: it found a fault.
        """
        return self.shell(f"placement-webhook doctor --kubeconfig {self.node.kubeconfig}").stdout

    def assert_no_call_is_denied(self) -> None:
        """No request of our service accounts was denied; to be asked before a removal, which takes their rights."""
        denied = denied_calls(self.node.audit_log, self._began)
        assert not denied, "\n".join(denied)

    def leftovers(self) -> list[str]:
        """Return the objects of the installation that the cluster still has."""
        found = []
        for api_version, kind in _CLUSTER_KINDS:
            if self.client.serves(api_version, kind):
                for each in self.client.list(kind, api_version=api_version):
                    name: str = each["metadata"]["name"]
                    if "placement" in name:
                        found.append(f"{kind} {name}")
        return found

    def wait_removed(self) -> None:
        """Return when nothing of the installation is left.

        Raises:
            TimeoutError: something stays; says what.
        """
        wait_for(lambda: not self.leftovers(), lambda: f"the removal of {self.leftovers()}", deadline_seconds=90)

    def _is_registered(self) -> bool:
        with suppress(NotFound):
            kind, version = "MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1"
            webhooks = self.client.get(kind, CONFIGURATION, api_version=version)["webhooks"]
            return all(each["clientConfig"].get("caBundle") for each in webhooks)
        return False

    def _exists(self, kind: str, name: str, namespace: str) -> bool:
        with suppress(ApiError):
            self.client.get(kind, name, namespace)
            return True
        return False


def denied_calls(audit_log: Path, since: int) -> list[str]:
    """Return the requests of our service accounts that the API server denied, from this place of its audit log on."""
    assert audit_log.stat().st_size >= since, f"{audit_log} was rotated"
    ours = tuple(f"system:serviceaccount:{namespace}:" for namespace in (NAMESPACE, CERTS_NAMESPACE))
    denied = set()
    with audit_log.open("rb") as log:
        log.seek(since)
        for event in map(json.loads, log):
            user, status = event["user"].get("username", ""), event.get("responseStatus", {})
            if user.startswith(ours) and status.get("code") in (401, 403):
                denied.add(f"{user}: {event['verb']} {event['requestURI']}: {status.get('message', '')}")
    return sorted(denied)
