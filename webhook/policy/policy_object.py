"""A PlacementPolicy object of a cluster as a policy."""

from collections.abc import Callable, Iterable
from typing import Any

import orjson

from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput, forbidden, invalid, required
from webhook.policy.loader import parse_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_set import DEFAULT_NAME, PolicyOrSet, PolicySet, set_of
from webhook.policy.spec.document import API_VERSION, KIND


def policy_text(content: JsonObject) -> bytes:
    """Return the document of an object without what the API server adds, as JSON."""
    name, spec = field(content, "metadata", "name"), content.get("spec", {})
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec})


def check_selection(policy: Policy) -> None:
    """Reject an object that selects namespaces and is the default policy, or neither.

    Raises:
        InvalidInput: the selector must be set, or must be absent.
    """
    is_default, selector = policy.name == DEFAULT_NAME, policy.spec.namespace_selector
    place = f"PlacementPolicy {policy.name}: spec.namespaceSelector"
    if is_default and selector is not None:
        raise InvalidInput([forbidden(place, "must be absent: this policy is for all other namespaces")])
    if not is_default and selector is None:
        raise InvalidInput([required(place, "must be set")])


def last_good_policy(content: JsonObject, validated: Callable[[bytes, str], Policy]) -> Policy | None:
    """Return the policy of the last good generation of a rejected object, which its status has; None without one.

    `validated` returns the policy in a text.

    Raises:
        InvalidInput: it is not valid, or has another revision than the status.
    """
    spec, revision = field(content, "status", "inForceSpec"), field(content, "status", "revision")
    if not isinstance(spec, dict):
        return None
    place = _place(content)
    policy = validated(policy_text({**content, "spec": spec}), f"{place}: status.inForceSpec")
    if policy.revision != revision:
        detail = f"has the revision {policy.revision}, must have that of status.revision"
        raise InvalidInput([invalid(f"{place}: status.revision", revision, detail)])
    return policy


def accepted_policies(file: PolicyOrSet, objects: Iterable[JsonObject]) -> PolicySet:
    """Return the policies that a server has accepted among `objects`, before those of its policy file.

    Of an object whose newest generation is not accepted, that is the last good one, if the status has it.
    """
    found = (policy for each in objects if (policy := _accepted(each)) is not None)
    return set_of(file).with_objects(found)


def _accepted(content: Any) -> Policy | None:
    if not isinstance(content, dict):
        return None
    try:
        if _is_accepted(content):
            return parse_policy(policy_text(content), _place(content))
        return last_good_policy(content, parse_policy)
    except InvalidInput:  # of a server of another version
        return None


def _is_accepted(content: JsonObject) -> bool:
    conditions = field(content, "status", "conditions")
    return any(
        each.get("type") == "Accepted"
        and each.get("status") == "True"
        and each.get("observedGeneration") == field(content, "metadata", "generation")
        for each in (conditions if isinstance(conditions, list) else ())
        if isinstance(each, dict)
    )


def _place(content: JsonObject) -> str:
    return f"PlacementPolicy {field(content, 'metadata', 'name')}"
