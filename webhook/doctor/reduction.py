"""The part of each object that checks read: a large cluster is read in pages, and little of them is kept. Pure."""

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from webhook.doctor.arguments import VARIABLE_PREFIX, option, option_of
from webhook.doctor.installation import JsonObject, StoredPolicy, listed, texts
from webhook.doctor.source import Source
from webhook.kube.documents import field
from webhook.kube.field import InvalidInput
from webhook.policy.policy_documents import policy_set
from webhook.policy_cases import parse_tested_policies

_OF_HELM = "meta.helm.sh/"
_CONTAINER = ("name", "command", "args", "ports", "volumeMounts")


def _metadata(content: JsonObject, *kept: str) -> JsonObject:
    return {key: field(content, "metadata", key) for key in ("name", "namespace", *kept)}


def _named(content: JsonObject) -> JsonObject:
    return {"metadata": _metadata(content, "labels", "annotations")}


def _node(content: JsonObject) -> JsonObject:
    return {
        "metadata": _metadata(content, "labels"),
        "spec": {key: field(content, "spec", key) for key in ("taints", "unschedulable")},
        "status": {key: field(content, "status", key) for key in ("allocatable", "capacity")},
    }


def _deployment(content: JsonObject) -> JsonObject:
    pod = field(content, "spec", "template", "spec")
    containers = [
        {key: each[key] for key in _CONTAINER if key in each} | {"env": _own_variables(each)}
        for each in listed(content, "spec", "template", "spec", "containers")
    ]
    kept = {key: field(pod or {}, key) for key in ("volumes", "serviceAccountName")}
    template = {
        "metadata": {"labels": field(content, "spec", "template", "metadata", "labels")},
        "spec": {**kept, "containers": containers},
    }
    return {
        "kind": content.get("kind"),
        "metadata": {**_metadata(content), "annotations": _release(content)},
        "spec": {"replicas": field(content, "spec", "replicas"), "template": template},
        "status": {"readyReplicas": field(content, "status", "readyReplicas")},
    }


def _own_variables(container: JsonObject) -> list[JsonObject]:
    """Return the variables for flags of this program; others can have secrets."""
    return [each for each in listed(container, "env") if str(each.get("name")).startswith(VARIABLE_PREFIX)]


def _release(content: JsonObject) -> JsonObject:
    annotations = texts(content, "metadata", "annotations")
    return {key: value for key, value in annotations.items() if key.startswith(_OF_HELM)}


def _configuration(content: JsonObject) -> JsonObject:
    """Return a webhook configuration with the field managers of its caBundles alone."""
    writers = [
        {"manager": each.get("manager"), "time": each.get("time")}
        for each in listed(content, "metadata", "managedFields")
        if _wrote_ca_bundle(field(each, "fieldsV1", "f:webhooks"))
    ]
    kept = _without_managed_fields(content)
    metadata = kept.get("metadata")
    return {**kept, "metadata": {**metadata, "managedFields": writers}} if isinstance(metadata, dict) else kept


def _wrote_ca_bundle(webhooks: object) -> bool:
    entries = webhooks.values() if isinstance(webhooks, dict) else ()
    return any(field(each, "f:clientConfig", "f:caBundle") is not None for each in entries if isinstance(each, dict))


def _policy_object(content: JsonObject) -> JsonObject:
    return {"metadata": _metadata(content, "generation"), "status": field(content, "status")}


def _lease(content: JsonObject) -> JsonObject:
    written: list[JsonObject] = [
        {"time": each.get("time"), "fieldsV1": {"f:spec": {"f:renewTime": {}}}}
        for each in listed(content, "metadata", "managedFields")
        if field(each, "fieldsV1", "f:spec", "f:renewTime") is not None
    ]
    spec = {key: field(content, "spec", key) for key in ("renewTime", "holderIdentity")}
    return {"metadata": {**_metadata(content), "managedFields": written}, "spec": spec}


def _without_managed_fields(content: JsonObject) -> JsonObject:
    metadata = content.get("metadata")
    if not isinstance(metadata, dict):
        return content
    return {**content, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


_REDUCTIONS: Mapping[Source, Callable[[JsonObject], JsonObject]] = {
    Source.CONFIGURATIONS: _configuration,
    Source.NAMESPACES: _named,
    Source.NODES: _node,
    Source.DEPLOYMENTS: _deployment,
    Source.LEASES: _lease,
    Source.POLICY: _policy_object,
    Source.QUEUES: _named,
}


def reduced(source: Source, content: JsonObject) -> JsonObject:
    """Return the part of an object of `source` that checks read."""
    return _REDUCTIONS.get(source, _without_managed_fields)(content)


def policy_place(deployment: JsonObject) -> tuple[str, str] | None:
    """Return the ConfigMap and key of the policy file of a Deployment's server; None if it names none."""
    for container in listed(deployment, "spec", "template", "spec", "containers"):
        file = _policy_file(container)
        for mount in listed(container, "volumeMounts"):
            if file is None or str(mount.get("mountPath")).rstrip("/") != str(file.parent):
                continue
            for volume in listed(deployment, "spec", "template", "spec", "volumes"):
                name = field(volume, "configMap", "name")
                if volume.get("name") == mount.get("name") and isinstance(name, str):
                    return name, file.name
    return None


def follows_objects(workload: JsonObject) -> bool:
    """Return whether a server follows the PlacementPolicy objects of the cluster."""
    return option(workload, "--policy-source") == "crd"


def _policy_file(container: JsonObject) -> PurePosixPath | None:
    path = option_of(container, "--policy")
    return PurePosixPath(path) if path is not None else None


def stored_policy(config_map: JsonObject, name: str, key: str) -> StoredPolicy:
    """Return the policy in a ConfigMap, or its errors, as a server reads it."""
    text = texts(config_map, "data").get(key)
    if text is None:
        return StoredPolicy(name, None, (f"it has no key {key}",))
    try:
        read = policy_set(parse_tested_policies(text, key))
    except InvalidInput as error:
        return StoredPolicy(name, None, tuple(map(str, error.errors)))
    return StoredPolicy(name, read.default, others=read.others)
