"""A policy file into a `Policy`; everything wrong with it said at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from webhook.kube.documents import parse
from webhook.kube.field import FieldError, InvalidInput, forbidden, invalid, required
from webhook.policy.document import API_VERSION, KIND, PolicyDocument, PolicySpec
from webhook.policy.policy import Policy

_TYPES = {
    "string_type": "must be text",
    "int_type": "must be an integer",
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping of keys to values",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
}
_UNKNOWN_FIELD = "unknown field; `placement-webhook policy schema` lists the known ones"


def built_in_policy() -> Policy:
    """The policy that holds where no file is given."""
    return Policy(PolicyDocument.model_validate({"apiVersion": API_VERSION, "kind": KIND}))


def load_policy(path: Path) -> Policy:
    """The policy in the file `path`.

    Raises:
        InvalidInput: the file cannot be read, or is not one valid PlacementPolicy; holds every error found.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InvalidInput([invalid("--policy", str(path), f"cannot be read: {error.strerror}")]) from error
    return parse_policy(text, str(path))


def parse_policy(text: str | bytes, place: str) -> Policy:
    """The policy in `text`; `place` stands before the errors' paths.

    Raises:
        InvalidInput: the text is not one valid PlacementPolicy; holds every error found.
    """
    documents = parse(text, place)
    if len(documents) != 1:
        detail = f"must hold one {KIND}, holds {len(documents)} documents"
        raise InvalidInput([FieldError(place, "Invalid value", f"{len(documents)} documents", detail)])
    try:
        return Policy(PolicyDocument.model_validate(documents[0].content, by_alias=True, by_name=False))
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise InvalidInput(field_error(detail).under(documents[0].place) for detail in details) from error


def field_error(detail: ErrorDetails, unknown_field: str = _UNKNOWN_FIELD) -> FieldError:
    """A pydantic error in Kubernetes' words; `unknown_field` is said of a field that there is not."""
    kind, value = detail["type"], detail["input"]
    path = _path(detail["loc"], known=kind != "extra_forbidden")
    context: Mapping[str, Any] = detail.get("ctx", {})
    if kind == "missing":
        return required(path, "must be set")
    if kind == "extra_forbidden":
        return forbidden(path, unknown_field)
    if kind == "literal_error":
        expected = context["expected"].replace("'", '"').replace(" or ", ", ")
        return FieldError(path, "Unsupported value", value, f"supported values: {expected}")
    return invalid(path, value, _TYPES.get(kind) or context.get("detail") or detail["msg"])


def _path(location: tuple[int | str, ...], *, known: bool) -> str:
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step != "[key]":
            # A default that does not hold is named by its Python name, a value of the file by its own.
            name = to_camel(step) if known and step in PolicySpec.model_fields else step
            path += f".{name}" if path else name
    return path
