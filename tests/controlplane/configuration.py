"""The files that the programs of the control plane are started with."""

import base64
from pathlib import Path
from typing import Any

from tests.controlplane.credentials import Credentials

# What serves no test, or needs a controller that does not run: a node's taints are those a test gives it, and pods
# need no service account.
DISABLED_ADMISSION_PLUGINS = ("ServiceAccount", "TaintNodesByCondition")

CONTROLLERS = (
    "deployment-controller",
    "job-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "statefulset-controller",
)


def kubeconfig(credentials: Credentials, url: str) -> dict[str, Any]:
    """Return the administrator's kubeconfig."""
    return kubeconfig_of(credentials.ca, credentials.admin_certificate, credentials.admin_key, url)


def kubeconfig_of(ca: Path, certificate: Path, key: Path, url: str) -> dict[str, Any]:
    """Return the kubeconfig of a client, with the certificates in it."""
    user = {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}
    cluster = {"server": url, "certificate-authority-data": _base64(ca)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "admin"}}],
        "current-context": "tests",
    }


def webhook_authentication(kubeconfig: Path) -> dict[str, Any]:
    """Return the AdmissionConfiguration by which the API server presents the certificates of `kubeconfig` to webhooks.

    Source: k8s.io/apiserver/pkg/admission/plugin/webhook/config/apis/webhookadmission/v1/types.go
    """
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(kubeconfig),
    }
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": "MutatingAdmissionWebhook", "configuration": configuration}],
    }


def webhook_kubeconfig(certificate: Path, key: Path) -> dict[str, Any]:
    """Return the kubeconfig of all webhooks: its users have the names of the webhooks' servers, `*` is the rest.

    Source: k8s.io/apiserver/pkg/util/webhook/authentication.go, clientConfig
    """
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    return {"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}


def audit_policy() -> dict[str, Any]:
    """Return whole events of what is done to pods, webhooks' patches included; nothing of the rest."""
    pods = {
        "level": "RequestResponse",
        "verbs": ["create", "update", "patch"],
        "resources": [{"group": "", "resources": ["pods"]}],
    }
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [pods, {"level": "None"}],
    }


def scheduler_configuration() -> dict[str, Any]:
    """Return the scheduler of the tests, under three names.

    `volcano` is a stand-in for the batch scheduler of that name: the default plugins. `binpack` is the profile of
    deploy/scheduler: it fills a node before it opens the next, in the preferred pool first. All nodes are scored, so
    that the scores of a pod name every feasible one.
    """
    most_allocated = {
        "type": "MostAllocated",
        "resources": [
            {"name": "nvidia.com/gpu", "weight": 5},
            {"name": "cpu", "weight": 1},
            {"name": "memory", "weight": 1},
        ],
    }
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": most_allocated}}
    spread = {"name": "PodTopologySpread", "args": {"defaultingType": "List", "defaultConstraints": []}}
    preferred_pool_first = {"multiPoint": {"enabled": [{"name": "NodeAffinity", "weight": 14}]}}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100,
        "podMaxBackoffSeconds": 1,
        "profiles": [
            {"schedulerName": "default-scheduler"},
            {"schedulerName": "volcano"},
            {"schedulerName": "binpack", "plugins": preferred_pool_first, "pluginConfig": [fit, spread]},
        ],
    }


def _base64(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
