"""Read the annotations of a pod, with those of its namespace as defaults."""

from collections.abc import Mapping
from typing import TypeVar

from webhook.kube.field import FieldError, invalid, unsupported
from webhook.policy.annotation_values import UnsupportedValueError
from webhook.policy.keys import Annotation
from webhook.policy.policy import Policy

T = TypeVar("T")


class Annotations:
    """The annotations of a pod, with those of its namespace as defaults, and the errors found while parsing them."""

    def __init__(
        self, pod: Mapping[str, str], namespace_name: str, namespace: Mapping[str, str], policy: Policy
    ) -> None:
        self._policy = policy
        self._pod = pod
        self._namespace = namespace
        self._namespace_name = namespace_name
        self.errors: list[FieldError] = []

    def text(self, key: str) -> str | None:
        """Return the value of `key` from the pod, otherwise from the namespace."""
        value = self._pod.get(key)
        return self._namespace.get(key) if value is None else value

    def path(self, key: str) -> str:
        """Return the path of the value of `key`, for errors."""
        path = f"metadata.annotations[{key}]"
        return path if key in self._pod else f'namespace "{self._namespace_name}": {path}'

    def read(self, annotation: Annotation[T]) -> T | None:
        """Return the parsed value of `annotation`; None if it is absent or invalid, which adds an error to `errors`."""
        key = self._policy.keys.of(annotation)
        value = self.text(key)
        if value is None:
            return None
        try:
            return annotation.parser(self._policy.spec)(value.strip())
        except UnsupportedValueError as error:
            self.errors.append(unsupported(self.path(key), value, error.supported))
        except ValueError as error:
            self.errors.append(invalid(self.path(key), value, str(error)))
        return None
