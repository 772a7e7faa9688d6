"""Limits of a namespace on queues, schedulers and cards, as CEL: the denials of a pod beyond them."""

from collections.abc import Iterator

from webhook.backends.kai import Kai
from webhook.backends.kueue import Kueue
from webhook.backends.registry import BACKENDS
from webhook.kube.names import DEFAULT_SCHEDULER, KAI_SHARE_DEVICES, KAI_SHARES
from webhook.kube.pod.card_names import CARD_BY_OTHER_NAME
from webhook.mutation.exported.cel import (
    Cel,
    any_of,
    choose,
    concatenated,
    matches_any,
    negated,
    stripped,
    text,
    texts,
    when,
)
from webhook.mutation.exported.namespaces import NAMESPACE, limited
from webhook.mutation.exported.variables import DEFAULTS, OWN, Variable, is_of_any, is_of_backend, is_share_of_card
from webhook.policy.keys import Keys
from webhook.policy.policy import Policy
from webhook.policy.spec.admission import NamespaceLimits

NAMED = f'"namespace \\"" + {NAMESPACE} + "\\" may not '
_SHOWN = 253


def allowed_defaults(policy: Policy) -> Iterator[Variable]:
    """Yield whether the namespace may use its own defaults of queue and scheduler: others are ignored."""
    for name, key in (("queue", policy.keys.queue), ("scheduler", policy.keys.scheduler)):
        value = stripped(f"{DEFAULTS}[{text(key)}]")
        yield f"{name}DefaultAllowed", f"!({text(key)} in {DEFAULTS}) || {_is_allowed(policy, name + 's', value)}"


def _is_allowed(policy: Policy, field: str, value: Cel) -> Cel:
    """Return whether the limits of the namespace allow a queue or scheduler; without a value they do."""
    always = ["", DEFAULT_SCHEDULER] if field == "schedulers" else [""]
    limits = [
        (f"variables.limit == {index}", any_of((f"{value} in {texts(always)}", _is_one_of(value, field, each))))
        for index, each in limited(policy, field)
    ]
    return choose(limits, "true")


def _is_one_of(value: Cel, field: str, limits: NamespaceLimits) -> Cel:
    allowed: tuple[str, ...] = getattr(limits, field)
    if field == "queues":
        return matches_any(value, allowed)
    return f"{value} in {texts(allowed)}" if allowed else "false"


def allowed_text(policy: Policy, field: str, noun: str) -> Cel:
    """Return the end of a denial: the values that the limits of the namespace allow for a `field`."""
    found = [
        (f"variables.limit == {index}", text(f"; allowed {noun}: {', '.join(getattr(each, field)) or 'none'}"))
        for index, each in limited(policy, field)
    ]
    return choose(found, '""')


def denials(policy: Policy) -> Iterator[Variable]:
    """Yield the texts of the limits of queues, schedulers and cards that the pod is beyond."""
    found = [_of_annotations(policy), _of_queue_fields(policy), _of_scheduler_name(policy)]
    if limited(policy, "max_cards_per_pod"):
        yield from _cards(policy)
        most = choose(
            (
                (f"variables.limit == {i}", str(each.max_cards_per_pod))
                for i, each in limited(policy, "max_cards_per_pod")
            ),
            "1000000000",
        )
        detail = f'{NAMED}request " + string(variables.cards) + " cards in a pod; allowed: at most " + string({most})'
        found.append(when(f"variables.cards > {most}", f'["spec.containers: Forbidden: " + {detail}]'))
    yield "limitDenials", concatenated(found)


def _detail(policy: Policy, noun: str, value: Cel) -> Cel:
    begin = NAMED + f'use {noun} \\""'
    return f'{begin} + {_cut(value)} + "\\"" + {allowed_text(policy, noun + "s", noun + "s")}'


def _cut(value: Cel) -> Cel:
    return f'({value}.size() <= {_SHOWN} ? {value} : {value}.substring(0, {_SHOWN - 1}) + "…")'


def _of_annotations(policy: Policy) -> Cel:
    lists = []
    for name, annotation in (("queue", Keys.queue), ("scheduler", Keys.scheduler)):
        key, value = policy.keys.of(annotation), f"variables.{name}Text"
        allowed = _is_allowed(policy, f"{name}s", value)
        detail = _detail(policy, name, value)
        path = text(f"metadata.annotations[{key}]: Forbidden: ")
        lists.append(when(negated(allowed), f"[{path} + {detail}]"))
    return concatenated(lists)


def _of_queue_fields(policy: Policy) -> Cel:
    """Return the denials of queues that the pod names in the terms of its scheduler or of Kueue."""
    lists = []
    for name, backend in BACKENDS.items():
        is_it = "true" if backend is Kueue else is_of_backend(policy, name, "variables.batchScheduler")
        for holder, key in backend.queue_at:
            value = f'object.metadata.?{holder}[?{text(key)}].orValue("")'
            detail = _detail(policy, "queue", value)
            path = text(f"metadata.{holder}[{key}]: Forbidden: ")
            denied = negated(_is_allowed(policy, "queues", value))
            if is_it != "false" and denied != "false":
                lists.append(when(f"{is_it} && {denied}", f"[{path} + {detail}]"))
    return concatenated(lists)


def _of_scheduler_name(policy: Policy) -> Cel:
    value = 'object.spec.?schedulerName.orValue("")'
    denied = negated(_is_allowed(policy, "schedulers", value))
    detail = _detail(policy, "scheduler", value)
    return when(denied, f'["spec.schedulerName: Forbidden: " + {detail}]')


def _cards(policy: Policy) -> Iterator[Variable]:
    """Yield the number of cards that the pod requests, by resource the larger of the sum and the peak at its start."""
    is_card, is_share = is_of_any("n", policy), is_share_of_card("n")
    amount = "quantity(string(c.resources.requests[n])).asInteger()"
    requests = "c.?resources.?requests.orValue({})"
    numbers = f"{requests}.map(n, {is_card} && !{is_share}, {_named_cards('n', amount)})"
    names = ", ".join(f"{text(other)}: {text(card)}" for other, card in CARD_BY_OTHER_NAME.items())
    shares = f"{requests}.map(n, {is_card} && {is_share}, {_named_cards(f'{{{names}}}[?n].orValue(n)', '1')})"
    of_container = f"({numbers}.size() > 0 ? {numbers} : {shares}.size() > 0 ? [{shares}[0]] : [])"
    yield "initCards", f"object.spec.?initContainers.orValue([]).map(c, {of_container})"
    yield "appCards", f"object.spec.containers.map(c, {of_container})"
    yield "isSidecar", 'object.spec.?initContainers.orValue([]).map(c, c.?restartPolicy.orValue("") == "Always")'
    listed = '(variables.initCards + variables.appCards).map(l, l.map(a, string(a.name)).join(","))'
    yield "cardNames", f'{listed}.filter(s, s != "").join(",").split(",").filter(n, n != "")'
    yield "cardNamesOnce", "variables.cardNames.transformList(i, n, variables.cardNames.indexOf(n) == i, n)"
    of_name = "filter(a, a.name == n).map(a, int(a.cards)).sum()"
    apps = f"variables.appCards.map(l, l.{of_name}).sum()"
    sidecars = f"variables.initCards.transformList(i, l, variables.isSidecar[i], l.{of_name}).sum()"
    before = f"variables.initCards.transformList(j, m, j < i && variables.isSidecar[j], m.{of_name}).sum()"
    peaks = f"variables.initCards.transformList(i, l, !variables.isSidecar[i], l.{of_name} + {before})"
    total = f"([{apps} + {sidecars}] + {peaks}).max()"
    shared = any_of(f'{OWN}[?{text(each)}].orValue("") != ""' for each in KAI_SHARES)
    is_kai = is_of_backend(policy, Kai.name, "variables.batchScheduler")
    of_kai = f'({is_kai} && ({shared} || variables.fraction != "") ? 1 : 0)'
    yield "cards", f"variables.cardNamesOnce.map(n, {total}).sum() + {of_kai}"


def _named_cards(name: Cel, cards: Cel) -> Cel:
    return f'{{"name": dyn({name}), "cards": dyn({cards})}}'


def is_countable(policy: Policy) -> Cel:
    """Return whether the cards of the pod can be counted: not a share of several cards of KAI, which is a decimal."""
    if not limited(policy, "max_cards_per_pod"):
        return "true"
    is_kai = is_of_backend(policy, Kai.name, "variables.batchScheduler")
    return f"!({is_kai} && {text(KAI_SHARE_DEVICES)} in {OWN})"
