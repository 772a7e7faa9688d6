"""Generate the built-in policy and the reference of all fields in docs/policy.md from the policy's models."""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import orjson
import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from tools import DOCS
from webhook.policy.loader import built_in_policy
from webhook.policy.spec import document, field_types
from webhook.policy.spec import workloads as workload_kind


@dataclass(frozen=True, slots=True)
class _Object:
    """One object of the document, with its path."""

    path: str
    model: type[field_types.StrictModel]


_PAGE = DOCS / "policy.md"
_HEADING = "## The document"


def files() -> Mapping[Path, str]:
    """Return the page, whose text between both generated parts is written by hand."""
    by_hand, _, _ = _PAGE.read_text().partition(f"\n{_HEADING}\n")
    by_hand = re.sub(r"```yaml\n.*?```\n", lambda _: _built_in(), by_hand, count=1, flags=re.DOTALL)
    sections = [_section(each) for each in _objects(_Object("", document.PolicyDocument))]
    return {_PAGE: "\n".join([by_hand, *sections, _types()])}


def _built_in() -> str:
    content = built_in_policy().document.model_dump(mode="json", by_alias=True)
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
    return f"```yaml\n{text}```\n"


def _objects(found: _Object) -> Iterator[_Object]:
    """Yield `found` and, depth first, the objects within it."""
    yield found
    for name, hint in _hints(found.model).items():
        path = _join(found.path, _alias(found.model, name))
        for inner, model in _models(hint, path):
            yield from _objects(_Object(inner, model))


def _models(hint: Any, path: str) -> Iterator[tuple[str, type[field_types.StrictModel]]]:
    if inspect.isclass(hint) and issubclass(hint, field_types.StrictModel):
        yield path, hint
        return
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        yield from _models(arguments[0], path)
    elif origin is tuple:
        yield from _models(arguments[0], f"{path}[]")
    elif origin is dict:
        yield from _models(arguments[1], f"{path}.NAME")
    elif origin in (Union, UnionType):
        for each in arguments:
            yield from _models(each, path)


def _section(found: _Object) -> str:
    rows = [_row(found, name, hint) for name, hint in _hints(found.model).items()]
    heading = f"## `{found.path}`" if found.path else _HEADING
    head = "| field | type | default | meaning |\n|---|---|---|---|"
    return "\n".join([heading, "", inspect.cleandoc(found.model.__doc__ or ""), "", head, *rows, ""])


def _row(found: _Object, name: str, hint: Any) -> str:
    field = found.model.model_fields[name]
    alias = _alias(found.model, name)
    meaning = " ".join((field.description or "").split()).replace("|", "\\|")
    kind = _type(hint, _join(found.path, alias)) + (", at least one" if _needs_some(found.model, alias, hint) else "")
    return f"| `{alias}` | {kind} | {_default(field)} | {meaning} |"


def _needs_some(model: type[field_types.StrictModel], alias: str, hint: Any) -> bool:
    """Return whether the model rejects an empty value of the field, by its own error."""
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(plain) not in (tuple, dict):
        return False
    try:
        model.model_validate({alias: {} if get_origin(plain) is dict else []})
    except ValidationError as error:
        details = [str(each.get("ctx", {}).get("detail")) for each in error.errors() if each["loc"] == (alias,)]
        return any(detail.startswith("must hold at least one") for detail in details)
    return False


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default()
    if value is None:
        return "absent"
    text = orjson.dumps(_plain(value)).decode()
    return f"`{text}`" if len(text) <= 40 else "[above](#the-placementpolicy)"


def _plain(value: Any) -> Any:
    return TypeAdapter(Any).dump_python(value, mode="json", by_alias=True)


def _type(hint: Any, path: str) -> str:
    for name, named in _NAMED.items():
        if hint == named:
            return f"[{name}](#types)"
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _type(arguments[0], path)
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in arguments)
    if origin in (Union, UnionType):
        return " or ".join(_type(each, path) for each in arguments if each is not NoneType)
    if origin is tuple:
        return f"list of {_type(arguments[0], f'{path}[]')}, each once"
    if origin is dict:
        return f"map of {_type(arguments[0], path)} to {_type(arguments[1], f'{path}.NAME')}"
    if inspect.isclass(hint) and issubclass(hint, field_types.StrictModel):
        return f"[object](#{_anchor(path)})"
    return {str: "text", bool: "`true` or `false`", int: "integer", Any: "any value"}[hint]


# By their names in the page.
_NAMED = {
    "label value": field_types.LabelValue,
    "label text": field_types.LabelText,
    "label key": field_types.LabelKey,
    "taint key": field_types.TaintKey,
    "DNS subdomain": field_types.Subdomain,
    "weight": field_types.Weight,
    "resource": field_types.ResourcePattern,
    "resource name": field_types.ResourceName,
    "Quantity": field_types.Quantity,
    "namespace": field_types.NamespacePattern,
    "product": field_types.ProductPattern,
    "queue": field_types.QueuePattern,
    "path": workload_kind.FieldPath,
    "product suffix": field_types.ProductSuffix,
}


def _types() -> str:
    head = "## Types\n\n| type | valid values, as in the error message |\n|---|---|"
    return "\n".join([head, *(f"| {name} | {_rule(named)} |" for name, named in _NAMED.items()), ""])


def _rule(named: Any) -> str:
    """Return the detail of the type's error for an invalid value."""
    wrong: int | str = 0 if get_args(named)[0] is int else "-"
    try:
        TypeAdapter(named).validate_python(wrong)
    except ValidationError as error:
        detail: str = error.errors()[0]["ctx"]["detail"]
        return detail
    raise TypeError(f"{named} accepts every value")


def _hints(model: type[field_types.StrictModel]) -> dict[str, Any]:
    hints = get_type_hints(model, include_extras=True)
    return {name: hints[name] for name in model.model_fields}


def _alias(model: type[field_types.StrictModel], name: str) -> str:
    return model.model_fields[name].alias or name


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _anchor(path: str) -> str:
    """Return the anchor that GitHub generates for the heading of an object."""
    return "".join(char for char in path.lower() if char.isalnum() or char in "-_ ").replace(" ", "-")
