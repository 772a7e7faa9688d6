"""The workload that runs the servers of an installation: its flags, and the volumes that it mounts. Pure."""

from collections.abc import Iterable
from itertools import islice
from pathlib import PurePosixPath

from webhook.documents.documents import JsonObject, field
from webhook.documents.parts import items_at, listed, texts

WORKLOADS = ("Deployment", "StatefulSet")
VARIABLE_PREFIX = "PLACEMENT_WEBHOOK_"
_OWN_LABELS = {"app.kubernetes.io/name": "placement-webhook", "app.kubernetes.io/component": "server"}


def servers_of(workloads: Iterable[JsonObject], service: JsonObject | None, namespace: str) -> JsonObject | None:
    """Return the first of `workloads` in the namespace whose pods the Service selects, or None.

    Without a Service, the labels of the shipped manifests are used as the selector.
    """
    wanted = texts(service or {}, "spec", "selector") or _OWN_LABELS
    for each in workloads:
        labels = texts(each, "spec", "template", "metadata", "labels")
        if field(each, "metadata", "namespace") == namespace and wanted.items() <= labels.items():
            return each
    return None


def ready_endpoints(slices: Iterable[JsonObject]) -> list[tuple[JsonObject, JsonObject]]:
    """Return the ready endpoints, each with its EndpointSlice."""
    pairs = ((each, some) for some in slices for each in listed(some, "endpoints"))
    return [pair for pair in pairs if field(pair[0], "conditions", "ready") is not False]


def containers_of(workload: JsonObject) -> list[JsonObject]:
    """Return the containers of a workload's pods."""
    return listed(workload, "spec", "template", "spec", "containers")


def args_of(container: JsonObject, key: str = "args") -> list[str]:
    """Return the arguments of a container."""
    return [str(each) for each in items_at(container, key)]


def options(container: JsonObject, name: str) -> list[str]:
    """Return the values of `--name=value` or `--name value` in order, or else of its variable."""
    values: list[str] = []
    words = iter(args_of(container))
    for word in words:
        if word == name:
            values += islice(words, 1)
        elif word.startswith(f"{name}="):
            values.append(word.removeprefix(f"{name}="))
    value = variable_of(container, name)
    return values or ([value] if value else [])


def option(workload: JsonObject, name: str) -> str | None:
    """Return the last value of an option of the first container that has it, or None."""
    return next((values[-1] for each in containers_of(workload) if (values := options(each, name))), None)


def follows_objects(workload: JsonObject) -> bool:
    """Return whether a server follows the PlacementPolicy objects of the cluster."""
    return option(workload, "--policy-source") == "crd"


def admin_port(workload: JsonObject) -> str | None:
    """Return the admin port of a server, or None if it needs a token, is not known, or listens on loopback only."""
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
    """Return the text at `path` in the volume that `container` mounts at `directory`, such as the name of a Secret."""
    mounts = listed(container, "volumeMounts")
    volumes = [each.get("name") for each in mounts if str(each.get("mountPath")).rstrip("/") == directory.rstrip("/")]
    for each in listed(workload, "spec", "template", "spec", "volumes"):
        found = field(each, *path)
        if each.get("name") in volumes and isinstance(found, str):
            return found
    return None


def variable_of(container: JsonObject, name: str) -> str:
    """Return the value of the environment variable that `serve` reads for a flag, or "" if it is not set here."""
    wanted = VARIABLE_PREFIX + name.removeprefix("--").replace("-", "_").upper()
    return next((str(each.get("value") or "") for each in listed(container, "env") if each.get("name") == wanted), "")
