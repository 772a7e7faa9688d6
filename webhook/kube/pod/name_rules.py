"""The valid forms of names, labels and keys, and the API server's messages about them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from webhook.documents.field import RejectedFieldError

_EMPTY = "must be non-empty"
_OPTIONAL_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"


@dataclass(frozen=True, slots=True)
class Rule:
    """The valid form of a name, and the API server's message about it.

    Source: k8s.io/apimachinery/pkg/util/validation/validation.go and pkg/api/validate/content
    """

    regex: str
    words: str
    examples: str
    most: int
    unit: str = "bytes"

    @property
    def text(self) -> str:
        """Return the message with the examples and the regular expression."""
        return f"{self.words} (e.g. {self.examples}, regex used for validation is '{self.regex}')"

    def errors(self, text: str, before: str = "") -> Iterator[str]:
        """Yield the errors of `text`, with `before` in front of each."""
        if len(text.encode()) > self.most:
            yield f"{before}must be no more than {self.most} {self.unit}"
        if not re.fullmatch(self.regex, text):
            yield f"{before}{self.text}"


_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_ENDS = "and must start and end with an alphanumeric character"
SUBDOMAIN = Rule(
    rf"{_DNS_LABEL}(\.{_DNS_LABEL})*",
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}",
    "'example.com'",
    253,
    "characters",
)
_KEY_PREFIX = replace(SUBDOMAIN, unit="bytes")
LABEL = Rule(
    _DNS_LABEL,
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    "'my-name',  or '123-abc'",
    63,
    "characters",
)
LABEL_VALUE = Rule(
    f"({_KEY})?",
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    "'MyValue',  or 'my_value',  or '12345'",
    63,
)
_KEY_NAME = Rule(
    _KEY,
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    "'MyName',  or 'my.name',  or '123-abc'",
    63,
)


def invalid_value(path: str, value: object, details: Iterable[str]) -> Iterator[RejectedFieldError]:
    """Yield an error of the field at `path` for each of `details`."""
    return (RejectedFieldError(path, "Invalid value", value, detail) for detail in details)


def key_errors(key: str) -> Iterator[str]:
    """Yield the errors of the key of a label."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        yield f"a valid label key {_KEY_NAME.text} {_OPTIONAL_PREFIX}"
        return
    if slash:
        yield from _KEY_PREFIX.errors(prefix, "prefix part ") if prefix else (f"prefix part {_EMPTY}",)
    if not name:
        yield f"name part {_EMPTY}"
    yield from _KEY_NAME.errors(name, "name part ")
