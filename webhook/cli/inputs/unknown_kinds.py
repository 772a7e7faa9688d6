"""Advise how a policy describes a kind that creates pods and is not known."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from webhook.documents.documents import JsonObject, field
from webhook.documents.object_path import STAR, segments
from webhook.documents.text import cut
from webhook.kube.workloads.pod_template_path import WorkloadKind, group_of
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS, CORE_KINDS

_OF_KUBERNETES = {"": "v1", "apps": "apps/v1", "batch": "batch/v1", "extensions": ""}
# Operators have kinds with similar names, such as PodClique and PodCliqueSet. Kubernetes has few kinds.
_SIMILARITY, _SIMILARITY_OF_KUBERNETES = 0.95, 0.85
_LONGEST_COMPARED = 63
_LONGEST_SHOWN = 253
_MOST_STEPS = 10_000
_MOST_TEMPLATES = 16
# Fields beside a template that count its pods in the kinds of operators.
_COUNTS = ("replicas", "instances", "parallelism", "nodeCount", "numNodes", "minReplicas")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_*-]+")
_ENDS_WITH_SIBILANT = ("s", "x", "z", "ch", "sh")
Path = tuple[str, ...]


def unknown_kind(content: JsonObject) -> str:
    """Return the advice to describe the kind of `content` in a policy."""
    group, kind = group_of(content["apiVersion"]), content["kind"]
    meant = _meant(group, kind)
    if meant and group in _OF_KUBERNETES:
        return f"is not a kind of {content['apiVersion']}; did you mean {meant}?"
    paths = _with_stars(content, [*_template_paths(content)])
    templates = ", ".join(_entry(content, path) for path in paths)
    empty = '""'
    entry = f"{{group: {group or empty}, kind: {kind}, resource: {_plural(kind.lower())}, templates: [{templates}]}}"
    why = "" if paths else "; with the paths of its pod templates, if it has some"
    begin = f"did you mean {meant}? Or " if meant else ""
    return f"is not a known kind; {begin}describe it in the policy: spec.workloadKinds: [{entry}]{why}"


def _meant(group: str, kind: str) -> str:
    """Return the kind of `group` that probably was meant, of a group of Kubernetes with its apiVersion, or ""."""
    is_core = group in _OF_KUBERNETES
    known = {each.kind: each.kind for each in BUILT_IN_KINDS if each.group == group}
    if is_core:
        kinds = [(each.group, each.kind) for each in BUILT_IN_KINDS if each.group in _OF_KUBERNETES]
        kinds += [("", each) for each in ("Pod", *CORE_KINDS)]
        known = {each: f"{each} of {_OF_KUBERNETES[of]}" for of, each in kinds}
    by_text = {each.lower(): shown for each, shown in known.items()}
    similarity = _SIMILARITY_OF_KUBERNETES if is_core else _SIMILARITY
    close = get_close_matches(kind[:_LONGEST_COMPARED].lower(), by_text, 1, similarity)
    return by_text[close[0]] if close else ""


def undescribed_templates(content: JsonObject, kind: WorkloadKind) -> Iterator[str]:
    """Yield a warning for each value that looks like a pod template and is at none of the paths of `kind`."""
    described = [segments(path) for each in kind.templates for path in (each.template, each.or_else) if path]
    for path in _template_paths(content):
        if described and not any(_is_part_of(path, each) for each in described):
            place = cut(_text(path), _LONGEST_SHOWN)
            yield f"the pods of {place} are not counted: spec.workloadKinds of the policy does not name it"


def _is_part_of(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether one of two paths can be the beginning of the other, or equal to it."""
    return all(first == second or STAR in (first, second) for first, second in zip(one, other, strict=False))


def _plural(kind: str) -> str:
    """Return the plural of a kind in lower case, as code generators of Kubernetes make it.

    Source: k8s.io/gengo/v2/namer/plural_namer.go
    """
    if kind.endswith(_ENDS_WITH_SIBILANT):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("y") and kind[-2:-1] not in "aeiou" else f"{kind}s"


def _template_paths(content: JsonObject) -> Iterator[Path]:
    """Yield the paths of the first values in `content` that look like a pod template or a PodSpec."""
    waiting: list[tuple[Path, Any]] = [((), content)]
    found = 0
    for path, value in waiting:
        if len(waiting) > _MOST_STEPS or found == _MOST_TEMPLATES:
            return
        if isinstance(value, Mapping):
            if path and isinstance(field(value, "spec", "containers") or value.get("containers"), list):
                found += 1
                yield path
                continue
            waiting += [((*path, str(key)), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, STAR), inner) for inner in value[:1]]


def _with_stars(content: JsonObject, paths: Sequence[Path]) -> list[Path]:
    """Return `paths` with one in place of those that differ only in the key of a map whose values all have one."""
    found = [*paths]
    for path in paths:
        for index in range(len(path)):
            alike = [
                each for each in found if (*each[:index], *each[index + 1 :]) == (*path[:index], *path[index + 1 :])
            ]
            parent = _first_at(content, path[:index])
            # Fields of objects begin with a small letter, such keys of a map as Worker do not.
            is_map = len(alike) > 1 or path[index][:1].isupper()
            if is_map and isinstance(parent, Mapping) and {each[index] for each in alike} == set(parent):
                found[found.index(alike[0])] = (*path[:index], STAR, *path[index + 1 :])
                found = [each for each in found if each not in alike]
    return found


def _entry(content: JsonObject, path: Path) -> str:
    """Return the entry of a path in the policy, with the number of pods if there is one beside the template."""
    counts = ((*path[:-1], each) for each in _COUNTS)
    replicas = next((each for each in counts if isinstance(_first_at(content, each), int)), None)
    counted = f", replicas: {_text(replicas)}" if replicas else ""
    found = _first_at(content, path)
    shape = ", podSpec: true" if isinstance(found, Mapping) and "containers" in found else ""
    return f"{{path: {_text(path)}{counted}{shape}}}"


def _first_at(content: Any, path: Path) -> Any:
    """Return the value at `path`, with the first item for a star, or None if it is absent."""
    value = content
    for key in path:
        if key == STAR and isinstance(value, Mapping | list):
            value = next(iter(value.values() if isinstance(value, Mapping) else value), None)
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(path: Path) -> str:
    first, *others = path
    return first + "".join(f".{each}" if _PLAIN_KEY.fullmatch(each) else f"[{each}]" for each in others)
