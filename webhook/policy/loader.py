"""Load a policy file into a `Policy` and report all its errors at once."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from webhook.documents.documents import JsonObject, parse
from webhook.documents.field import MOST_ERRORS, FieldError, InvalidInput, forbidden, invalid, required
from webhook.documents.yaml_text import line_of, lines_of_fields
from webhook.policy.policy import Policy
from webhook.policy.spec.cross_field import cross_field_errors
from webhook.policy.spec.document import API_VERSION, KIND, PolicyDocument

_TYPES = {
    "string_type": "must be text",
    "int_type": "must be an integer",
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping of keys to values",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
}
# Source: k8s.io/apimachinery/pkg/apis/meta/v1/types.go, ObjectMeta
_SET_BY_THE_API_SERVER = frozenset(
    (
        *("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName"),
        *("generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid"),
    )
)
_UNKNOWN_FIELD = "unknown field; {}`placement-webhook policy schema` lists the known ones"


def built_in_policy() -> Policy:
    """Return the policy that applies if no file is given."""
    return Policy(PolicyDocument.model_validate({"apiVersion": API_VERSION, "kind": KIND}))


def parse_policy(text: str | bytes, place: str) -> Policy:
    """Return the policy in `text`; `place` is the prefix of the errors' paths.

    Raises:
        InvalidInput: the text is not one valid PlacementPolicy; lists all errors.
    """
    documents = parse(text, place)
    if len(documents) != 1:
        detail = f"must hold one {KIND}, holds {len(documents)} documents"
        raise InvalidInput([FieldError(place, "Invalid value", f"{len(documents)} documents", detail)])
    try:
        return read_policy_document(documents[0].content)
    except InvalidInput as error:
        raise InvalidInput(placed(error.errors, text, documents[0].place)) from error


def read_policy_document(content: JsonObject) -> Policy:
    """Return the policy in `content`, a document of a file or an object as `kubectl get -o yaml` prints it.

    Of such an object, which has a UID, `status` and the metadata that the API server sets are ignored.

    Raises:
        InvalidInput: it is not a valid PlacementPolicy; lists all errors, without a place.
    """
    content = _as_written(content)
    errors: list[FieldError] = []
    document = _read(content, errors)
    paths = {each.path for each in errors}
    # Omit errors that only follow from another invalid field.
    depending = [each for each in cross_field_errors(content) if each.path not in paths]
    errors += [each for each in depending if each.path.replace(".prefer", ".allow") not in paths]
    if document is None or errors:
        raise InvalidInput(errors)
    return Policy(document)


def _as_written(content: JsonObject) -> JsonObject:
    """Return `content` without the fields that an API server adds, if it is from one."""
    metadata = content.get("metadata")
    if not isinstance(metadata, dict) or "uid" not in metadata:
        return content
    kept = {key: value for key, value in metadata.items() if key not in _SET_BY_THE_API_SERVER}
    return {**{key: value for key, value in content.items() if key != "status"}, "metadata": kept}


def placed(errors: Iterable[FieldError], text: str | bytes, place: str) -> list[FieldError]:
    """Return the first errors with file and line in front, by line; a text of one line needs no number."""
    first = list(islice(errors, MOST_ERRORS))
    if len(text.strip().splitlines()) <= 1:
        return [each.prefixed(place) for each in first]
    lines = lines_of_fields(text, (each.path for each in first))
    return [each.prefixed(f"{place}:{line}" if line else place) for line, each in by_line(first, lines)]


def by_line(errors: Iterable[FieldError], lines: Mapping[str, int]) -> list[tuple[int | None, FieldError]]:
    """Return the errors in the order of their lines, with these; None: not known."""
    found = [(line_of(each.path, lines), each) for each in errors]
    return sorted(found, key=lambda item: item[0] or 0)


def _read(content: JsonObject, errors: list[FieldError]) -> PolicyDocument | None:
    try:
        return PolicyDocument.model_validate(content, by_alias=True, by_name=False)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            name, known = str(detail["loc"][-1]), _fields_beside(detail["loc"])
            close = get_close_matches(name, known, 1) if detail["type"] == "extra_forbidden" else []
            meant = "".join(f"did you mean {each}? " for each in close)
            errors.append(field_error(detail, _UNKNOWN_FIELD.format(meant)))
        return None


@cache
def _schema() -> Mapping[str, Any]:
    return PolicyDocument.model_json_schema(by_alias=True)


def _fields_beside(location: tuple[int | str, ...]) -> list[str]:
    """Return the fields that the object of the field at `location` can have."""
    found: list[Mapping[str, Any]] = [_schema()]
    for step in location[:-1]:
        found = [inner for each in _variants(found) if (inner := _inside(each, step)) is not None]
    return [name for each in _variants(found) for name in each.get("properties", {})]


def _variants(schemas: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for each in schemas:
        if "$ref" in each:
            yield from _variants([_schema()["$defs"][each["$ref"].rpartition("/")[2]]])
        elif "anyOf" in each:
            yield from _variants(each["anyOf"])
        else:
            yield each


def _inside(schema: Mapping[str, Any], step: int | str) -> Mapping[str, Any] | None:
    found = schema.get("items") if isinstance(step, int) else schema.get("properties", {}).get(step)
    found = schema.get("additionalProperties") if found is None else found
    return found if isinstance(found, dict) else None


def field_error(detail: ErrorDetails, unknown_field: str) -> FieldError:
    """Return a pydantic error as a Kubernetes field error; `unknown_field` is the detail for an unknown field."""
    kind, value = detail["type"], detail["input"]
    path = _path(detail["loc"])
    context: Mapping[str, Any] = detail.get("ctx", {})
    if kind == "missing":
        return required(path, "must be set")
    if kind == "extra_forbidden":
        return forbidden(path, unknown_field)
    if kind == "literal_error":
        expected = context["expected"].replace("'", '"').replace(" or ", ", ")
        return FieldError(path, "Unsupported value", value, f"supported values: {expected}")
    if kind == "string_type" and isinstance(value, int | float):
        return invalid(path, value, "must be text; put it in quotes")
    if kind == "greater_than_equal":
        return invalid(path, value, f"must be at least {context['ge']}")
    if kind == "less_than_equal":
        return invalid(path, value, f"must be at most {context['le']}")
    return invalid(path, value, _TYPES.get(kind) or context.get("detail") or detail["msg"])


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step != "[key]":
            path += f".{step}" if path else step
    return path
