"""The sets of equal pods that an object creates: one for each pod template in it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from webhook.documents.documents import JsonObject, field
from webhook.documents.field import MOST_ERRORS, FieldError, InvalidInput, invalid, prefixed_errors, required
from webhook.documents.object_path import Key, Match, count_at, matches, value_at
from webhook.documents.parts import object_at
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.names import KAI_TOPOLOGY
from webhook.kube.shape import check_pod
from webhook.kube.workloads.exclusive_topology import Exclusive
from webhook.kube.workloads.pod_set import Dimension, PodNames, PodSet
from webhook.kube.workloads.pod_set_shapes import SHAPES
from webhook.kube.workloads.pod_template_path import Count, PodTemplatePath, Shaped, WorkloadKind, group_of
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS, Kinds, creates_no_pods

# KAI reads it from the owner of the pods. Other schedulers ignore it.
_OF_KAI = (f"metadata.annotations[{KAI_TOPOLOGY}]", f"KAI keeps its pods within a domain: {KAI_TOPOLOGY}")
_KEPT = ("labels", "annotations")


def pod_sets(content: JsonObject, kinds: Kinds) -> tuple[PodSet, ...]:
    """Return the sets of pods that `content` creates, or none if its kind is not in `kinds` or has no templates.

    Raises:
        InvalidInput: the object cannot be read as its kind; contains the first MOST_ERRORS errors.
    """
    return tuple(each_pod_set(content, kinds))


def each_pod_set(content: JsonObject, kinds: Kinds, expired: Expired = never) -> Iterator[PodSet]:
    """Yield the sets of pods as `pod_sets`, each on demand, because an object can have a hundred thousand templates.

    Raises:
        InvalidInput: the object cannot be read as its kind; contains the first MOST_ERRORS errors. Every set that can
            be read was yielded before.
    """
    if content.get("kind") == "Pod" and content.get("apiVersion", "v1") == "v1":
        yield from _of_pod(content)
        return
    kind = kind_of(content, kinds)
    if kind is not None and kind.wrapped:
        yield from _of_wrapped(content, kind, kinds, expired)
    elif kind is not None:
        yield from _of_kind(content, kind, expired)


def _of_wrapped(content: JsonObject, wrapper: WorkloadKind, kinds: Kinds, expired: Expired) -> Iterator[PodSet]:
    """Yield the sets of the objects in `content`, which are in its namespace. Wrappers in it are not read."""
    namespace = field(content, "metadata", "namespace")
    for path, _, inner in in_time(matches(content, wrapper.wrapped), expired):
        if not isinstance(inner, Mapping):
            raise InvalidInput([invalid(path, inner, "must be an object")])
        with prefixed_errors(path):
            value_at({**inner}, "metadata.namespace", ())  # raises if metadata are no object
            placed = {**inner, "metadata": {**object_at(inner, "metadata"), "namespace": namespace}}
            kind = kind_of(placed, kinds)
            if kind is None and placed["kind"] != "Pod":
                if creates_no_pods(group_of(placed["apiVersion"]), placed["kind"]):
                    continue
                detail = "is not a known kind; describe it in the policy, in spec.workloadKinds"
                raise InvalidInput([invalid("kind", placed["kind"], detail)])
            if kind is None:
                check_pod(placed)
            for each in _of_kind(placed, kind, expired) if kind else _of_pod(placed):
                paths = (each.path, each.annotations_path, each.spec_path)
                whole, annotations, spec = (f"{path}.{part}" if part else path for part in paths)
                suspended = wrapper.suspended if _is_set(content, wrapper.suspended, ()) else each.suspended
                yield replace(each, path=whole, annotations_path=annotations, spec_path=spec, suspended=suspended)


def _of_pod(content: JsonObject) -> Iterator[PodSet]:
    names = PodNames("", "", "", "", "")
    yield PodSet(None, "", "metadata.annotations", "spec", "", 1, (), "", PodTemplatePath(""), content, names, ())


def _of_kind(content: JsonObject, kind: WorkloadKind, expired: Expired) -> Iterator[PodSet]:
    names = _object_names(content, kind)
    errors: list[FieldError] = []
    has_sets = False
    for template in kind.templates:
        for match in _templates(content, kind, template, errors, expired):
            try:
                made = _pod_set(content, kind, template, match, names)
            except InvalidInput as error:
                errors += error.errors
            else:
                if made:
                    has_sets = True
                    # The call is left out for most kinds, because objects can have many templates.
                    yield from _in_domains(content, made, kind, match.keys) if kind.exclusive else (made,)
            if len(errors) >= MOST_ERRORS:
                raise InvalidInput(errors[:MOST_ERRORS])
    if kind.templates and not (errors or has_sets or kind.note):
        path = kind.templates[0].template
        errors.append(required(path.partition(".*")[0], f"{kind.kind} has its pod templates at {path}"))
    if errors:
        raise InvalidInput(errors)


def kind_of(content: JsonObject, kinds: Kinds) -> WorkloadKind | None:
    """Return the kind of an object in `kinds`, or None if it is not there.

    Raises:
        InvalidInput: the object has no kind or no apiVersion.
    """
    kind = content.get("kind")
    if not isinstance(kind, str) or not kind:
        raise InvalidInput([required("kind", "must be the kind of the object, such as Pod")])
    if not isinstance(content.get("apiVersion"), str):
        raise InvalidInput([required("apiVersion", f"must be the API version of the {kind}, such as apps/v1")])
    return kinds.get((group_of(content.get("apiVersion")), kind))


def _object_names(content: JsonObject, kind: WorkloadKind) -> PodNames:
    metadata = content.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInput([invalid("metadata", metadata, "must be an object")])
    texts = {name: (metadata or {}).get(name) for name in ("namespace", "name", "generateName")}
    errors = [
        invalid(f"metadata.{name}", text, "must be text")
        for name, text in texts.items()
        if text is not None and not isinstance(text, str)
    ]
    if errors:
        raise InvalidInput(errors)
    generate_name = texts["generateName"] or f"{kind.kind.lower()}-"
    return PodNames(texts["namespace"] or "", texts["name"] or "", generate_name, "", "")


def _templates(
    content: JsonObject, kind: WorkloadKind, template: PodTemplatePath, errors: list[FieldError], expired: Expired
) -> Iterator[Match]:
    """Yield the templates at one path. An error is added to `errors` and ends the path."""
    try:
        if template.unless and value_at(content, template.unless, ()).value:
            return
        for match in in_time(matches(content, template.template), expired):
            if match.value is None and template.or_else:
                match = value_at(content, template.or_else, match.keys)
            if match.value is None and template.part and value_at(content, template.part, match.keys).value is not None:
                match = match._replace(value={})
            elif match.value is None and template.is_optional:
                continue
            if isinstance(match.value, Mapping):
                yield match
            else:
                errors.append(invalid(match.path, match.value, f"must be the pod template of the {kind.kind}"))
                if len(errors) >= MOST_ERRORS:
                    return
    except InvalidInput as error:
        errors += error.errors


def _pod_set(
    content: JsonObject, kind: WorkloadKind, template: PodTemplatePath, match: Match, names: PodNames
) -> PodSet | None:
    shaped = SHAPES[template.shape](match, content)
    if shaped is None:
        return None
    if shaped.spec is None and match.value.get("containers") and kind not in BUILT_IN_KINDS:
        detail = f"{match.path} is a PodSpec: set podSpec: true for it in spec.workloadKinds of the policy"
        raise InvalidInput([required(shaped.spec_path, detail)])
    if template.shape == "PodSpec" and template.annotations:
        beside = value_at(content, template.annotations, match.keys[: template.annotations.count("*")])
        shaped = replace(shaped, annotations=beside.value, annotations_path=beside.path)
    dimensions = tuple(_dimension(content, count, match.keys) for count in template.counts)
    replicas = 0 if _is_set(content, template.suspended, match.keys) else 1
    for dimension in dimensions:
        replicas *= dimension.number
    pattern = shaped.name or template.name
    if template.completion_mode and value_at(content, template.completion_mode, match.keys).value == "Indexed":
        pattern = template.indexed_name or pattern
    role = template.role or _role(content, template, match)
    claims = _claims(content, template, match.keys) if template.claims else ()
    return PodSet(
        kind,
        shaped.path or match.path,
        shaped.annotations_path if template.shape == "PodSpec" else template.annotations or shaped.annotations_path,
        shaped.spec_path,
        role,
        None if kind.is_per_node else replicas,
        claims,
        shaped.caveat
        or kind.caveat
        or next((why for at, why in (*kind.caveats, _OF_KAI) if _is_set(content, at, match.keys[: at.count("*")])), ""),
        template,
        _made(content, kind, shaped, names.namespace),
        PodNames(names.namespace, names.base, names.generate_name, role, pattern),
        dimensions,
        kind.suspended if _is_set(content, kind.suspended, ()) else "",
    )


def _in_domains(content: JsonObject, made: PodSet, kind: WorkloadKind, keys: tuple[Key, ...]) -> Iterator[PodSet]:
    """Yield the set with the rules for the domains of its groups. The leaders of jobs are a set of their own."""
    rules: list[Exclusive] = []
    for each in kind.exclusive:
        values = (value_at(content, path, keys[: path.count("*")]).value for path in each.annotations)
        key = next((str(value) for value in values if value), "")
        if not key:
            continue
        if each.subgroup_size:
            size = count_at(content, each.subgroup_size, ())
            whole, leads = count_at(content, each.size, ()) or 1, made.role == each.leader
            if size and not (leads and value_at(content, each.excludes_leader, ()).value == "LeaderExcluded"):
                rules.append(Exclusive(each.groups, key, subgroup_size=size, size=whole))
        elif each.leader:
            rules.append(Exclusive(each.groups, key, follows=made.role != each.leader))
        else:
            yield from _leaders_and_followers(made, Exclusive(each.groups, key))
            return
    yield replace(made, exclusive=tuple(rules)) if rules else made


def _leaders_and_followers(made: PodSet, rule: Exclusive) -> Iterator[PodSet]:
    """Yield the first pods of the jobs of a set, which lead, and the other pods."""
    *jobs, last = made.dimensions
    number = last.number
    for begin, share, follows in ((last.first, min(1, number), False), (last.first + 1, number - 1, True)):
        if share > 0 or not follows:
            yield replace(
                made,
                role=f"{made.role} ({'followers' if follows else 'leaders'})",
                replicas=(made.replicas or 0) // max(1, number) * share,
                dimensions=(*jobs, Dimension(begin, share)),
                exclusive=(replace(rule, follows=follows),),
            )


def _is_set(content: JsonObject, path: str, keys: tuple[Key, ...]) -> bool:
    return bool(path) and value_at(content, path, keys).value not in (None, False)


def _dimension(content: JsonObject, count: Count, keys: tuple[Key, ...]) -> Dimension:
    def at(path: str) -> int | None:
        # A path without a star ignores the keys.
        return count_at(content, path, keys[: path.count("*")]) if path else None

    number = at(count.path)
    number = count.default if number is None else number
    if count.at_least and (not count.least_if or _is_set(content, count.least_if, ())):
        number = max(number, *(at(path) or 0 for path in count.at_least))
    most = at(count.at_most)
    number = number if most is None else min(number, most)
    return Dimension((at(count.start) or 0) + count.skipped, max(0, number - count.skipped))


def _role(content: JsonObject, template: PodTemplatePath, match: Match) -> str:
    """Return the role of a set: the key or the name of the item that the last star of the path matched."""
    if not match.keys:
        return ""
    if isinstance(match.keys[-1], str):
        return match.keys[-1]
    stem = template.template[: template.template.rindex("*") + 1]
    item = value_at(content, stem, match.keys).value
    names = (item.get(name) for name in ("name", "groupName")) if isinstance(item, Mapping) else ()
    return next((name for name in names if isinstance(name, str) and name), f"{template.unnamed}{match.keys[-1]}")


def _claims(content: JsonObject, template: PodTemplatePath, keys: tuple[Key, ...]) -> tuple[JsonObject, ...]:
    path, _, claims = value_at(content, template.claims, keys)
    if claims is None:
        return ()
    if not isinstance(claims, list):
        raise InvalidInput([invalid(path, claims, "must be a list")])
    errors = [
        invalid(f"{path}[{index}]", claim, "must be a PersistentVolumeClaim with metadata.name and spec")
        for index, claim in enumerate(claims)
        if not isinstance(field(claim, "metadata", "name"), str)
    ]
    if errors:
        raise InvalidInput(islice(errors, MOST_ERRORS))
    return tuple(claims)


def _made(content: JsonObject, kind: WorkloadKind, shaped: Shaped, namespace: str) -> JsonObject:
    """Return the part of the pod that all pods of a template share."""
    own = {"labels": shaped.labels, "annotations": shaped.annotations}
    if kind.copies_metadata:
        own = {name: _copied(field(content, "metadata", name), own[name]) for name in _KEPT}
    metadata = {name: value for name, value in own.items() if value is not None}
    if namespace:
        metadata["namespace"] = namespace
    spec = shaped.spec
    for name, path, default in kind.spec_defaults:
        if isinstance(spec, Mapping) and not spec.get(name) and (value := value_at(content, path, ()).value or default):
            spec = {**spec, name: value}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _copied(outer: Any, own: Any) -> Any:
    """Return the labels or annotations of the object merged with those of the template, which take precedence."""
    if not isinstance(outer, Mapping) or not isinstance(own or {}, Mapping):
        return outer if own is None else own
    return {**{key: value for key, value in outer.items() if "kubectl" not in key}, **(own or {})}
