"""Check names, amounts and constraints of a pod as the API server does before it stores the pod. Not on the hot path.

No API server has validated a manifest in a file, so the API server may reject a pod in it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from webhook.documents.documents import field
from webhook.documents.field import MOST_ERRORS, InvalidInput, RejectedFieldError
from webhook.kube.pod.name_rules import LABEL, LABEL_VALUE, SUBDOMAIN, invalid_value, key_errors
from webhook.kube.pod.resource_validation import each_container, resource_errors

_EVERY_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check_storable(pod: Mapping[str, Any]) -> None:
    """Check that the API server accepts names, labels, containers, resources, tolerations and node affinity of `pod`.

    The fields of `pod` must have valid types. Its name can be missing: a generated name is valid if its prefix is
    valid. Malformed quantities are left to the modules that read the amounts. A value that is only valid in some
    releases or with feature gates is not an error; these are the operators `Lt` and `Gt` of a toleration.

    Raises:
        InvalidInput: the API server rejects the pod; contains the first MOST_ERRORS errors with the API server's
            messages.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, ValidatePodCreate
    """
    of_pod = (_metadata_errors, _container_errors, resource_errors, _toleration_errors, _node_errors)
    if errors := [error for each in of_pod for error in each(pod)]:
        raise InvalidInput(errors[:MOST_ERRORS])


def check_complete(pod: Mapping[str, Any]) -> None:
    """Check that a Pod has its name, and the name and image of each container, which controllers add to other pods.

    Raises:
        InvalidInput: the API server rejects the pod; contains the first MOST_ERRORS errors with the API server's
            messages.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, validateContainerCommon;
    k8s.io/apimachinery/pkg/api/validation/objectmeta.go, ValidateObjectMetaAccessorWithOpts
    """
    if errors := [*_missing(pod)]:
        raise InvalidInput(errors[:MOST_ERRORS])


def _missing(pod: Mapping[str, Any]) -> Iterator[RejectedFieldError]:
    if not (field(pod, "metadata", "name") or field(pod, "metadata", "generateName")):
        yield RejectedFieldError("metadata.name", "Required value", None, "name or generateName is required")
    for path, container in each_container(pod):
        for name in ("name", "image"):
            if not container.get(name):
                yield RejectedFieldError(f"{path}.{name}", "Required value", None, "")


def _metadata_errors(pod: Mapping[str, Any]) -> Iterator[RejectedFieldError]:
    prefix = field(pod, "metadata", "generateName")
    if prefix:
        # A `-` at the end of the prefix is not the end of the name.
        yield from invalid_value("metadata.generateName", prefix, SUBDOMAIN.errors(re.sub("-$", "a", prefix)))
    for part, rule in (("name", SUBDOMAIN), ("namespace", LABEL)):
        if name := field(pod, "metadata", part):
            yield from invalid_value(f"metadata.{part}", name, rule.errors(name))
    for key, value in (field(pod, "metadata", "labels") or {}).items():
        yield from invalid_value("metadata.labels", key, key_errors(key))
        yield from invalid_value("metadata.labels", value, LABEL_VALUE.errors(value))


def _container_errors(pod: Mapping[str, Any]) -> Iterator[RejectedFieldError]:
    """Yield the errors of the containers and their names. A controller can add a missing name."""
    if not field(pod, "spec", "containers"):
        yield RejectedFieldError("spec.containers", "Required value", None, "")
    names: set[str] = set()
    # The names of init containers are compared with those of all others.
    for path, container in each_container(pod):
        name = field(container, "name")
        if isinstance(name, str) and name:
            yield from invalid_value(f"{path}.name", name, LABEL.errors(name))
            if name in names:
                yield RejectedFieldError(f"{path}.name", "Duplicate value", name, "")
            names.add(name)


def _toleration_errors(pod: Mapping[str, Any]) -> Iterator[RejectedFieldError]:
    """Yield the errors of the tolerations.

    Source: k8s.io/kubernetes/pkg/apis/core/validation/validation.go, ValidateTolerations
    """
    for index, each in enumerate(field(pod, "spec", "tolerations") or ()):
        path = f"spec.tolerations[{index}]"
        key, operator, value, effect = (each.get(name) or "" for name in ("key", "operator", "value", "effect"))
        if key:
            yield from invalid_value(f"{path}.key", key, key_errors(key))
        elif operator != "Exists":
            yield from invalid_value(f"{path}.operator", operator, [_EVERY_KEY])
        if effect != "NoExecute" and each.get("tolerationSeconds") is not None:
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield from invalid_value(f"{path}.effect", effect, [detail])
        if operator in ("", "Equal"):
            if errors := [*LABEL_VALUE.errors(value)]:
                yield from invalid_value(f"{path}.operator", value, [";".join(errors)])
        elif operator == "Exists" and value:
            yield from invalid_value(f"{path}.operator", value, ["value must be empty when `operator` is 'Exists'"])
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
        yield from invalid_value("spec.nodeSelector", key, key_errors(key))
        yield from invalid_value("spec.nodeSelector", value, LABEL_VALUE.errors(value))
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
                errors = LABEL_VALUE.errors(value)
                yield from invalid_value(f"{path}[{index}].matchExpressions[{number}].values[{place}]", value, errors)
    for index, each in enumerate(affinity.get(preferred) or ()):
        yield from _term_errors(
            each.get("preference") or {}, f"spec.affinity.nodeAffinity.{preferred}[{index}].preference"
        )


def _term_errors(term: Mapping[str, Any], path: str) -> Iterator[RejectedFieldError]:
    for index, each in enumerate(term.get("matchExpressions") or ()):
        place = f"{path}.matchExpressions[{index}]"
        key, operator, values = each.get("key") or "", each.get("operator") or "", each.get("values") or ()
        yield from invalid_value(f"{place}.key", key, key_errors(key))
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                yield RejectedFieldError(f"{place}.values", "Required value", None, detail)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield RejectedFieldError(f"{place}.values", "Forbidden", None, detail)
        elif operator not in ("Gt", "Lt"):
            yield from invalid_value(f"{place}.operator", operator, ["not a valid selector operator"])
        elif len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield RejectedFieldError(f"{place}.values", "Required value", None, detail)
