"""Read several PlacementPolicy documents as one set: a default policy, and policies for selected namespaces.

The documents are in files or are objects of a cluster.

A single document is the policy of all namespaces, and its selector has no effect. Of several documents, the one without
a `namespaceSelector` is the default policy. Among the objects of a cluster, the object `default` must have no selector,
and every other object must have one.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from webhook.documents.documents import JsonObject, field
from webhook.documents.field import FieldError, InvalidInput, forbidden, invalid, required
from webhook.documents.parts import listed
from webhook.policy.loader import PlacedPolicy, parse_policies, parse_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_set import DEFAULT_NAME, PolicyOrSet, PolicySet, set_of
from webhook.policy.spec.document import API_VERSION, KIND

_SELECTOR = "spec.namespaceSelector"


def load_policies(paths: Sequence[Path], argument: str = "--policy") -> list[PlacedPolicy]:
    """Return the policies in the files `paths`, which the user gave as `argument`.

    Raises:
        InvalidInput: a file cannot be read, or a document is not a valid PlacementPolicy; lists all errors.
    """
    found: list[PlacedPolicy] = []
    errors: list[FieldError] = []
    for path in paths:
        try:
            found += parse_policies(path.read_bytes(), str(path))
        except OSError as error:
            errors.append(invalid(argument, str(path), f"cannot be read: {error.strerror}"))
        except InvalidInput as error:
            errors += error.errors
    if errors:
        raise InvalidInput(errors)
    return found


def policy_set(found: Sequence[PlacedPolicy], fallback: Policy | None = None) -> PolicySet:
    """Return the set of these policies, of which there must be at least one.

    `fallback` is the default policy if there are several policies and each has a selector. Without `fallback`, this is
    an error.

    Raises:
        InvalidInput: there is no default policy or more than one, or two policies have the same name; lists all errors.
    """
    if len(found) == 1:
        return PolicySet(found[0].policy)
    errors = [*_equal_names(found), *_selection_errors(found, fallback)]
    if errors:
        raise InvalidInput(errors)
    default = next((each.policy for each in found if not _selects(each)), fallback)
    assert default is not None  # noqa: S101 - it would be among the errors
    return PolicySet.of(default, (each.policy for each in found if each.policy is not default))


def has_default(found: Sequence[PlacedPolicy]) -> bool:
    """Return whether one of these policies is the default policy."""
    return len(found) == 1 or not all(map(_selects, found))


def _equal_names(found: Sequence[PlacedPolicy]) -> Iterable[FieldError]:
    first: dict[str, PlacedPolicy] = {}
    for each in found:
        name = each.policy.name
        if name in first:
            detail = f"{first[name].place} has this name; give each policy a name of its own"
            yield FieldError(f"{each.place}: metadata.name", "Duplicate value", name, detail)
        first.setdefault(name, each)


def _selection_errors(found: Sequence[PlacedPolicy], fallback: Policy | None) -> Iterable[FieldError]:
    wrong = [each for each in found if each.policy.name == DEFAULT_NAME and _selects(each)]
    for each in wrong:
        yield forbidden(f"{each.place}: {_SELECTOR}", f"a policy named {DEFAULT_NAME} is for all other namespaces")
    if not wrong and fallback is None and not has_default(found):
        detail = (
            f"one of the policies must have no {_SELECTOR}, to be in force for all other namespaces; "
            "`placement-webhook policy show` prints the built-in one"
        )
        yield required(", ".join(dict.fromkeys(each.file for each in found)), detail)
    without = [each for each in found if not _selects(each)]
    without.sort(key=lambda each: each.policy.name != DEFAULT_NAME)
    for each in without[1:]:
        detail = f"must be set: {without[0].place} has none, so it is the policy of all other namespaces"
        yield required(f"{each.place}: {_SELECTOR}", detail)


def _selects(each: PlacedPolicy) -> bool:
    return each.policy.spec.namespace_selector is not None


def policy_text(content: JsonObject) -> bytes:
    """Return the document of an object as JSON, without the fields that the API server adds."""
    name, spec = field(content, "metadata", "name"), content.get("spec", {})
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec})


def check_selection(policy: Policy) -> None:
    """Check that exactly the objects other than the default policy have a `namespaceSelector`.

    Raises:
        InvalidInput: the default policy has a selector, or another policy has none.
    """
    is_default, selector = policy.name == DEFAULT_NAME, policy.spec.namespace_selector
    place = f"PlacementPolicy {policy.name}: spec.namespaceSelector"
    if is_default and selector is not None:
        raise InvalidInput([forbidden(place, "must be absent: this policy is for all other namespaces")])
    if not is_default and selector is None:
        raise InvalidInput([required(place, "must be set")])


def last_good_policy(content: JsonObject, validated: Callable[[bytes, str], Policy]) -> Policy | None:
    """Return the policy of the last accepted generation in the status of a rejected object, or None if there is none.

    `validated` returns the policy in a text.

    Raises:
        InvalidInput: the policy is not valid, or its revision differs from that in the status.
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
    """Return the policies in `objects` that a server has accepted, before those of its policy file.

    If the newest generation of an object is not accepted, the last accepted generation in its status is used, if there
    is one.
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
    return any(
        each.get("type") == "Accepted"
        and each.get("status") == "True"
        and each.get("observedGeneration") == field(content, "metadata", "generation")
        for each in listed(content, "status", "conditions")
    )


def _place(content: JsonObject) -> str:
    return f"PlacementPolicy {field(content, 'metadata', 'name')}"
