"""Validate names, label keys and label values.

Source: k8s.io/apimachinery/pkg/util/validation/validation.go
"""

import re

_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")

LABEL_VALUE_RULE = "must be a label value: at most 63 letters, digits, '-', '_', '.', its ends letters or digits"
SUBDOMAIN_RULE = "must be a DNS subdomain: lower case letters, digits, '-' and '.', at most 253, like maip.mxsf.io"
QUALIFIED_NAME_RULE = "must be a label key: NAME or DOMAIN/NAME, NAME at most 63 letters, digits, '-', '_', '.'"


def is_dns_subdomain(text: str) -> bool:
    """Return true if `text` is a DNS subdomain: a valid name of most objects and prefix of a label key."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Return true if `text` is a valid label value; an empty string is."""
    return len(text) <= 63 and (not text or _NAME.fullmatch(text) is not None)


def is_qualified_name(text: str) -> bool:
    """Return true if `text` is a valid key of a label, an annotation or a taint."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return False
    return 0 < len(name) <= 63 and _NAME.fullmatch(name) is not None
