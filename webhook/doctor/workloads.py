"""The servers and the certs controller: their flags, what they mount, and who owns the certificate. Pure."""

from enum import Enum
from itertools import islice
from pathlib import PurePosixPath

from certs.registration import INJECTED_BY_CERT_MANAGER, Target
from certs.secret import OWNER
from webhook.doctor.cluster import Cluster, listed, texts
from webhook.doctor.source import Source
from webhook.documents.documents import JsonObject, field

_CONTROLLER_LABELS = {"app.kubernetes.io/name": "placement-webhook", "app.kubernetes.io/component": "certs"}
VARIABLE_PREFIX = "PLACEMENT_WEBHOOK_"
# Source: click/types.py, BoolParamType
_TRUE = ("1", "true", "t", "yes", "y", "on")


def containers_of(workload: JsonObject) -> list[JsonObject]:
    """Return the containers of a workload's pods."""
    return listed(workload, "spec", "template", "spec", "containers")


def pod_selector(workload: JsonObject) -> str:
    """Return the label selector of a workload's pods, as kubectl has it."""
    labels = texts(workload, "spec", "template", "metadata", "labels")
    return ",".join(f"{key}={value}" for key, value in labels.items())


def args_of(container: JsonObject, key: str = "args") -> list[str]:
    """Return the arguments of a container."""
    found = container.get(key)
    return [str(each) for each in found] if isinstance(found, list) else []


def options(container: JsonObject, name: str) -> list[str]:
    """Return the values of an option in the order of the arguments; without any, that of its variable.

    A value is in the argument of its option or in the next one.
    """
    values: list[str] = []
    words = iter(args_of(container))
    for word in words:
        if word == name:
            values += islice(words, 1)
        elif word.startswith(f"{name}="):
            values.append(word.removeprefix(f"{name}="))
    variable = _variable(container, name)
    return values or ([variable] if variable else [])


def option(workload: JsonObject, name: str) -> str | None:
    """Return the value of an option of the first container of a workload that has it, the last one if it has several.

    None if it is not there.
    """
    return next((values[-1] for each in containers_of(workload) if (values := options(each, name))), None)


def has_flag(workload: JsonObject, name: str) -> bool:
    """Return whether a container of the workload has the flag `name`, among its arguments or by its variable."""
    return any(_has_flag(each, name) for each in containers_of(workload))


def follows_objects(workload: JsonObject) -> bool:
    """Return whether a server follows the PlacementPolicy objects of the cluster."""
    return option(workload, "--policy-source") == "crd"


def admin_port(workload: JsonObject) -> str | None:
    """Return the admin port of a server without a token, or None if it is not known or listens on loopback only."""
    host, _, port = (option(workload, "--admin-listen") or "").rpartition(":")
    is_open = host and host not in ("127.0.0.1", "localhost", "[::1]")
    return port if is_open and port.isdigit() and option(workload, "--admin-token-file") is None else None


def policy_place(workload: JsonObject) -> tuple[str, str] | None:
    """Return the ConfigMap and key of the policy file of a workload's server, or None if it names none."""
    for container in containers_of(workload):
        for text in options(container, "--policy")[-1:]:
            file = PurePosixPath(text)
            name = mounted(workload, container, str(file.parent), "configMap", "name")
            if name is not None:
                return name, file.name
    return None


def mounted(workload: JsonObject, container: JsonObject, directory: str, *path: str) -> str | None:
    """Return the text at `path` of the volume that `container` mounts at `directory`, such as the name of a Secret."""
    mounts = listed(container, "volumeMounts")
    volumes = [each.get("name") for each in mounts if str(each.get("mountPath")).rstrip("/") == directory.rstrip("/")]
    for each in listed(workload, "spec", "template", "spec", "volumes"):
        found = field(each, *path)
        if each.get("name") in volumes and isinstance(found, str):
            return found
    return None


class Owner(Enum):
    """The owners: the certs controller, cert-manager, or a person with own files or `certs register`."""

    CONTROLLER = "certs controller"
    CERT_MANAGER = "cert-manager"
    PERSON = "person"


def owner_of(cluster: Cluster) -> Owner:
    """Return the owner of the certificate, by annotations, the Deployment of the controller, and who wrote caBundle."""
    if injected_from(cluster) is not None:
        return Owner.CERT_MANAGER
    if controller_of(cluster) is not None or _writer(cluster.configuration or {}).startswith(OWNER):
        return Owner.CONTROLLER
    return Owner.PERSON


def injected_from(cluster: Cluster) -> tuple[str, str] | None:
    """Return annotation and value by which cert-manager injects the CA, such as `NAMESPACE/CERTIFICATE`."""
    annotations = texts(cluster.configuration or {}, "metadata", "annotations")
    return next(((key, annotations[key]) for key in INJECTED_BY_CERT_MANAGER if key in annotations), None)


def controller_of(cluster: Cluster) -> JsonObject | None:
    """Return the Deployment of the certs controller, in any namespace, or None if there is none, or it was not read."""
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
    """Return the namespace of the certs controller; that of the manifests if it does not exist."""
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
    """Return the field manager that wrote a caBundle last, or an empty string if it is not known.

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
    return name in args_of(container) or _variable(container, name).lower() in _TRUE


def _variable(container: JsonObject, name: str) -> str:
    """Return the value of the environment variable that `serve` reads for a flag, or "" if it is not set here."""
    wanted = VARIABLE_PREFIX + name.removeprefix("--").replace("-", "_").upper()
    return next((str(each.get("value") or "") for each in listed(container, "env") if each.get("name") == wanted), "")
