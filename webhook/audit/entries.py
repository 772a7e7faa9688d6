"""The nested objects of an audit record and their JSON, truncated to the bounds of a record."""

from dataclasses import dataclass

from pydantic import ConfigDict, with_config
from pydantic.alias_generators import to_camel

from webhook.audit.bounds import Truncator
from webhook.audit.encoding import dump
from webhook.kube.documents import JsonObject

# A newer version may write keys that this one does not know.
_JSON = ConfigDict(alias_generator=to_camel, extra="ignore")
_UNMODELLED_BYTES = 1024


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class Owner:
    """The controller that created the pod."""

    kind: str
    name: str


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class PolicyName:
    """The policy that was applied, with the hash of its content."""

    name: str
    revision: str


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class RuleEntry:
    """The result of one rule: a text for each edit, or why the rule was skipped."""

    name: str
    edits: tuple[str, ...] = ()
    skipped: str | None = None


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class ReservedEntry:
    """The number of pods that waited before the pod and had room reserved when its verdict was computed."""

    pods: int


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class GangEntry:
    """The number of pods of the gang `name` that fit together, of `size`; at least so many unless `is_complete`."""

    name: str
    size: int
    fit: int
    is_complete: bool = True


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class PlacementEntry:
    """The predicted placement of the pod. `total` and `feasible` count nodes.

    `unmodelled` lists the kube-scheduler plugins that are relevant to the pod but were not evaluated. `reserved` is
    None if no room was reserved for other pods, `gang` if the pod is in none.
    """

    verdict: str
    node: str | None
    total: int
    feasible: int
    message: str
    unmodelled: tuple[str, ...] = ()
    reserved: ReservedEntry | None = None
    gang: GangEntry | None = None


@with_config(_JSON)
@dataclass(frozen=True, slots=True)
class ShadowEntry:
    """The answer that was not given, because the policy is in shadow mode or the pod outside the canary.

    `message` is the reason for a denial, a bypass or an internal error.
    """

    outcome: str
    rules: tuple[RuleEntry, ...] = ()
    patch: tuple[JsonObject, ...] = ()
    warnings: tuple[str, ...] = ()
    placement: PlacementEntry | None = None
    message: str | None = None


def rule_json(entry: RuleEntry) -> JsonObject:
    """Return the JSON object of a rule's result."""
    if entry.skipped is not None:
        return {"name": entry.name, "skipped": entry.skipped}
    return {"name": entry.name, "edits": entry.edits}


def text_json(truncator: Truncator, place: str, text: str | None) -> bytes:
    """Return the JSON of `text`, the value of the field `place`."""
    return b"null" if text is None else dump(truncator.text(place, text))


def owner_json(owner: Owner | None, truncator: Truncator) -> bytes:
    """Return the JSON of the owner."""
    if owner is None:
        return b"null"
    return dump(
        {
            "kind": truncator.text("owner.kind", owner.kind),
            "name": truncator.text("owner.name", owner.name),
        }
    )


def policy_json(policy: PolicyName | None, truncator: Truncator) -> bytes:
    """Return the JSON of the policy."""
    if policy is None:
        return b"null"
    return dump({"name": truncator.text("policy.name", policy.name), "revision": policy.revision})


def placement_json(entry: PlacementEntry | None, truncator: Truncator) -> bytes:
    """Return the JSON of the placement."""
    if entry is None:
        return b"null"
    fields = {
        "verdict": entry.verdict,
        "node": None if entry.node is None else truncator.text("placement.node", entry.node),
        "total": entry.total,
        "feasible": entry.feasible,
        "message": truncator.text("placement.message", entry.message),
    }
    unmodelled = truncator.items_json("placement.unmodelled", entry.unmodelled, _UNMODELLED_BYTES)
    reserved = b',"reserved":{"pods":%d}' % entry.reserved.pods if entry.reserved else b""
    gang = b""
    if entry.gang is not None:
        name = truncator.text("placement.gang.name", entry.gang.name)
        counts = {"size": entry.gang.size, "fit": entry.gang.fit, "isComplete": entry.gang.is_complete}
        gang = b',"gang":%b' % dump({"name": name, **counts})
    return b'%b,"unmodelled":%b%b%b}' % (dump(fields)[:-1], unmodelled, reserved, gang)
