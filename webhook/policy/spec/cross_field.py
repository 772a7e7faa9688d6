"""Validate fields of a policy that depend on each other. Each rule is a function with an entry in `CROSS_FIELD_RULES`.

The rules read the raw document, so they also run if other fields are invalid. A rule skips values of the wrong type.
"""

from collections.abc import Callable, Iterator, Sequence

from webhook.documents.documents import JsonObject, field
from webhook.documents.field import FieldError, invalid, unsupported
from webhook.documents.parts import items_at, object_at
from webhook.kube import names as wellknown
from webhook.policy.spec.document import PolicySpec
from webhook.policy.spec.schedulers import BinPacking, Spread
from webhook.policy.spec.workloads import Qos

_DEFAULT_QOS = Qos().model_dump(mode="json", by_alias=True)
_DEFAULT_WEIGHT = Spread().weight
_DEFAULT_PACKING_KEY = BinPacking().topology_key

# Takes a `spec` with its defaults and yields its errors.
CrossFieldRule = Callable[[JsonObject], Iterator[FieldError]]


def _preferred_usages_are_allowed(spec: JsonObject) -> Iterator[FieldError]:
    for name, each in _objects_in(spec, "workloadTypes"):
        allow, prefer = field(each, "nodeUsage", "allow"), field(each, "nodeUsage", "prefer")
        if isinstance(allow, list) and isinstance(prefer, dict):
            missing = ", ".join(f'"{usage}"' for usage in prefer if usage not in allow)
            if missing:
                detail = f"{missing} must stand in allow too: a pod can only prefer what it may use"
                yield invalid(f"spec.workloadTypes.{name}.nodeUsage.prefer", prefer, detail)


def _chosen_schedulers_are_allowed(spec: JsonObject) -> Iterator[FieldError]:
    allowed = spec["allowedSchedulers"]
    if not isinstance(allowed, list):
        return
    chosen = [(name, field(each, "schedulerName")) for name, each in _objects_in(spec, "workloadTypes")]
    missing = [
        f'"{scheduler}", the schedulerName of workloadTypes.{name}'
        for name, scheduler in chosen
        if isinstance(scheduler, str) and scheduler not in allowed
    ]
    if missing:
        yield invalid("spec.allowedSchedulers", allowed, f"must hold {', and '.join(missing)}")


def _control_plane_is_not_tolerated(spec: JsonObject) -> Iterator[FieldError]:
    taint = f"{spec['keyDomain']}/control-plane"
    holders = [(f"spec.workloadTypes.{name}", each) for name, each in _objects_in(spec, "workloadTypes")]
    holders += [(f"spec.accelerators[{index}]", each) for index, each in enumerate(items_at(spec, "accelerators"))]
    for path, holder in holders:
        for index, each in enumerate(items_at(holder, "extraTolerations")):
            if field(each, "key") == taint:
                detail = "no pod may tolerate the control plane; name the key of another taint"
                yield invalid(f"{path}.extraTolerations[{index}].key", taint, detail)


def _topologies_are_known(spec: JsonObject) -> Iterator[FieldError]:
    aliases = spec["topologyAliases"]
    if not isinstance(aliases, dict):
        return
    names = ", ".join(f'"{alias}"' for alias in aliases)
    detail = f"must be one of topologyAliases ({names}), or a topology key such as kubernetes.io/hostname"
    found = [
        (f"spec.workloadTypes.{name}.{rule}.topology", field(each, rule, "topology"))
        for name, each in _objects_in(spec, "workloadTypes")
        for rule in ("spread", "within")
    ]
    schedulers = _objects_in(spec, "schedulers")
    found += [(f"spec.schedulers.{name}.tiers", tier) for name, each in schedulers for tier in object_at(each, "tiers")]
    for path, topology in found:
        if isinstance(topology, str) and topology not in aliases and "/" not in topology:
            yield invalid(path, topology, detail)


def _gangs_are_not_within_what_they_are_spread_over(spec: JsonObject) -> Iterator[FieldError]:
    aliases = spec["topologyAliases"]
    for name, each in _objects_in(spec, "workloadTypes"):
        together, apart = field(each, "within", "topology"), field(each, "spread", "topology")
        if not (isinstance(together, str) and isinstance(apart, str) and isinstance(aliases, dict)):
            continue
        # A host has one value of each label.
        if aliases.get(together, together) in (aliases.get(apart, apart), wellknown.HOSTNAME_LABEL):
            detail = f"contradicts spread.topology {apart}: a gang within one of them is not spread; remove one"
            yield invalid(f"spec.workloadTypes.{name}.within.topology", together, detail)


def _domains_of_schedulers_have_an_effect(spec: JsonObject) -> Iterator[FieldError]:
    for name, each in _objects_in(spec, "schedulers"):
        backend = each.get("backend", "default")
        for key, needed in (("topologyName", "kai"), ("tiers", "volcano")):
            if each.get(key) and backend != needed:
                yield invalid(f"spec.schedulers.{name}.{key}", each[key], f"has no effect without backend: {needed}")


def _spread_fields_have_an_effect(spec: JsonObject) -> Iterator[FieldError]:
    for name, each in _objects_in(spec, "workloadTypes"):
        path, spread = f"spec.workloadTypes.{name}.spread", field(each, "spread")
        if not isinstance(spread, dict):
            continue
        is_anti_affinity = spread.get("form", "antiAffinity") == "antiAffinity"
        is_preferred = spread.get("mode", "preferred") == "preferred"
        if is_anti_affinity and spread.get("maxSkew", 1) != 1:
            yield invalid(f"{path}.maxSkew", spread["maxSkew"], "has no effect without form: topologySpread")
        if "weight" in spread and spread["weight"] != _DEFAULT_WEIGHT and not (is_anti_affinity and is_preferred):
            detail = "has an effect only with mode: preferred and form: antiAffinity"
            yield invalid(f"{path}.weight", spread["weight"], detail)


def _packing_does_not_undo_spreading(spec: JsonObject) -> Iterator[FieldError]:
    aliases, packing = spec["topologyAliases"], spec["binPacking"]
    if not isinstance(aliases, dict) or not isinstance(packing, dict):
        return
    packed_key = packing.get("topologyKey", _DEFAULT_PACKING_KEY)
    for name, each in _objects_in(spec, "workloadTypes"):
        topology = field(each, "spread", "topology")
        is_preferred = field(each, "spread", "mode") in (None, "preferred")
        if not (field(each, "binPacking") is True and is_preferred and isinstance(topology, str)):
            continue
        if aliases.get(topology, topology) == packed_key:
            detail = f"binPacking over {packed_key} would undo it; set mode: required, binPacking: false or another one"
            yield invalid(f"spec.workloadTypes.{name}.spread.topology", topology, detail)


def _qos_fields_have_an_effect(spec: JsonObject) -> Iterator[FieldError]:
    for name, each in _objects_in(spec, "workloadTypes"):
        qos = field(each, "qos")
        if isinstance(qos, dict) and qos.get("class") is None:
            for key in ("limitsFromRequests", "wholeCpus", "onMissing"):
                if key in qos and qos[key] != _DEFAULT_QOS[key]:
                    detail = "has no effect without class: Guaranteed"
                    yield invalid(f"spec.workloadTypes.{name}.qos.{key}", qos[key], detail)


def _limits_are_reached(spec: JsonObject) -> Iterator[FieldError]:
    seen: dict[str, int] = {}
    for index, each in _namespace_limits(spec):
        known = [name for name in items_at(each, "namespaces") if isinstance(name, str)]
        if known and (earlier := [seen[name] for name in known if name in seen]):
            detail = (
                f"spec.namespaceLimits[{earlier[0]}] comes first for one of them, so this entry does not hold for it"
            )
            yield invalid(f"spec.namespaceLimits[{index}].namespaces", each["namespaces"], detail)
        seen |= {name: index for name in known if name not in seen}


def _limited_types_exist_and_have_their_schedulers(spec: JsonObject) -> Iterator[FieldError]:
    types = dict(_objects_in(spec, "workloadTypes"))
    for index, each in _namespace_limits(spec):
        path, allowed, schedulers = f"spec.namespaceLimits[{index}]", each.get("workloadTypes"), each.get("schedulers")
        names = [name for name in allowed if isinstance(name, str)] if isinstance(allowed, list) else list(types)
        if unknown := [name for name in names if name not in types]:
            detail = f'has no workload type "{unknown[0]}": workloadTypes are {", ".join(types)}'
            yield invalid(f"{path}.workloadTypes", allowed, detail)
        if not isinstance(schedulers, list):
            continue
        chosen = {name: field(types[name], "schedulerName") for name in names if name in types}
        # Every namespace may use the default scheduler.
        usable = (wellknown.DEFAULT_SCHEDULER, *schedulers)
        missing = [(name, used) for name, used in chosen.items() if isinstance(used, str) and used not in usable]
        for name, used in missing[:1]:
            detail = f'must hold "{used}", the schedulerName of workloadTypes.{name}, or workloadTypes must not'
            yield invalid(f"{path}.schedulers", schedulers, detail)


def _required_type_exists(spec: JsonObject) -> Iterator[FieldError]:
    required, types = spec["requireType"], spec["workloadTypes"]
    if isinstance(required, str) and isinstance(types, dict) and required not in ("warn", "deny", *types):
        yield unsupported("spec.requireType", required, ("warn", "deny", *types))


def _former_domains_are_former(spec: JsonObject) -> Iterator[FieldError]:
    former = spec["formerKeyDomains"]
    if isinstance(former, list) and spec["keyDomain"] in former:
        yield invalid("spec.formerKeyDomains", former, "must not hold keyDomain, which is in force")


def _a_canary_is_enforced(spec: JsonObject) -> Iterator[FieldError]:
    if spec["mode"] == "shadow" and spec["canaryPercent"] != _DEFAULTS["canaryPercent"]:
        yield invalid("spec.canaryPercent", spec["canaryPercent"], "has no effect with mode: shadow")


CROSS_FIELD_RULES: Sequence[CrossFieldRule] = (
    _preferred_usages_are_allowed,
    _chosen_schedulers_are_allowed,
    _control_plane_is_not_tolerated,
    _topologies_are_known,
    _gangs_are_not_within_what_they_are_spread_over,
    _domains_of_schedulers_have_an_effect,
    _spread_fields_have_an_effect,
    _packing_does_not_undo_spreading,
    _qos_fields_have_an_effect,
    _limits_are_reached,
    _limited_types_exist_and_have_their_schedulers,
    _required_type_exists,
    _former_domains_are_former,
    _a_canary_is_enforced,
)

_DEFAULTS = PolicySpec().model_dump(mode="json", by_alias=True)


def cross_field_errors(content: JsonObject) -> Iterator[FieldError]:
    """Yield the errors that `CROSS_FIELD_RULES` find in the policy document `content`."""
    spec = content.get("spec", {})
    if isinstance(spec, dict):
        for rule in CROSS_FIELD_RULES:
            yield from rule({**_DEFAULTS, **spec})


def _objects_in(spec: JsonObject, key: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield the names and the objects in the map `key`."""
    return ((name, each) for name, each in object_at(spec, key).items() if isinstance(each, dict))


def _namespace_limits(spec: JsonObject) -> Iterator[tuple[int, JsonObject]]:
    return ((index, each) for index, each in enumerate(items_at(spec, "namespaceLimits")) if isinstance(each, dict))
