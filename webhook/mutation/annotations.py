"""Annotations of a pod over those of its namespace, and the values that they may have."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from webhook.kube import quantity
from webhook.kube.field import FieldError, invalid, unsupported
from webhook.kube.names import LABEL_VALUE_RULE, is_label_value, is_qualified_name

MEBIBYTE = 1024 * 1024
T = TypeVar("T")


class Annotations:
    """The annotations of a pod over those of its namespace, and the errors found in reading them."""

    def __init__(self, pod: Mapping[str, str], namespace_name: str, namespace: Mapping[str, str]) -> None:
        self._pod = pod
        self._namespace = namespace
        self._namespace_name = namespace_name
        self.errors: list[FieldError] = []

    def text(self, key: str) -> str | None:
        """The value of `key`, the pod's before the namespace's."""
        value = self._pod.get(key)
        return self._namespace.get(key) if value is None else value

    def path(self, key: str) -> str:
        """Where the value of `key` stands, as an error names it."""
        path = f"metadata.annotations[{key}]"
        return path if key in self._pod else f'namespace "{self._namespace_name}": {path}'

    def read(self, key: str, parse: Callable[[str], T]) -> T | None:
        """The parsed value of `key`; None where it is absent, or where it is bad, which is noted."""
        value = self.text(key)
        if value is None:
            return None
        try:
            return parse(value.strip())
        except ValueError as error:
            self.errors.append(invalid(self.path(key), value, str(error)))
            return None

    def choice(self, key: str, supported: Sequence[str]) -> str | None:
        """The value of `key` if it is one of `supported`; None where it is absent, or bad, which is noted."""
        value = self.text(key)
        if value is None or value.strip() in supported:
            return value if value is None else value.strip()
        self.errors.append(unsupported(self.path(key), value, supported))
        return None


# Each is a toleration, and stands in each nodeSelectorTerm.
_MOST_PRODUCTS = 100


def products(text: str) -> tuple[str, ...]:
    """The label values of a comma list, each once."""
    found = tuple(dict.fromkeys(product.strip() for product in text.split(",")))
    if len(found) > _MOST_PRODUCTS:
        raise ValueError(f"must be at most {_MOST_PRODUCTS} products")
    for product in found:
        if not product or not is_label_value(product):
            raise ValueError(f'each product of the comma list {LABEL_VALUE_RULE}, as in "NVIDIA-H20"')
    return found


def mebibytes(text: str) -> int:
    """The quantity `text` in MiB, rounded up."""
    size_bytes = quantity.value(text)
    if size_bytes <= 0:
        raise ValueError('must be above zero, as in "80Gi"')
    return -(-size_bytes // MEBIBYTE)


def positive(text: str) -> int:
    """The integer `text`, at least 1."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise ValueError('must be an integer above zero, as in "8"')
    return int(text)


def topology(aliases: Mapping[str, str]) -> Callable[[str], str]:
    """A parser of topology keys that knows `aliases` for some."""

    def parse(text: str) -> str:
        if text in aliases:
            return aliases[text]
        if "/" in text and is_qualified_name(text):
            return text
        names = ", ".join(f'"{alias}"' for alias in aliases)
        raise ValueError(f"must be one of {names}, or a topology key such as kubernetes.io/hostname")

    return parse


def name(text: str) -> str:
    """`text`, which can be a label value."""
    if not text or not is_label_value(text):
        raise ValueError(LABEL_VALUE_RULE)
    return text
