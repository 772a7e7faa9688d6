"""A PlacementPolicy object of a cluster as a policy."""

from collections.abc import Iterable
from typing import Any

import orjson

from webhook.kube.documents import JsonObject, field
from webhook.kube.field import InvalidInput
from webhook.policy.document import API_VERSION, KIND
from webhook.policy.loader import parse_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicyOrSet, PolicySet, set_of


def policy_text(content: JsonObject) -> bytes:
    """Return the document of an object without what the API server adds, as JSON."""
    name, spec = field(content, "metadata", "name"), content.get("spec", {})
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec})


def accepted_policies(file: PolicyOrSet, objects: Iterable[JsonObject]) -> PolicySet:
    """Return the policies that a server has accepted among `objects`, before those of its policy file.

    The last good generation of an object whose newest one was rejected is not known, so it is left out.
    """
    found = (policy for each in objects if (policy := _accepted(each)) is not None)
    return set_of(file).with_objects(found)


def _accepted(content: Any) -> Policy | None:
    if not isinstance(content, dict):
        return None
    conditions = field(content, "status", "conditions")
    generation = field(content, "metadata", "generation")
    for each in conditions if isinstance(conditions, list) else ():
        if not isinstance(each, dict) or each.get("type") != "Accepted" or each.get("status") != "True":
            continue
        if each.get("observedGeneration") != generation:
            continue
        try:
            return parse_policy(policy_text(content), f"PlacementPolicy {field(content, 'metadata', 'name')}")
        except InvalidInput:  # of a server of another version
            return None
    return None
