"""Read the annotations of a pod, with those of its namespace as defaults."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from webhook.kube.field import FieldError, invalid, unsupported
from webhook.policy.annotation_values import UnsupportedValueError
from webhook.policy.keys import Annotation
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
