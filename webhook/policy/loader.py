"""Read PlacementPolicy documents as policies, and report all their errors at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from webhook.documents.documents import Document, JsonObject, field, parse
from webhook.documents.field import MOST_ERRORS, FieldError, InvalidInput, forbidden, invalid, required
from webhook.documents.yaml_text import line_of, lines_in, objects
from webhook.policy.policy import Policy
from webhook.policy.spec.cross_field import cross_field_errors
from webhook.policy.spec.document import API_VERSION, KIND, PolicyDocument

MOST_POLICIES = 256
"""The most documents, which is also the most objects of a cluster that a server follows."""

_MOST_ALIASED = 100_000
"""The most values that aliases stand for: each is validated, and kept, as if it were written."""

Check = Callable[[Policy], Iterable[FieldError]]

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


def built_in_policy() -> Policy:
    """Return the policy that applies if no file is given."""
    return Policy(PolicyDocument.model_validate({"apiVersion": API_VERSION, "kind": KIND}))


@dataclass(frozen=True, slots=True)
class PlacedPolicy:
    """A policy, its file, and the place of its document: `policies.yaml, document 2 (team-a)`."""

    file: str
    place: str
    policy: Policy


def parse_policy(text: str | bytes, place: str, check: Check = lambda _: ()) -> Policy:
    """Return the policy in `text`, as `parse_policies` does.

    Raises:
        InvalidInput: the text is not one valid PlacementPolicy; lists all errors.
    """
    return parse_policies(text, place, check, most=1)[0].policy


def parse_policies(
    text: str | bytes, place: str, check: Check = lambda _: (), most: int = MOST_POLICIES
) -> list[PlacedPolicy]:
    """Return the policies in `text`, at least one and at most `most`. `place` is the prefix of the errors' paths.

    `check` returns further errors of a valid policy.

    Raises:
        InvalidInput: a document is not a valid PlacementPolicy; lists all errors.
    """
    documents = parse(text, place, _MOST_ALIASED)
    if not 0 < len(documents) <= most:
        wanted = f"one {KIND}" if not documents or most == 1 else f"at most {most} PlacementPolicies"
        number = f"{len(documents)} documents"
        raise InvalidInput([FieldError(place, "Invalid value", number, f"must hold {wanted}, holds {number}")])
    found: list[PlacedPolicy] = []
    errors: list[FieldError] = []
    nodes: list[yaml.Node] | None = None
    for index, document in enumerate(documents):
        if len(errors) >= MOST_ERRORS:
            break
        name = _name(document) if len(documents) > 1 else ""
        try:
            policy = read_policy_document(document.content)
        except InvalidInput as error:
            own: Sequence[FieldError] = error.errors
        else:
            found.append(PlacedPolicy(place, f"{document.place}{name}", policy))
            own = tuple(check(policy))
        if own := own[: MOST_ERRORS - len(errors)]:
            if nodes is None:
                # A text of one line needs no number.
                nodes = objects(text) if len(text.strip().splitlines()) > 1 else []
            is_known = len(nodes) == len(documents)
            lines = lines_in(nodes[index], (each.path for each in own)) if is_known else {}
            errors += _placed(own, lines, place, f"{document.place.removeprefix(place)}{name}")
    if errors:
        raise InvalidInput(errors)
    return found


def _name(document: Document) -> str:
    name = field(document.content, "metadata", "name")
    return f" ({name})" if isinstance(name, str) and name else ""


def _placed(errors: Iterable[FieldError], lines: Mapping[str, int], file: str, document: str) -> Iterator[FieldError]:
    """Yield the errors in the order of their lines, with file, line and document before each."""
    found = [(line_of(each.path, lines), each) for each in errors]
    for line, each in sorted(found, key=lambda item: item[0] or 0):
        yield each.prefixed(f"{file}:{line}{document}" if line else f"{file}{document}")


def read_policy_document(content: JsonObject) -> Policy:
    """Return the policy in `content`, a document of a file or an object as `kubectl get -o yaml` prints it.

    An object of a cluster has a UID. Its `status` and the metadata that the API server sets are ignored.

    Raises:
        InvalidInput: the content is not a valid PlacementPolicy; lists all errors, without a place.
    """
    content = _as_written(content)
    errors: list[FieldError] = []
    document = _read(content, errors)
    paths = {each.path for each in errors}
    # Omit errors that only follow from another invalid field.
    errors += [each for each in cross_field_errors(content) if each.path.replace(".prefer", ".allow") not in paths]
    if document is None or errors:
        raise InvalidInput(errors)
    return Policy(document)


def _as_written(content: JsonObject) -> JsonObject:
    """Return `content`. If it is an object from an API server, leave out the fields that the API server adds."""
    metadata = content.get("metadata")
    if not isinstance(metadata, dict) or "uid" not in metadata:
        return content
    kept = {key: value for key, value in metadata.items() if key not in _SET_BY_THE_API_SERVER}
    return {**{key: value for key, value in content.items() if key != "status"}, "metadata": kept}


def _read(content: JsonObject, errors: list[FieldError]) -> PolicyDocument | None:
    try:
        return PolicyDocument.model_validate(content, by_alias=True, by_name=False)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            name, known = str(detail["loc"][-1]), _fields_beside(detail["loc"])
            close = get_close_matches(name, known, 1) if detail["type"] == "extra_forbidden" else []
            meant = "".join(f"did you mean {each}? " for each in close)
            unknown = f"unknown field; {meant}`placement-webhook policy schema` lists the known ones"
            errors.append(field_error(detail, unknown))
        return None


@cache
def _schema() -> Mapping[str, Any]:
    return PolicyDocument.model_json_schema(by_alias=True)


def _fields_beside(location: tuple[int | str, ...]) -> list[str]:
    """Return the names of the fields that can occur next to the field at `location`."""
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
