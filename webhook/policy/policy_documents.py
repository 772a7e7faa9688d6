"""Read several PlacementPolicy documents as one set: a default policy, and others for the namespaces that they select.

With one document, that is the policy of all namespaces, and its selector has no effect. With several, the default
policy is the one without a `namespaceSelector`, as among the objects of a cluster: the object `default` has none, and
every other one must have one.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from webhook.documents.field import FieldError, InvalidInput, forbidden, invalid, required
from webhook.policy.loader import PlacedPolicy, parse_policies
from webhook.policy.policy import Policy
from webhook.policy.policy_set import DEFAULT_NAME, PolicySet

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
    """Return the set of these policies, at least one: the default one, and the others with the namespaces they select.

    `fallback` is the default policy if each of several has a selector; None: that is an error.

    Raises:
        InvalidInput: there is no default policy or more than one, or two have the same name; lists all errors.
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
    """Return whether one of these policies is for all other namespaces."""
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
