"""Check names, amounts and constraints of a pod as the API server does before it stores the pod. Not on the hot path.

A manifest in a file has not been seen by an API server, so a pod in it can be one that no API server stores.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from webhook.documents.documents import field
from webhook.documents.field import MOST_ERRORS, InvalidInput, RejectedFieldError
from webhook.kube.pod.amounts import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    PODS,
    is_extended_resource,
)
from webhook.kube.quantity import canonical, milli_value

_EMPTY = "must be non-empty"
_OPTIONAL_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_LIMIT_NEEDED = "Limit must be set for non overcommitable resources"
_EVERY_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OF_CONTAINERS = (CPU, MEMORY, EPHEMERAL_STORAGE)
_OF_QUOTAS = (
    *(PODS, "storage", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers", "requests.storage"),
    *(f"{part}.{name}" for part in ("requests", "limits") for name in _OF_CONTAINERS),
)


@dataclass(frozen=True, slots=True)
class _Rule:
    """The form of a name, and the words in which the API server states it.

    Source: k8s.io/apimachinery/pkg/util/validation/validation.go and pkg/api/validate/content
    """

    regex: str
    words: str
    examples: str
    most: int
    unit: str = "bytes"

    @property
    def text(self) -> str:
        """Return the words with the examples and the regular expression."""
        return f"{self.words} (e.g. {self.examples}, regex used for validation is '{self.regex}')"

    def errors(self, text: str, before: str = "") -> Iterator[str]:
        """Yield the errors of `text`, with `before` in front of each."""
        if len(text.encode()) > self.most:
            yield f"{before}must be no more than {self.most} {self.unit}"
        if not re.fullmatch(self.regex, text):
            yield f"{before}{self.text}"


_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_ENDS = "and must start and end with an alphanumeric character"
_SUBDOMAIN = _Rule(
    rf"{_DNS_LABEL}(\.{_DNS_LABEL})*",
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}",
    "'example.com'",
    253,
    "characters",
)
_KEY_PREFIX = replace(_SUBDOMAIN, unit="bytes")
_LABEL = _Rule(
    _DNS_LABEL,
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    "'my-name',  or '123-abc'",
    63,
    "characters",
)
_LABEL_VALUE = _Rule(
    f"({_KEY})?",
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    "'MyValue',  or 'my_value',  or '12345'",
    63,
)
_KEY_NAME = _Rule(
    _KEY,
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    "'MyName',  or 'my.name',  or '123-abc'",
    63,
)


def check_storable(pod: Mapping[str, Any]) -> None:
    """Return if no API server rejects the names, labels, container resources, tolerations and node affinity of `pod`.

    `pod` has the types of a Pod. Its name can be missing: a generated name is valid if its prefix is. Malformed
    quantities are left to the modules that read the amounts. What depends on the release or its feature gates is no
    error: the operators `Lt` and `Gt` of a toleration.

    Raises:
        InvalidInput: an API server rejects the pod; holds the first MOST_ERRORS errors, in its words.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, ValidatePodCreate
    """
    if errors := [*_metadata_errors(pod), *_container_errors(pod), *_toleration_errors(pod), *_node_errors(pod)]:
        raise InvalidInput(errors[:MOST_ERRORS])


def _metadata_errors(pod: Mapping[str, Any]) -> Iterator[RejectedFieldError]:
    prefix = field(pod, "metadata", "generateName")
    if prefix:
        # A `-` at the end of the prefix is not the end of the name.
        yield from _invalid("metadata.generateName", prefix, _SUBDOMAIN.errors(re.sub("-$", "a", prefix)))
    for part, rule in (("name", _SUBDOMAIN), ("namespace", _LABEL)):
        if name := field(pod, "metadata", part):
            yield from _invalid(f"metadata.{part}", name, rule.errors(name))
    for key, value in (field(pod, "metadata", "labels") or {}).items():
        yield from _invalid("metadata.labels", key, _key_errors(key))
        yield from _invalid("metadata.labels", value, _LABEL_VALUE.errors(value))


def _invalid(path: str, value: object, details: Iterable[str]) -> Iterator[RejectedFieldError]:
    return (RejectedFieldError(path, "Invalid value", value, detail) for detail in details)


def _key_errors(key: str) -> Iterator[str]:
    """Yield the errors of the key of a label."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        yield f"a valid label key {_KEY_NAME.text} {_OPTIONAL_PREFIX}"
        return
    if slash:
        yield from _KEY_PREFIX.errors(prefix, "prefix part ") if prefix else (f"prefix part {_EMPTY}",)
    if not name:
        yield f"name part {_EMPTY}"
    yield from _KEY_NAME.errors(name, "name part ")


def _container_errors(pod: Mapping[str, Any]) -> Iterator[RejectedFieldError]:
    names: set[str] = set()
    # The names of init containers are compared with those of all others.
    for part in ("containers", "initContainers"):
        containers = field(pod, "spec", part)
        # What is no list or no object is an error of its reader.
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            path, name = f"spec.{part}[{index}]", field(container, "name")
            if isinstance(name, str) and name:
                yield from _invalid(f"{path}.name", name, _LABEL.errors(name))
                if name in names:
                    yield RejectedFieldError(f"{path}.name", "Duplicate value", name, "")
                names.add(name)
            amounts = (field(container, "resources", each) for each in ("limits", "requests"))
            limits, requests = (each if isinstance(each, dict) else {} for each in amounts)
            yield from _resource_errors(limits, {**limits, **requests}, f"{path}.resources")


def _resource_errors(limits: Mapping[str, Any], requests: Mapping[str, Any], path: str) -> Iterator[RejectedFieldError]:
    """Yield the errors of the resources of a container, with the `requests` that default to the limits.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, validateResourceRequirements
    """
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            yield from _invalid(f"{path}.{part}[{name}]", name, _resource_name_errors(name))
            with suppress(ValueError):
                yield from _invalid(f"{path}.{part}[{name}]", canonical(quantity), _amount_errors(name, quantity))
    for name, quantity in requests.items():
        is_exact = is_extended_resource(name) or name.startswith(HUGE_PAGES_PREFIX)
        if name not in limits:
            if is_exact:
                yield RejectedFieldError(f"{path}.limits", "Required value", None, _LIMIT_NEEDED)
            continue
        with suppress(ValueError):
            difference, limit = milli_value(quantity) - milli_value(limits[name]), canonical(limits[name])
            if difference and is_exact:
                yield from _invalid(
                    f"{path}.requests", canonical(quantity), [f"must be equal to {name} limit of {limit}"]
                )
            elif difference > 0:
                detail = f"must be less than or equal to {name} limit of {limit}"
                yield from _invalid(f"{path}.requests", canonical(quantity), [detail])


def _resource_name_errors(name: str) -> Iterator[str]:
    """Yield the errors of the name of a resource.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, validateContainerResourceName
    """
    errors = [*_key_errors(name)]
    yield from errors
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith(HUGE_PAGES_PREFIX):
            if not errors and name not in _OF_QUOTAS and not name.startswith(f"requests.{HUGE_PAGES_PREFIX}"):
                yield "must be a standard resource type or fully qualified"
            yield "must be a standard resource for containers"
    elif "kubernetes.io/" not in name and (errors or not is_extended_resource(name)):
        yield "doesn't follow extended resource name standard"


def _amount_errors(name: str, quantity: object) -> Iterator[str]:
    """Yield the errors of one amount.

    Raises:
        ValueError: it is not a quantity.
    """
    milli = milli_value(quantity)
    if milli < 0:
        yield "must be greater than or equal to 0"
    if is_extended_resource(name) and milli % 1000:
        yield "must be an integer"


def _toleration_errors(pod: Mapping[str, Any]) -> Iterator[RejectedFieldError]:
    """Yield the errors of the tolerations.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, ValidateTolerations
    """
    for index, each in enumerate(field(pod, "spec", "tolerations") or ()):
        path = f"spec.tolerations[{index}]"
        key, operator, value, effect = (each.get(name) or "" for name in ("key", "operator", "value", "effect"))
        if key:
            yield from _invalid(f"{path}.key", key, _key_errors(key))
        elif operator != "Exists":
            yield from _invalid(f"{path}.operator", operator, [_EVERY_KEY])
        if effect != "NoExecute" and each.get("tolerationSeconds") is not None:
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield from _invalid(f"{path}.effect", effect, [detail])
        if operator in ("", "Equal"):
            if errors := [*_LABEL_VALUE.errors(value)]:
                yield from _invalid(f"{path}.operator", value, [";".join(errors)])
        elif operator == "Exists" and value:
            yield from _invalid(f"{path}.operator", value, ["value must be empty when `operator` is 'Exists'"])
        elif operator not in ("Exists", "Lt", "Gt"):
            yield _unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
        if effect and effect not in _EFFECTS:
            yield _unsupported(f"{path}.effect", effect, _EFFECTS)


def _unsupported(path: str, value: str, supported: Iterable[str]) -> RejectedFieldError:
    detail = "supported values: " + ", ".join(f'"{each}"' for each in supported)
    return RejectedFieldError(path, "Unsupported value", value, detail)


def _node_errors(pod: Mapping[str, Any]) -> Iterator[RejectedFieldError]:
    """Yield the errors of the node selector and of the node affinity.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, validateNodeAffinity
    """
    for key, value in (field(pod, "spec", "nodeSelector") or {}).items():
        yield from _invalid("spec.nodeSelector", key, _key_errors(key))
        yield from _invalid("spec.nodeSelector", value, _LABEL_VALUE.errors(value))
    affinity = field(pod, "spec", "affinity", "nodeAffinity") or {}
    required, preferred = (f"{each}DuringSchedulingIgnoredDuringExecution" for each in ("required", "preferred"))
    path = f"spec.affinity.nodeAffinity.{required}.nodeSelectorTerms"
    terms = field(affinity, required, "nodeSelectorTerms") or ()
    if affinity.get(required) is not None and not terms:
        yield RejectedFieldError(path, "Required value", None, "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from _term_errors(term, f"{path}[{index}]")
        for number, each in enumerate(term.get("matchExpressions") or ()):
            for place, value in enumerate(each.get("values") or ()):
                errors = _LABEL_VALUE.errors(value)
                yield from _invalid(f"{path}[{index}].matchExpressions[{number}].values[{place}]", value, errors)
    for index, each in enumerate(affinity.get(preferred) or ()):
        yield from _term_errors(
            each.get("preference") or {}, f"spec.affinity.nodeAffinity.{preferred}[{index}].preference"
        )


def _term_errors(term: Mapping[str, Any], path: str) -> Iterator[RejectedFieldError]:
    for index, each in enumerate(term.get("matchExpressions") or ()):
        place = f"{path}.matchExpressions[{index}]"
        key, operator, values = each.get("key") or "", each.get("operator") or "", each.get("values") or ()
        yield from _invalid(f"{place}.key", key, _key_errors(key))
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                yield RejectedFieldError(f"{place}.values", "Required value", None, detail)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield RejectedFieldError(f"{place}.values", "Forbidden", None, detail)
        elif operator not in ("Gt", "Lt"):
            yield from _invalid(f"{place}.operator", operator, ["not a valid selector operator"])
        elif len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield RejectedFieldError(f"{place}.values", "Required value", None, detail)
