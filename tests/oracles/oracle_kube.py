"""A plain reference implementation of selectors and tolerations, from the sources of Kubernetes.

`webhook.kube` computes the same for the server. Nothing is shared, so that a fault there is a disagreement here.
"""

import re
from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]


def tolerates(toleration: Object, taint: Object) -> bool:
    """Lt and Gt tolerate nothing: their feature gate is off by default.

    Source: k8s.io/api/core/v1/toleration.go, ToleratesTaint
    """
    effect, key = toleration.get("effect") or "", toleration.get("key") or ""
    if effect not in ("", taint.get("effect") or ""):
        return False
    if key not in ("", taint.get("key") or ""):
        return False
    if toleration.get("operator") == "Exists":
        return True
    if toleration.get("operator") in (None, "", "Equal"):
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return False


def tolerates_any(tolerations: list[Object], taint: Object) -> bool:
    """Return whether one of `tolerations` tolerates `taint`."""
    return any(tolerates(each, taint) for each in tolerations)


def requirement_matches(requirement: Object, labels: Object) -> bool:
    """Return whether `labels` satisfy one requirement; what the API server refuses is satisfied by none.

    Source: k8s.io/apimachinery/pkg/labels/selector.go, NewRequirement and Requirement.Matches
    """
    key, values = requirement["key"], list(requirement.get("values") or [])
    match requirement["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return values != [] and (key not in labels or labels[key] not in values)
        case "Exists":
            return values == [] and key in labels
        case "DoesNotExist":
            return values == [] and key not in labels
        case "Gt" | "Lt" as operator if len(values) == 1 and key in labels:
            label, bound = int64(labels[key]), int64(values[0])
            if label is None or bound is None:
                return False
            return label > bound if operator == "Gt" else label < bound
    return False


def int64(text: str) -> int | None:
    """Return the integer that Go's strconv.ParseInt(text, 10, 64) returns, None where it fails."""
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return None
    return int(text) if -(2**63) <= int(text) < 2**63 else None


def field_matches(requirement: Object, name: str) -> bool:
    """Return whether the node `name` satisfies one requirement of matchFields.

    Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, nodeSelectorRequirementsAsFieldSelector
    """
    values = requirement.get("values") or []
    if len(values) != 1 or requirement["operator"] not in ("In", "NotIn"):
        return False
    content = name if requirement["key"] == "metadata.name" else ""
    is_named = bool(content == values[0])
    return is_named if requirement["operator"] == "In" else not is_named


def term_matches(term: Object, labels: Object, name: str) -> bool:
    """Return whether the node `name` with `labels` satisfies a NodeSelectorTerm; an empty one matches no node.

    Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, nodeSelectorTerm.match
    """
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(requirement_matches(each, labels) for each in expressions) and all(
        field_matches(each, name) for each in fields
    )


def required_node_selector(spec: Object) -> Object | None:
    """Return the required node affinity of a pod, None where it has none."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    selector: Object | None = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return selector


def required_node_affinity_matches(spec: Object, labels: Object, name: str) -> bool:
    """Return whether the nodeSelector and one of the required terms match: terms are ORed.

    Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, RequiredNodeAffinity.Match
    """
    for key, value in (spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            return False
    required = required_node_selector(spec)
    if required is None:
        return True
    return any(term_matches(term, labels, name) for term in required.get("nodeSelectorTerms") or [])


def label_selector_matches(selector: Object | None, labels: Object) -> bool:
    """Return whether `labels` satisfy a LabelSelector: null selects nothing, an empty one everything.

    Source: k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector
    """
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for expression in selector.get("matchExpressions") or []:
        if expression["operator"] not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return False
        if not requirement_matches(expression, labels):
            return False
    return True
