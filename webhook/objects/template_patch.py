"""The patch of a workload object: the fields that the policy injects into its pods, and those of the object itself."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from webhook.backends.backend import PodField
from webhook.documents.documents import JsonObject, field
from webhook.documents.object_path import segments
from webhook.kube.api.json_patch import escaped, patched
from webhook.mutation.edits.editor import PodEditor
from webhook.mutation.mutate import RuleOutcome
from webhook.objects.gangs import Role

# An object that etcd stores has 1.5 MiB at most.
MOST_PATCH_BYTES = 256 * 1024

_CONTAINERS = ("containers", "initContainers")
_METADATA = ("labels", "annotations")


def template_patch(content: JsonObject, roles: Iterable[Role]) -> list[JsonObject] | None:
    """Return the operations that change the templates of `roles` in `content`, or None if they are too large.

    A template gets the differences between the pod of its role as written and as admitted. So fields that the object
    sets for all of its pods are not copied to the template.
    """
    operations: list[JsonObject] = []
    done: set[str] = set()
    size_bytes = 0
    for role in roles:
        if role.pods.path in done or not role.result.injection.operations:
            continue
        done.add(role.pods.path)
        found = [*_of_template(content, role)]
        size_bytes += len(orjson.dumps(found))
        if size_bytes > MOST_PATCH_BYTES:
            return None
        operations += found
    return operations


def owner_patch(content: JsonObject, roles: Iterable[Role]) -> tuple[list[JsonObject], list[RuleOutcome]]:
    """Return the operations that set the fields of `content` in which a scheduler reads the domain of its gang.

    The outcome of the rule is for the record. Nothing is set if the user has stated a domain there. All roles are in
    one gang, so one of those with such fields counts: of those with pods, the first that is required, or else the
    first.
    """
    asked = [each for each in roles if each.result.injection.of_owner]
    first = max(asked, key=lambda each: (bool(each.pods.replicas), _is_required(each)), default=None)
    fields = first.result.injection.of_owner if first else ()
    editor, edits = PodEditor(content), []
    parents = [field(content, *path[:-1]) or {} for path, _ in fields]
    own = (key for parent, (path, _) in zip(parents, fields, strict=True) for key in parent if key.startswith(path[-1]))
    if not fields or not all(isinstance(each, Mapping) for each in parents) or any(own):
        return [], []
    for path, value in fields:
        editor.set(value, *path)
        text = value if isinstance(value, str) else ", ".join(f"{key} {part}" for key, part in value.items())
        edits.append(f"{content['kind']}: {PodField(path, text)}")
    return editor.operations, [RuleOutcome("BatchScheduler", tuple(edits))]


def _is_required(role: Role) -> bool:
    within = role.result.injection.within
    return within is not None and within.is_required


def _of_template(content: JsonObject, role: Role) -> Iterator[JsonObject]:
    pointer, template = _template(content, role.pods.path)
    if template is None:
        return
    before = role.content.pod
    after = patched(before, role.result.injection.operations)
    yield from _of_metadata(f"{pointer}/metadata", template.get("metadata"), before["metadata"], after["metadata"])
    for name, value in after["spec"].items():
        if name not in _CONTAINERS and value != before["spec"].get(name):
            yield _set(f"{pointer}/spec", template["spec"], name, value)
    for name in before["spec"].keys() - after["spec"].keys():
        if name in template["spec"]:
            yield {"op": "remove", "path": f"{pointer}/spec/{escaped(name)}"}
    # Containers can have secrets in their environment, so only what changes in them is in the patch and on record.
    for operation in role.result.injection.operations:
        if operation["path"].startswith(tuple(f"/spec/{name}/" for name in _CONTAINERS)):
            yield {**operation, "path": f"{pointer}{operation['path']}"}


def _of_metadata(
    pointer: str, metadata: Mapping[str, Any] | None, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[JsonObject]:
    changed = {}
    for name in _METADATA:
        old, new = before.get(name) or {}, after.get(name) or {}
        changed[name] = {key: value for key, value in new.items() if old.get(key) != value}
    changed = {name: values for name, values in changed.items() if values}
    if changed and metadata is None:
        yield {"op": "add", "path": pointer, "value": changed}
        return
    for name, values in changed.items():
        known = (metadata or {}).get(name)
        if known is None:
            yield {"op": "add", "path": f"{pointer}/{name}", "value": values}
        else:
            yield from (_set(f"{pointer}/{name}", known, key, value) for key, value in values.items())


def _set(pointer: str, holder: Mapping[str, Any], name: str, value: Any) -> JsonObject:
    return {"op": "replace" if name in holder else "add", "path": f"{pointer}/{escaped(name)}", "value": value}


def _template(content: JsonObject, path: str) -> tuple[str, Mapping[str, Any] | None]:
    """Return the JSON pointer of the template at `path`, and the template, or None if the path does not lead to one."""
    pointer = ""
    value: Any = content
    for step in segments(path):
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, Mapping) and step in value:
            value = value[step]
        else:
            return "", None
        pointer += f"/{escaped(step)}"
    return pointer, value if isinstance(value, Mapping) and isinstance(value.get("spec"), Mapping) else None
