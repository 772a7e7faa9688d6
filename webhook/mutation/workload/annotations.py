"""The annotations of a pod with those of its namespace as defaults, and keys that have no effect."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from webhook.documents.field import FieldError, invalid, unsupported
from webhook.documents.listing import some
from webhook.documents.text import cut
from webhook.mutation.edits.node_terms import LONGEST_SHOWN
from webhook.policy.keys import Annotation, UnsupportedValueError
from webhook.policy.policy import Policy

T = TypeVar("T")


class Annotations:
    """The annotations of a pod, with those of its namespace as defaults, and the errors found while parsing them.

    `errors` are errors in the pod's own values. `ignored` are warnings about invalid values of the namespace. These
    values count as absent, because an error on a Namespace must not deny all of its pods.
    """

    def __init__(
        self, pod: Mapping[str, str], namespace_name: str, namespace: Mapping[str, str], policy: Policy
    ) -> None:
        self._policy = policy
        self._pod = pod
        self._namespace = namespace
        self._namespace_name = namespace_name
        self.errors: list[FieldError] = []
        self.ignored: list[str] = []

    def text(self, key: str) -> str | None:
        """Return the value of `key` from the pod, or else from the namespace."""
        value = self._pod.get(key)
        return self._namespace.get(key) if value is None else value

    def has(self, *keys: str) -> bool:
        """Return whether the pod or the namespace has one of `keys`."""
        return not (self._pod.keys().isdisjoint(keys) and self._namespace.keys().isdisjoint(keys))

    def is_own(self, key: str) -> bool:
        """Return whether the value of `key` is the pod's own."""
        return key in self._pod

    def path(self, key: str) -> str:
        """Return the path of the value of `key`, for errors."""
        path = f"metadata.annotations[{key}]"
        return path if key in self._pod else f'namespace "{self._namespace_name}": {path}'

    def read(self, annotation: Annotation[T]) -> T | None:
        """Return the parsed value of `annotation`, or None if it is absent or invalid, which is reported."""
        key = self._policy.keys.of(annotation)
        value = self.text(key)
        if value is None:
            return None
        try:
            return annotation.parser(self._policy.spec)(value.strip())
        except UnsupportedValueError as error:
            self._report(key, unsupported(self.path(key), value, error.supported))
        except ValueError as error:
            self._report(key, invalid(self.path(key), value, str(error)))
        return None

    def reject(self, annotation: Annotation[Any], detail: str) -> None:
        """Report the value of `annotation`, which is well-formed but not valid for this pod."""
        key = self._policy.keys.of(annotation)
        self._report(key, invalid(self.path(key), self.text(key), detail))

    def ignore(self, error: FieldError) -> None:
        """Add the warning that a value of the namespace is ignored because of `error`."""
        self.ignored.append(f"ignored: {error}")

    def _report(self, key: str, error: FieldError) -> None:
        if self.is_own(key):
            self.errors.append(error)
        else:
            self.ignore(error)


# The comparison is slow, and a pod may have thousands of annotations.
_MOST_COMPARED = 20
_MOST_SHOWN = 3


def stray_keys(annotations: Mapping[str, str], labels: Mapping[str, str], policy: Policy) -> list[str]:
    """Return warnings for keys that look like annotations of the policy but have no effect.

    These are unknown keys of the policy's domain, known keys of a former or slightly misspelt domain, and labels.
    """
    unknown, elsewhere = [], []
    for key in annotations:
        domain, _, name = key.partition("/")
        if domain == policy.spec.key_domain:
            if key not in policy.known_annotations:
                unknown.append(key)
        elif name in policy.annotation_names:
            elsewhere.append((key, domain, name))
    as_labels = policy.known_annotations.intersection(labels).difference(annotations)
    if not unknown and not elsewhere and not as_labels:
        return []
    meant = {key: get_close_matches(key, policy.keys, 1, 0.9) for key in unknown[:_MOST_COMPARED]}
    meant |= {
        key: [f"{policy.spec.key_domain}/{name}"]
        for key, domain, name in elsewhere[:_MOST_COMPARED]
        if domain in policy.spec.former_key_domains or is_one_edit(domain, policy.spec.key_domain)
    }
    known = "annotation {} is not known and does nothing; did you mean {}?"
    found = [known.format(key, close[0]) for key, close in meant.items() if close]
    if plain := [cut(key, LONGEST_SHOWN) for key in unknown if not meant.get(key)]:
        listed = some(plain, _MOST_SHOWN)
        is_one = len(plain) == 1
        plural = f"annotations {listed} are not known and do nothing"
        found.append(f"annotation {listed} is not known and does nothing" if is_one else plural)
    if as_labels:
        found.append(f"labels that only have an effect as annotations: {', '.join(sorted(as_labels))}")
    return found


def is_one_edit(one: str, other: str) -> bool:
    """Return whether one edit turns `other` into `one`: a character added, removed or replaced, or two swapped."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    same = next((index for index, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), None)
    if same is None:
        return True
    left, right = one[same:], other[same:]
    is_swapped = left[:2] == right[1::-1] and left[2:] == right[2:]
    return is_swapped or left[1:] in (right[1:], right) or left == right[1:]


def keys_without_type(own: Mapping[str, str], policy: Policy, *, type_is_left_out: bool = False) -> list[str]:
    """Return a warning if a pod without a workload type has other annotations of the policy.

    `type_is_left_out` is true if the namespace has a type that does not apply because the pod requests no accelerator.
    """
    if not own:
        return []
    present = [key for key in policy.keys if key in own and key != policy.keys.workload_type]
    if not present:
        return []
    type_key = policy.keys.workload_type
    # Clients see the beginning of a long warning, so the keys are at its end.
    without_effect = f"without it, these have no effect: {', '.join(present)}"
    if type_is_left_out:
        reason = "the pod requests no accelerator, so the workload type of its namespace does not apply"
        example = policy.spec.accelerators[0].resources[0]
        return [f"{reason}: request one, such as {example}, or add {type_key}; {without_effect}"]
    types = ", ".join(sorted(policy.spec.workload_types))
    return [f"{type_key} is missing: add it ({types}); {without_effect}"]
