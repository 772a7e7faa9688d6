"""Types of fields, with the errors of their values, and name patterns."""

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from webhook.kube.names import (
    LABEL_VALUE_RULE,
    QUALIFIED_NAME_RULE,
    SUBDOMAIN_RULE,
    is_dns_subdomain,
    is_label_value,
    is_qualified_name,
)
from webhook.kube.quantity import milli_value

T = TypeVar("T")


class StrictModel(BaseModel):
    """A frozen model with camelCase keys that rejects unknown keys and does not convert values."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )


def wrong(detail: str) -> PydanticCustomError:
    """Return the error of an invalid value; `detail` describes valid values."""
    return PydanticCustomError("placement", "{detail}", {"detail": detail})


def checked(holds: Callable[[Any], object], detail: str) -> AfterValidator:
    """Return the validator of values for which `holds` is true; `detail` describes them."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise wrong(detail)
        return value

    return AfterValidator(check)


def between(least: int, most: int) -> tuple[AfterValidator, Any]:
    """Return the validator of integers from `least` to `most`, and their bounds for the schema."""
    validator = checked(lambda number: least <= number <= most, f"must be in [{least}, {most}]")
    return validator, Field(json_schema_extra={"minimum": least, "maximum": most})


def _is_resource_pattern(text: str) -> bool:
    return is_qualified_name(text.removesuffix("*").rstrip("-.") if text.endswith("*") else text) and "/" in text


def _quantity(value: Any) -> str:
    try:
        amount = milli_value(value)
    except ValueError as error:
        raise wrong(str(error)) from error
    if amount < 0:
        raise wrong("must not be negative")
    return str(value).strip()


def _is_service_account(text: str) -> bool:
    namespace, colon, name = text.partition(":")
    return bool(colon) and all(bool(each) and is_dns_subdomain(each.replace("*", "x")) for each in (namespace, name))


# Strict models do not accept a list for a tuple, and YAML has only lists.
Items = Annotated[tuple[T, ...], Field(strict=False)]
Values = Annotated[Items[T], checked(lambda values: len(set(values)) == len(values), "must not hold a value twice")]
SomeValues = Annotated[Values[T], checked(bool, "must hold at least one value")]

Weight = Annotated[int, *between(1, 100)]
Percent = Annotated[int, *between(0, 50)]
WholePercent = Annotated[int, *between(0, 100)]
Priority = Annotated[int, *between(-1_000_000, 1_000_000)]
TolerationSeconds = Annotated[int, *between(0, 1_000_000_000)]
Count = Annotated[int, *between(1, 1_000_000)]
Seconds = Annotated[
    int, checked(lambda seconds: seconds >= 1, "must be at least 1"), Field(json_schema_extra={"minimum": 1})
]
LabelValue = Annotated[str, checked(lambda text: bool(text) and is_label_value(text), LABEL_VALUE_RULE)]
LabelText = Annotated[str, checked(is_label_value, f"{LABEL_VALUE_RULE}; it may be empty")]
LabelKey = Annotated[str, checked(is_qualified_name, QUALIFIED_NAME_RULE)]
TaintKey = Annotated[
    str,
    checked(
        lambda text: is_qualified_name(f"{text}x" if text.endswith("/") else text),
        "must be a taint key like example.com/maintenance, or a domain with / such as example.com/ for all its keys",
    ),
]
# A card is the prefix of label keys; `.driver-version` is the longest suffix.
Card = Annotated[
    str,
    checked(
        lambda text: "/" in text and is_qualified_name(f"{text}.driver-version"),
        "must be VENDOR-DOMAIN/CARD like nvidia.com/gpu, CARD at most 48 letters, digits, '-', '_', '.'",
    ),
]
Subdomain = Annotated[str, checked(is_dns_subdomain, SUBDOMAIN_RULE)]
KeyDomain = Annotated[
    str,
    checked(
        lambda text: is_dns_subdomain(text) and not f".{text}".endswith((".kubernetes.io", ".k8s.io")),
        f"{SUBDOMAIN_RULE}, and not Kubernetes' own",
    ),
]
ResourcePattern = Annotated[
    str,
    checked(
        _is_resource_pattern,
        "must be an extended resource like nvidia.com/gpu, or a prefix like nvidia.com/mig-*",
    ),
]
NamespacePattern = Annotated[
    str,
    checked(
        lambda text: bool(text) and is_dns_subdomain(text.replace("*", "x")),
        "must be a namespace, or a pattern with * such as team-a-*",
    ),
]
ProductPattern = Annotated[
    str,
    checked(
        lambda text: bool(text) and is_label_value(text.replace("*", "x")),
        "must be a product like NVIDIA-H20, or a pattern with * such as NVIDIA-A100*",
    ),
]
QueuePattern = Annotated[
    str,
    checked(
        lambda text: bool(text) and is_label_value(text.replace("*", "x")),
        "must be a queue like research, or a pattern with * such as team-a-*",
    ),
]
UserPattern = Annotated[
    str,
    checked(
        lambda text: 0 < len(text) <= 256 and text.isprintable() and text == text.strip() and text.strip("*") != "",
        "must be a name, or a pattern with * such as system:serviceaccount:ci:*, of at most 256 characters",
    ),
]
ServiceAccountPattern = Annotated[
    str,
    checked(
        lambda text: _is_service_account(text.removeprefix("system:serviceaccount:")),
        "must be NAMESPACE:NAME, or a pattern with * such as ci:*",
    ),
]
Text = Annotated[
    str,
    checked(
        lambda text: 0 < len(text.strip()) <= 256 and text.isprintable(), "must be one line of 1 to 256 characters"
    ),
]
ProductSuffix = Annotated[
    str,
    checked(
        lambda text: text.startswith("-") and is_label_value(f"x{text}"),
        "must be the end of a product's label value like -SHARED or -MIG-1g.10gb, without *",
    ),
]
ResourceName = Annotated[
    str, checked(is_qualified_name, "must be a resource like cpu, memory, pods, ephemeral-storage or nvidia.com/gpu")
]
# YAML parses an unquoted 8 as a number, which means the same.
Quantity = Annotated[
    str, BeforeValidator(_quantity), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]})
]


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of `patterns` matches `name`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
