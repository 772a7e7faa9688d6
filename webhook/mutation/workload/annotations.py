"""The annotations of a pod over those of its namespace, and keys that nothing reads."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from webhook.documents.field import FieldError, invalid, unsupported
from webhook.policy.keys import Annotation, UnsupportedValueError
from webhook.policy.policy import Policy

T = TypeVar("T")


class Annotations:
    """The annotations of a pod, with those of its namespace as defaults, and the errors found while parsing them.

    `errors` are those of the pod's own values. `ignored` are warnings about values of the namespace: they count as
    absent, because an error on a Namespace must not deny all of its pods.
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
        """Return the value of `key` from the pod, otherwise from the namespace."""
        value = self._pod.get(key)
        return self._namespace.get(key) if value is None else value

    def is_own(self, key: str) -> bool:
        """Return whether the value of `key` is the pod's own."""
        return key in self._pod

    def path(self, key: str) -> str:
        """Return the path of the value of `key`, for errors."""
        path = f"metadata.annotations[{key}]"
        return path if key in self._pod else f'namespace "{self._namespace_name}": {path}'

    def read(self, annotation: Annotation[T]) -> T | None:
        """Return the parsed value of `annotation`; None if it is absent or invalid, which is reported."""
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

    def reject(self, annotation: Annotation[Any], error: Callable[[str], FieldError]) -> None:
        """Report the error that `error` makes of the path of a value that parses and cannot hold for this pod."""
        key = self._policy.keys.of(annotation)
        self._report(key, error(self.path(key)))

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


def misspelt_keys(annotations: Mapping[str, str], policy: Policy) -> list[str]:
    """Return warnings for keys similar to a known one. Other keys are ignored: the domain belongs to the company."""
    prefix = policy.spec.key_domain + "/"
    if not any(key.startswith(prefix) for key in annotations):
        return []
    ours = {*policy.keys, policy.policy_annotation, policy.rules_annotation}
    unknown = [key for key in annotations if key.startswith(prefix) and key not in ours]
    return [
        f"annotation {key} is not known and does nothing; did you mean {close[0]}?"
        for key in unknown[:_MOST_COMPARED]
        if (close := get_close_matches(key, policy.keys, 1, 0.9))
    ]


def keys_without_type(own: Mapping[str, str], policy: Policy, *, type_is_left_out: bool = False) -> list[str]:
    """Return a warning if a pod without a workload type has other annotations of ours.

    With `type_is_left_out`, its namespace has a type that does not apply because the pod requests no accelerator.
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
    types = ", ".join(policy.spec.workload_types)
    return [f"{type_key} is missing: add it ({types}); {without_effect}"]
