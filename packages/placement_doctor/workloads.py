"""The servers and the certs controller: their flags, their mounts, and the owner of the certificate. Pure."""

from enum import Enum

from certs.registration import INJECTED_BY_CERT_MANAGER, Target
from certs.secret import OWNER
from placement_doctor.cluster import Cluster
from placement_doctor.source import Source
from webhook.cli.inputs.installed_servers import args_of, containers_of, mounted, option, variable_of
from webhook.documents.documents import JsonObject, field
from webhook.documents.parts import listed, texts

_CONTROLLER_LABELS = {"app.kubernetes.io/name": "placement-webhook", "app.kubernetes.io/component": "certs"}
# Source: click/types.py, BoolParamType
_TRUE = ("1", "true", "t", "yes", "y", "on")


def pod_selector(workload: JsonObject) -> str:
    """Return the label selector of a workload's pods in the format of kubectl."""
    labels = texts(workload, "spec", "template", "metadata", "labels")
    return ",".join(f"{key}={value}" for key, value in labels.items())


def has_flag(workload: JsonObject, name: str) -> bool:
    """Return whether a container of the workload has the flag `name`, as an argument or environment variable."""
    return any(_has_flag(each, name) for each in containers_of(workload))


class Owner(Enum):
    """The owners of a certificate: the certs controller, cert-manager, or a person (files, `certs register`)."""

    CONTROLLER = "certs controller"
    CERT_MANAGER = "cert-manager"
    PERSON = "person"


def owner_of(cluster: Cluster) -> Owner:
    """Return the owner of the certificate, by annotations, the controller's Deployment, and the caBundle's writer."""
    if injected_from(cluster) is not None:
        return Owner.CERT_MANAGER
    if controller_of(cluster) is not None or _writer(cluster.configuration or {}).startswith(OWNER):
        return Owner.CONTROLLER
    return Owner.PERSON


def injected_from(cluster: Cluster) -> tuple[str, str] | None:
    """Return annotation and value with which cert-manager injects the CA, such as `NAMESPACE/CERTIFICATE`, or None."""
    annotations = texts(cluster.configuration or {}, "metadata", "annotations")
    return next(((key, annotations[key]) for key in INJECTED_BY_CERT_MANAGER if key in annotations), None)


def controller_of(cluster: Cluster) -> JsonObject | None:
    """Return the Deployment of the certs controller, in any namespace, or None if there is none or it was not read."""
    target = cluster.target
    for each in cluster.of(Source.DEPLOYMENTS):
        labels = texts(each, "spec", "template", "metadata", "labels")
        commands = [args_of(container)[:2] for container in containers_of(each)]
        if labels.items() >= _CONTROLLER_LABELS.items() or ["certs", "controller"] in commands:
            # It is beside the webhook, in the namespace of the manifests, or its arguments name the webhook's.
            own, served = field(each, "metadata", "namespace"), option(each, "--namespace") or Target().namespace
            if own in (target.namespace, target.controller_namespace) or served == target.namespace:
                return each
    return None


def controller_namespace(cluster: Cluster) -> str:
    """Return the namespace of the certs controller, or that of the manifests if the controller does not exist."""
    found = field(controller_of(cluster) or {}, "metadata", "namespace")
    return str(found or cluster.target.controller_namespace)


def secret_of(cluster: Cluster) -> str:
    """Return the name of the Secret with the certificate."""
    servers = cluster.deployment or {}
    directory = option(servers, "--tls-dir")
    found = option(controller_of(cluster) or {}, "--secret")
    if found is None and directory is not None:
        secrets = (mounted(servers, each, directory, "secret", "secretName") for each in containers_of(servers))
        found = next(filter(None, secrets), None)
    return cluster.target.secret if found is None else found


def _writer(configuration: JsonObject) -> str:
    """Return the field manager that last wrote a caBundle, or an empty string if it is not known.

    Source: k8s.io/apimachinery/pkg/apis/meta/v1/types.go, ManagedFieldsEntry
    """
    writers = [("", "")]
    for each in listed(configuration, "metadata", "managedFields"):
        webhooks = field(each, "fieldsV1", "f:webhooks")
        entries = webhooks.values() if isinstance(webhooks, dict) else ()
        if any(field(entry, "f:clientConfig", "f:caBundle") is not None for entry in entries):
            writers.append((str(each.get("time") or ""), str(each.get("manager") or "")))
    return max(writers)[1]


def _has_flag(container: JsonObject, name: str) -> bool:
    return name in args_of(container) or variable_of(container, name).lower() in _TRUE
