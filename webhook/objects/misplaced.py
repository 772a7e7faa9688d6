"""Find annotations of an object in places from which its pods do not get them, and check those that it passes on."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from webhook.documents.documents import JsonObject, field
from webhook.documents.field import InvalidInput
from webhook.documents.object_path import matches, segments
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.workloads.pod_set import PodSet
from webhook.kube.workloads.pod_sets import kind_of
from webhook.mutation.workload.annotations import Annotations, stray_keys
from webhook.policy.keys import ANNOTATIONS
from webhook.policy.policy import Policy

# More changes of templates are not read: an object can have a hundred thousand.
_MOST = 64
_IN_METADATA = ("metadata", "annotations")


def keys_of(content: Any, policy: Policy, *path: str) -> set[str]:
    """Return the keys of the policy among the annotations at `path` of `content`, by default in its metadata."""
    annotations = field(content, *(path or _IN_METADATA))
    return {key for key in policy.keys if key in annotations} if isinstance(annotations, Mapping) else set()


def misplaced(content: JsonObject, pods: Iterable[PodSet], policy: Policy, note: str = "") -> list[str]:
    """Return a warning for each place in `content` that has keys of the policy but is not passed on to its `pods`.

    `note` describes where the pods are if the object does not contain them. The annotations that such an object passes
    on to its pods are checked.
    """
    own, place, remedy = keys_of(content, policy), "", note or "it creates no pod"
    higher: dict[str, str] = {}
    for each in pods:
        known = keys_of(each.common, policy)
        own -= known
        place = place or each.annotations_path
        higher |= _too_high(content, each.path, known, f"its pods read {each.annotations_path}", policy)
    # Only an object without pod templates changes those of another one.
    kind = None if place else kind_of(content, policy.kinds)
    templates = kind.passed_on if kind else ()
    passed = [*_passed_on(content, templates)] if templates else []
    for path, changes in passed:
        known = keys_of(changes, policy)
        own -= known
        higher |= _too_high(content, path, known, f"its pods read {path}.metadata.annotations", policy)
    for path in _parts_of(content, templates):
        higher = _too_high(content, path, set(), remedy, policy) | higher
    if own:
        itself = f"on the {content['kind']} itself: {f'its pods read {place}' if place else remedy}"
        higher = {"": _no_effect(own, itself, policy), **higher}
    warnings = [*higher.values()]
    for path, changes in passed:
        warnings += _faults(path, field(changes, *_IN_METADATA), content, policy)
    return warnings


def _too_high(content: JsonObject, path: str, known: set[str], remedy: str, policy: Policy) -> dict[str, str]:
    """Return warnings by place for the keys at `path` and at its parents that are not `known`."""
    found: dict[str, str] = {}
    value: Any = content
    place = ""
    for step in segments(path):
        if isinstance(value, list):
            value, place = value[int(step)], f"{place}[{step}]"
        else:
            value, place = value.get(step), f"{place}.{step}" if place else step
        if value is None:
            break
        if isinstance(value, Mapping) and ("metadata" in value or "annotations" in value):
            for inner in (("annotations",), _IN_METADATA):
                if keys := keys_of(value, policy, *inner) - known:
                    where = ".".join((place, *inner))
                    found[where] = _no_effect(keys, f"at {where}: {remedy}", policy)
    return found


def _parts_of(content: JsonObject, templates: Iterable[str]) -> Iterator[str]:
    """Yield, for each of `templates`, the paths of the innermost parents that exist in the object."""
    for template in templates:
        *parents, _ = segments(template)
        for count in range(len(parents), 0, -1):
            with suppress(InvalidInput):
                if found := [*islice(matches(content, ".".join(parents[:count])), _MOST)]:
                    yield from (each.path for each in found)
                    break


def _no_effect(keys: set[str], where: str, policy: Policy) -> str:
    listed, verb = ", ".join(key for key in policy.keys if key in keys), "have" if len(keys) > 1 else "has"
    return f"{listed} {verb} no effect {where}"


def _passed_on(content: JsonObject, templates: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each of `templates` with which the object patches the pods of another object."""
    for template in templates:
        try:
            found = [each for each in islice(matches(content, template), _MOST) if isinstance(each.value, Mapping)]
        except InvalidInput:
            # Its own controller or the API server says so.
            continue
        yield from ((each.path, each.value) for each in found)


def _faults(path: str, annotations: Any, content: JsonObject, policy: Policy) -> Iterator[str]:
    if not isinstance(annotations, Mapping) or not all(isinstance(each, str) for each in annotations.values()):
        return
    namespace = field(content, "metadata", "namespace")
    values = Annotations(annotations, str(namespace or DEFAULT_NAMESPACE), {}, policy)
    for each in ANNOTATIONS:
        values.read(each)
    yield from (str(replace(each, path=f"{path}.{each.path}")) for each in values.errors)
    yield from (f"{path}: {text}" for text in stray_keys(annotations, {}, policy))
