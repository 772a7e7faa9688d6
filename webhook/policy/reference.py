"""docs/policy.md, written from the policy's models: `python -m webhook.policy.reference` prints it."""

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import orjson
import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from webhook.policy import document, fields
from webhook.policy.loader import built_in_policy

_INTRODUCTION = """\
# The PlacementPolicy

<!-- Written by `make docs` from webhook/policy/document.py; change the docstrings there. -->

One YAML document says what the webhook injects, and for whom. This is the built-in one, which holds where no file is
given.
"""

_WORKING_WITH_IT = """\
## Writing one

A file sets only what differs; everything else keeps the value above. A field that is set is replaced as a whole: a file
that lists `workloadTypes` or `accelerators` lists all of them. An unknown field is refused, so that a misspelt one is
never passed over.

```yaml
# policy.yaml
apiVersion: placement.maip.mxsf.io/v1alpha1
kind: PlacementPolicy
metadata:
  name: gpu-cluster
spec:
  workloadTypes:
    training:
      nodeUsage: {allow: [training, hybrid], prefer: {training: 100}}
      schedulerName: volcano
      binPacking: true
      allowedNamespaces: [team-*]
    inference:
      nodeUsage: {allow: [inference, hybrid], prefer: {inference: 100}}
  placementCheck:
    mode: deny
    floor: warn
```

```console
$ placement-webhook policy check policy.yaml
policy.yaml: valid: gpu-cluster@…, workload types training, inference
$ placement-webhook policy show --policy policy.yaml
# gpu-cluster@…
…
$ placement-webhook policy schema > policy.schema.json
```

`check` names everything that is wrong at once, each with its path, and exits with 2. `show` prints the policy with
every default written out. `schema` is for editors: put `# yaml-language-server: $schema=policy.schema.json` on the
file's first line.

`NAME@REVISION` stands in the annotation `placement-policy` of every pod that the policy touched, in every audit record
and in the metric `placement_webhook_policy_info`. The revision is a hash of the `spec` with all defaults written out,
so that files which mean the same have the same one, whatever their comments and the order of their keys.

The server reads the file when it starts. Under `deploy/`, another policy rolls the Deployment out anew; one that the
webhook refuses never replaces the one in force, because its pods do not become ready.
"""


@dataclass(frozen=True, slots=True)
class _Object:
    """One object of the document, with the path by which a user finds it."""

    path: str
    model: type[fields.StrictModel]


def page() -> str:
    """The reference of all fields, as Markdown."""
    parts = [_INTRODUCTION, _built_in(), _WORKING_WITH_IT]
    parts += [_section(each) for each in _objects(_Object("", document.PolicyDocument))]
    return "\n".join([*parts, _types()])


def _built_in() -> str:
    content = built_in_policy().document.model_dump(mode="json", by_alias=True)
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
    return f"```yaml\n{text}```\n"


def _objects(found: _Object) -> Iterator[_Object]:
    """`found` and, depth first, the objects within it."""
    yield found
    for name, hint in _hints(found.model).items():
        path = _join(found.path, _alias(found.model, name))
        for inner, model in _models(hint, path):
            yield from _objects(_Object(inner, model))


def _models(hint: Any, path: str) -> Iterator[tuple[str, type[fields.StrictModel]]]:
    if inspect.isclass(hint) and issubclass(hint, fields.StrictModel):
        yield path, hint
        return
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        yield from _models(arguments[0], path)
    elif origin is tuple:
        yield from _models(arguments[0], f"{path}[]")
    elif origin is dict:
        yield from _models(arguments[1], f"{path}.NAME")


def _section(found: _Object) -> str:
    rows = [_row(found, name, hint) for name, hint in _hints(found.model).items()]
    heading = f"## `{found.path}`" if found.path else "## The document"
    head = "| field | type | default | meaning |\n|---|---|---|---|"
    return "\n".join([heading, "", inspect.cleandoc(found.model.__doc__ or ""), "", head, *rows, ""])


def _row(found: _Object, name: str, hint: Any) -> str:
    field = found.model.model_fields[name]
    alias = _alias(found.model, name)
    told = " ".join((field.description or "").split()).replace("|", "\\|")
    kind = _type(hint, _join(found.path, alias)) + (", at least one" if _needs_some(found.model, alias, hint) else "")
    return f"| `{alias}` | {kind} | {_default(field)} | {told} |"


def _needs_some(model: type[fields.StrictModel], alias: str, hint: Any) -> bool:
    """Whether the model refuses the field for being empty, as it says itself."""
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(plain) not in (tuple, dict):
        return False
    try:
        model.model_validate({alias: {} if get_origin(plain) is dict else []})
    except ValidationError as error:
        told = [str(each.get("ctx", {}).get("detail")) for each in error.errors() if each["loc"] == (alias,)]
        return any(detail.startswith("must hold at least one") for detail in told)
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
    if inspect.isclass(hint) and issubclass(hint, fields.StrictModel):
        return f"[object](#{_anchor(path)})"
    return {str: "text", bool: "`true` or `false`", int: "integer"}[hint]


# By what the page calls them.
_NAMED = {
    "label value": fields.LabelValue,
    "label text": fields.LabelText,
    "label key": fields.LabelKey,
    "DNS subdomain": fields.Subdomain,
    "weight": fields.Weight,
    "resource": fields.ResourcePattern,
    "resource name": fields.ResourceName,
    "Quantity": fields.Quantity,
    "namespace": fields.NamespacePattern,
    "product": fields.ProductPattern,
}


def _types() -> str:
    head = "## Types\n\n| type | what a value must be, in the words of the error |\n|---|---|"
    return "\n".join([head, *(f"| {name} | {_rule(named)} |" for name, named in _NAMED.items()), ""])


def _rule(named: Any) -> str:
    """What the type's own error says of a value that is wrong."""
    wrong: int | str = 0 if get_args(named)[0] is int else "-"
    try:
        TypeAdapter(named).validate_python(wrong)
    except ValidationError as error:
        detail: str = error.errors()[0]["ctx"]["detail"]
        return detail
    raise TypeError(f"{named} has no value that is wrong")


def _hints(model: type[fields.StrictModel]) -> dict[str, Any]:
    hints = get_type_hints(model, include_extras=True)
    return {name: hints[name] for name in model.model_fields}


def _alias(model: type[fields.StrictModel], name: str) -> str:
    return model.model_fields[name].alias or name


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _anchor(path: str) -> str:
    """The anchor that GitHub gives to the heading of an object."""
    return "".join(char for char in path.lower() if char.isalnum() or char in "-_ ").replace(" ", "-")


if __name__ == "__main__":
    sys.stdout.write(page())
