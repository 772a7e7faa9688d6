"""Private fields of objects, which placement does not read and no cluster file has."""

from webhook.cluster.objects.selecting_objects import OWNERS
from webhook.documents.documents import JsonObject, field

_DEVICES_GROUP = "resource.k8s.io/"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_PRIVATE_OF_CONTAINERS = (
    *("env", "envFrom", "command", "args"),
    *("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"),
)
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_PRIVATE_OF_SPECS = (
    *("hostAliases", "hostname", "subdomain", "podCIDR", "podCIDRs", "providerID"),
    *("imagePullSecrets", "serviceAccount", "serviceAccountName"),
)
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def without_secrets(content: JsonObject) -> JsonObject:
    """Remove private fields from `content`, a raw API object, in place, and return it.

    These fields are removed: managed fields; env and commands of containers; messages of statuses; the states of
    containers, which can contain the last output of a container, except the reason why a container waits; names,
    addresses and device parameters of specs that placement does not read; the last-applied annotation of `kubectl
    apply`, which repeats these fields; and the templates of controllers.
    """
    metadata = content.get("metadata") or {}
    metadata.pop("managedFields", None)
    (metadata.get("annotations") or {}).pop(_LAST_APPLIED, None)
    if (content.get("apiVersion"), content.get("kind")) in OWNERS:
        (content.get("spec") or {}).pop("template", None)
    for part in _CONTAINERS:
        for container in field(content, "spec", part) or ():
            for name in _PRIVATE_OF_CONTAINERS:
                container.pop(name, None)
    for name in _PRIVATE_OF_SPECS:
        (content.get("spec") or {}).pop(name, None)
    status = content.get("status") or {}
    for part in (status, *(status.get("conditions") or ())):
        part.pop("message", None)
    for name in _STATUSES:
        for container in status.get(name) or ():
            _drop_states(container)
    if str(content.get("apiVersion")).startswith(_DEVICES_GROUP):
        _drop_device_config(content)
    return content


def _drop_states(status: JsonObject) -> None:
    """Remove the states of a container from its status, except the reason why it waits."""
    status.pop("lastState", None)
    if reason := field(status.pop("state", None), "waiting", "reason"):
        status["state"] = {"waiting": {"reason": reason}}


def _drop_device_config(content: JsonObject) -> None:
    """Remove the parameters for device drivers, and the status that drivers report for allocated devices."""
    spec, status = content.get("spec") or {}, content.get("status") or {}
    status.pop("devices", None)
    for part in (spec, field(spec, "devices"), field(spec, "spec", "devices"), field(status, "allocation", "devices")):
        if isinstance(part, dict):
            part.pop("config", None)
