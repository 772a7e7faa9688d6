"""Build the rules and matchConditions of the webhooks for workload objects and Namespaces. Pure.

The matchConditions are CEL, which the API server evaluates before it calls the webhook.
Source: k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from webhook.documents.documents import JsonObject
from webhook.documents.object_path import segments
from webhook.kube.names import DAEMON_SET, MANUAL_JOB, MANUAL_JOB_ANNOTATION
from webhook.kube.workloads.pod_template_path import PodTemplatePath, WorkloadKind
from webhook.kube.workloads.workload_kinds import QUEUE_KEYS, QUEUED_KINDS
from webhook.policy.policy import Policy

PODS = "pods.placement.maip.mxsf.io"
WORKLOADS = "workloads.placement.maip.mxsf.io"
NAMESPACES = "namespaces.placement.maip.mxsf.io"
POLICIES = "policies.placement.maip.mxsf.io"


@dataclass(frozen=True, slots=True)
class WebhookRules:
    """The kinds and key domains of policies, which select the objects for which the webhooks are called."""

    kinds: tuple[WorkloadKind, ...]
    key_domains: tuple[str, ...]

    @classmethod
    def of(cls, policies: Iterable[Policy]) -> "WebhookRules":
        """Return the kinds and key domains that at least one of `policies` has.

        A kind that several policies describe gets the templates of all, so that an update is sent if it may concern any
        policy.
        """
        known: dict[tuple[str, str, str], WorkloadKind] = {}
        templates: dict[tuple[str, str], dict[PodTemplatePath, None]] = {}
        key_domains: dict[str, None] = {}
        for policy in policies:
            key_domains[policy.spec.key_domain] = None
            for each in policy.kinds.values():
                known.setdefault((each.group, each.kind, each.resource), each)
                templates.setdefault((each.group, each.kind), {}).update(dict.fromkeys(each.templates))
        kinds = (replace(each, templates=tuple(templates[each.group, each.kind])) for each in known.values())
        return cls(tuple(kinds), tuple(key_domains))

    def rules(self, webhook: str) -> JsonObject:
        """Return the fields of the webhook of this name that depend on the policy."""
        if webhook == WORKLOADS:
            conditions = workload_match_conditions(self.kinds, *self.key_domains)
            return {"rules": workload_rules(self.kinds), "matchConditions": conditions}
        if webhook == NAMESPACES:
            return {"matchConditions": namespace_match_conditions(*self.key_domains)}
        return {}


_NAME_LENGTH = 63
# Source: github.com/google/cel-spec, doc/langdef.md, IDENT
_RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let"),
        *("loop", "namespace", "null", "package", "return", "true", "var", "void", "while"),
    )
)

# The pods of a DaemonSet are not sent, and a PodGroup decides on the queue of its pods. So these are sent with a
# controller, too, which any user can name.
_ALWAYS_SENT = tuple(dict.fromkeys((DAEMON_SET, *(kind for _, kind in QUEUED_KINDS))))
_NOT_CONTROLLED: JsonObject = {
    "name": "not-of-a-controller",
    "expression": (
        f"request.kind.kind in {[*_ALWAYS_SENT]} || !has(object.metadata.ownerReferences) || "
        "!object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller) || "
        f"object.?metadata.?annotations[?'{MANUAL_JOB_ANNOTATION}'].orValue('') == '{MANUAL_JOB}'"
    ),
}


# No controller makes pods of a PodTemplate, and the others have no namespace, with its defaults and rights.
_NOT_SENT = (
    ("", "PodTemplate"),
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"),
    ("argoproj.io", "ClusterWorkflowTemplate"),
)


def workload_rules(kinds: Iterable[WorkloadKind]) -> list[JsonObject]:
    """Return the rules for objects of `kinds`, one for each API group, in the order of the kinds."""
    resources: dict[str, list[str]] = {}
    for kind in _sent(kinds):
        resources.setdefault(kind.group, []).append(kind.resource)
    return [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": list(dict.fromkeys(names)),
            "scope": "Namespaced",
        }
        for group, names in resources.items()
    ]


def workload_match_conditions(kinds: Iterable[WorkloadKind], *key_domains: str) -> list[JsonObject]:
    """Return the conditions under which an object of `kinds` is sent.

    An object is sent if it has no controller, or if a user has created it from a CronJob. For an object with a
    controller, the controller's own object was sent. An update is sent if it changes a pod template or the queue of the
    pods, or sets an annotation of a domain on the object. A changed number of replicas is not sent. Kinds with equal
    paths share a condition.
    """
    by_paths: dict[tuple[str, ...], list[WorkloadKind]] = {}
    for kind in _sent(kinds):
        templates = (path for each in kind.templates for path in (each.template, each.or_else))
        by_paths.setdefault(tuple(dict.fromkeys(filter(None, (*templates, kind.queue)))), []).append(kind)
    return [_NOT_CONTROLLED, *(_changed(paths, equal, key_domains) for paths, equal in by_paths.items())]


def _sent(kinds: Iterable[WorkloadKind]) -> Iterator[WorkloadKind]:
    others = {*_NOT_SENT, *QUEUED_KINDS}
    return chain((kind for kind in kinds if (kind.group, kind.kind) not in others), QUEUED_KINDS.values())


def _changed(paths: tuple[str, ...], kinds: list[WorkloadKind], key_domains: tuple[str, ...]) -> JsonObject:
    """Return the condition that an update of `kinds` changes a value at `paths`, a queue or an annotation."""
    listed = ", ".join(f"'{kind.group}/{kind.kind}'" for kind in kinds)
    of_other_kind = f"!(request.kind.group + '/' + request.kind.kind in [{listed}])"
    alternatives = ["request.operation != 'UPDATE'", of_other_kind, *map(_differs, paths)]
    if (kinds[0].group, kinds[0].kind) not in QUEUED_KINDS:
        alternatives += [_annotated(key_domains), _REQUEUED]
    name = f"changed-{kinds[0].resource}.{kinds[0].group}"[:_NAME_LENGTH].rstrip("-.")
    return {"name": name, "expression": " || ".join(alternatives)}


def _annotated(key_domains: tuple[str, ...]) -> str:
    """Return the expression that the update adds an annotation of a domain to the object, or changes its value."""
    new, old = (f"{each}.?metadata.?annotations" for each in ("object", "oldObject"))
    is_ours = _is_of(key_domains)
    is_ours = is_ours if len(key_domains) == 1 else f"({is_ours})"
    return f"{new}.orValue({{}}).exists(key, {is_ours} && {new}[?key] != {old}[?key])"


_REQUEUED = (
    f"{[*QUEUE_KEYS]}.exists(key, "
    + " || ".join(
        f"object.?metadata.?{holder}[?key] != oldObject.?metadata.?{holder}[?key]"
        for holder in ("labels", "annotations")
    )
    + ")"
)


def _is_of(key_domains: tuple[str, ...]) -> str:
    return " || ".join(f"key.startsWith('{each}/')" for each in key_domains)


# The collections of the built-in kinds by the end of their names. The type of another one is read from the object.
_MAPS = ("ReplicaSpecs",)
_LISTS = ("tasks", "replicatedJobs", "workerGroupSpecs")


def _differs(path: str) -> str:
    """Return the expression that the value at `path` differs from the stored one. With a `*`, one item must differ."""
    parent, star, item = path.partition(".*.")
    if not star or "*" in item:
        field = _optional(parent.removesuffix(".*"))
        return f"object{field} != oldObject{field}"
    new, old = (f"{each}{_optional(parent)}.orValue(%s)" for each in ("object", "oldObject"))
    if parent.endswith(_MAPS):
        return _values_differ(new % "{}", old % "{}", _optional(item))
    new, old = new % "[]", old % "[]"
    if parent.endswith(_LISTS):
        return _items_differ(new, old, _optional(item))
    lists, maps = _items_differ(new, old, _optional(item)), _values_differ(new, old, _optional(item))
    return f"(type({new}) == list && type({old}) == list ? {lists} : ({maps}))"


def _items_differ(new: str, old: str, field: str) -> str:
    """Return the expression that `field` differs in any item of two lists."""
    return f"{new}.map(item, item{field}) != {old}.map(item, item{field})"


def _values_differ(new: str, old: str, field: str) -> str:
    """Return the expression that `field` differs in any value of two maps. Keys of a map have no order in CEL."""
    differs = f"!(key in {old}) || {new}[key]{field} != {old}[key]{field}"
    return f"{new}.size() != {old}.size() || {new}.exists(key, {differs})"


def _optional(path: str) -> str:
    """Return the selection of `path`, whose fields may be absent: `.?spec.?template`."""
    return "".join(f".?{key}" if _is_identifier(key) else f"[?{json.dumps(key)}]" for key in segments(path))


def _is_identifier(key: str) -> bool:
    return re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", key) is not None and key not in _RESERVED


def namespace_match_conditions(*key_domains: str) -> list[JsonObject]:
    """Return the conditions that a Namespace has an annotation of a domain, and an update has changed one."""
    return [
        {
            "name": "has-defaults",
            "expression": (
                f"has(object.metadata.annotations) && object.metadata.annotations.exists(key, {_is_of(key_domains)})"
            ),
        },
        {
            "name": "annotations-changed",
            "expression": (
                "request.operation != 'UPDATE' || object.?metadata.?annotations != oldObject.?metadata.?annotations"
            ),
        },
    ]
