"""Types of the policy's fields, each with the check and the words of its error."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
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


class StrictModel(BaseModel):
    """A frozen model with camelCase keys that refuses a key it does not know and converts nothing."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )


def wrong(detail: str) -> PydanticCustomError:
    """The error of a value for which `detail` says what would be valid."""
    return PydanticCustomError("placement", "{detail}", {"detail": detail})


def _checked(holds: Callable[[Any], bool], detail: str) -> AfterValidator:
    def check(value: Any) -> Any:
        if not holds(value):
            raise wrong(detail)
        return value

    return AfterValidator(check)


def _is_resource_pattern(text: str) -> bool:
    return is_qualified_name(text.removesuffix("*").rstrip("-.") if text.endswith("*") else text) and "/" in text


def _is_namespace_pattern(text: str) -> bool:
    return bool(text) and is_dns_subdomain(text.replace("*", "x"))


Weight = Annotated[
    int,
    _checked(lambda weight: 1 <= weight <= 100, "must be in [1, 100]"),
    Field(json_schema_extra={"minimum": 1, "maximum": 100}),
]
LabelValue = Annotated[str, _checked(lambda text: bool(text) and is_label_value(text), LABEL_VALUE_RULE)]
LabelKey = Annotated[str, _checked(is_qualified_name, QUALIFIED_NAME_RULE)]
# A card is the beginning of label keys, of which `.driver-version` is the longest.
Card = Annotated[
    str,
    _checked(
        lambda text: "/" in text and is_qualified_name(f"{text}.driver-version"),
        "must be VENDOR-DOMAIN/CARD like nvidia.com/gpu, CARD at most 48 letters, digits, '-', '_', '.'",
    ),
]
Subdomain = Annotated[str, _checked(is_dns_subdomain, SUBDOMAIN_RULE)]
KeyDomain = Annotated[
    str,
    _checked(
        lambda text: is_dns_subdomain(text) and not f".{text}".endswith((".kubernetes.io", ".k8s.io")),
        f"{SUBDOMAIN_RULE}, and not Kubernetes' own",
    ),
]
ResourcePattern = Annotated[
    str,
    _checked(
        _is_resource_pattern,
        "must be an extended resource like nvidia.com/gpu, or a prefix like nvidia.com/mig-*",
    ),
]
NamespacePattern = Annotated[
    str, _checked(_is_namespace_pattern, "must be a namespace, or a pattern with * such as team-a-*")
]
