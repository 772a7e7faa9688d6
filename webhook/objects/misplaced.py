"""Annotations on an object that belong on its pod template."""

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.documents.documents import field
from webhook.kube.api.admission import JsonObject
from webhook.kube.workloads.pod_set import PodSet
from webhook.policy.policy import Policy


def keys_of(content: Mapping[str, Any], policy: Policy) -> set[str]:
    """Return the keys of the policy that an object, or what pods have in common, has."""
    annotations = field(content, "metadata", "annotations")
    return {key for key in policy.keys if key in annotations} if isinstance(annotations, Mapping) else set()


def misplaced(content: JsonObject, pods: Iterable[PodSet], policy: Policy, note: str = "") -> list[str]:
    """Return a warning if the object `content` itself has keys of the policy that its `pods` lack.

    `note` is the place of the pods of an object that holds none.
    """
    own, place = keys_of(content, policy), ""
    for each in pods:
        own -= keys_of(each.common, policy)
        place = place or each.annotations_path
    if not own:
        return []
    listed, verb = ", ".join(key for key in policy.keys if key in own), "have" if len(own) > 1 else "has"
    remedy = f"its pods read {place}" if place else note or "it creates no pod"
    return [f"{listed} {verb} no effect on the {content['kind']} itself: {remedy}"]
