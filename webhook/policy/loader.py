"""A policy file into a `Policy`; everything wrong with it said at once."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from webhook.kube.documents import JsonObject, field, parse
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
        found = [field_error(detail) for detail in error.errors(include_url=False)]
        paths = {each.path for each in found}
        # What follows from a field that is wrong itself is not worth a line.
        depending = [each for each in _of_fields_that_depend(documents[0].content) if each.path not in paths]
        found += [each for each in depending if each.path.replace(".prefer", ".allow") not in paths]
        raise InvalidInput(each.under(documents[0].place) for each in found) from error


def _of_fields_that_depend(content: JsonObject) -> Iterator[FieldError]:
    """Errors that the models look for only once all else is right."""
    types = field(content, "spec", "workloadTypes")
    schedulers = field(content, "spec", "allowedSchedulers")
    for name, each in types.items() if isinstance(types, dict) else ():
        chosen = field(each, "schedulerName") if isinstance(each, dict) else None
        if isinstance(schedulers, list) and isinstance(chosen, str) and chosen not in schedulers:
            detail = f'must hold "{chosen}", the schedulerName of workloadTypes.{name}'
            yield invalid("spec.allowedSchedulers", schedulers, detail)
        allow = field(each, "nodeUsage", "allow") if isinstance(each, dict) else None
        prefer = field(each, "nodeUsage", "prefer") if isinstance(each, dict) else None
        if isinstance(allow, list) and isinstance(prefer, dict):
            missing = ", ".join(f'"{usage}"' for usage in prefer if usage not in allow)
            if missing:
                detail = f"{missing} must stand in allow too: a pod can only prefer what it may use"
                yield invalid(f"spec.workloadTypes.{name}.nodeUsage.prefer", prefer, detail)


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
