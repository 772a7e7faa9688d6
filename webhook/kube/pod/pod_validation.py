"""Check names and amounts of a pod as the API server does before it stores the pod. Not on the hot path.

A manifest in a file has not been seen by an API server, so a pod in it can be one that no API server stores.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from webhook.documents.documents import field
from webhook.documents.field import MOST_ERRORS, FieldError, InvalidInput, invalid, required
from webhook.kube.names import is_dns_subdomain, is_label_value
from webhook.kube.pod.amounts import HUGE_PAGES_PREFIX, is_extended_resource
from webhook.kube.quantity import milli_value

_CONTAINERS = ("initContainers", "containers")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character"
)


def check_storable(pod: Mapping[str, Any]) -> None:
    """Return if no API server rejects the names, label values and container resources of `pod`.

    `pod` has the types of a Pod. Its name can be missing: a generated name is valid if its prefix is.

    Raises:
        InvalidInput: an API server rejects the pod; holds the first MOST_ERRORS errors, in its words.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, ValidatePodCreate
    """
    if errors := [*_metadata_errors(pod), *_container_errors(pod)]:
        raise InvalidInput(errors[:MOST_ERRORS])


def _metadata_errors(pod: Mapping[str, Any]) -> Iterator[FieldError]:
    name, prefix = field(pod, "metadata", "name"), field(pod, "metadata", "generateName")
    if name and not is_dns_subdomain(name):
        yield _bad_name("metadata.name", name, _SUBDOMAIN_RULE, 253)
    # A `-` at the end of the prefix is not the end of the name.
    if prefix and not is_dns_subdomain(re.sub("-$", "a", prefix)):
        yield _bad_name("metadata.generateName", prefix, _SUBDOMAIN_RULE, 253)
    namespace = field(pod, "metadata", "namespace")
    if namespace and not _LABEL.fullmatch(namespace):
        yield _bad_name("metadata.namespace", namespace, _LABEL_RULE, 63)
    for value in (field(pod, "metadata", "labels") or {}).values():
        if not is_label_value(value):
            yield _bad_name("metadata.labels", value, _LABEL_VALUE_RULE, 63, "bytes")


def _bad_name(path: str, value: str, rule: str, most: int, unit: str = "characters") -> FieldError:
    return invalid(path, value, f"must be no more than {most} {unit}" if len(value) > most else rule)


def _container_errors(pod: Mapping[str, Any]) -> Iterator[FieldError]:
    for part in _CONTAINERS:
        for index, container in enumerate(field(pod, "spec", part) or ()):
            path, name = f"spec.{part}[{index}]", container.get("name")
            if isinstance(name, str) and name and not _LABEL.fullmatch(name):
                yield _bad_name(f"{path}.name", name, _LABEL_RULE, 63)
            limits, requests = (field(container, "resources", each) or {} for each in ("limits", "requests"))
            yield from _resource_errors(limits, requests, f"{path}.resources")


def _resource_errors(limits: Mapping[str, Any], requests: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Yield the errors of the resources of a container, whose quantities are valid.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, validateResourceRequirements
    """
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            if is_extended_resource(name) and milli_value(quantity) % 1000:
                yield invalid(f"{path}.{part}[{name}]", str(quantity), "must be an integer")
    for name, quantity in requests.items():
        is_exact = is_extended_resource(name) or name.startswith(HUGE_PAGES_PREFIX)
        if name not in limits:
            if is_exact:
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
            continue
        difference = milli_value(quantity) - milli_value(limits[name])
        if difference and is_exact:
            yield invalid(f"{path}.requests", str(quantity), f"must be equal to {name} limit of {limits[name]}")
        elif difference > 0:
            detail = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", str(quantity), detail)
