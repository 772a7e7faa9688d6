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
    concatenated,
    matches_any,
    negated,
    stripped,
    text,
    texts,
    when,
)
from webhook.mutation.exported.variables import (
    DEFAULTS,
    NAMESPACE,
    OWN,
    Variable,
    by_limit,
    is_limited,
    is_of_any,
    is_of_backend,
    is_share_of_card,
)
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
    is_always = f"{value} in {texts(always)}"
    return by_limit(policy, field, lambda each: any_of((is_always, _is_one_of(value, field, each))), "true")


def _is_one_of(value: Cel, field: str, limits: NamespaceLimits) -> Cel:
    allowed: tuple[str, ...] = getattr(limits, field)
    if field == "queues":
        return matches_any(value, allowed)
    return f"{value} in {texts(allowed)}" if allowed else "false"


def allowed_text(policy: Policy, field: str) -> Cel:
    """Return the end of a denial: the values that the limits of the namespace allow for a `field`."""
    begin = f"; allowed {field.replace('_', ' ')}: "
    return by_limit(policy, field, lambda each: text(begin + (", ".join(getattr(each, field)) or "none")), '""')


def denials(policy: Policy) -> Iterator[Variable]:
    """Yield the texts of the limits of queues, schedulers and cards that the pod is beyond."""
    annotations = (("queue", policy.keys.queue), ("scheduler", policy.keys.scheduler))
    found = [
        concatenated(
            _denial(policy, f"metadata.annotations[{key}]", noun, f"variables.{noun}Text") for noun, key in annotations
        ),
        concatenated(_of_queue_fields(policy)),
        _denial(policy, "spec.schedulerName", "scheduler", 'object.spec.?schedulerName.orValue("")'),
    ]
    if is_limited(policy, "max_cards_per_pod"):
        yield from _cards(policy)
        most = by_limit(policy, "max_cards_per_pod", lambda each: str(each.max_cards_per_pod), "1000000000")
        detail = f'{NAMED}request " + string(variables.cards) + " cards in a pod; allowed: at most " + string({most})'
        found.append(when(f"variables.cards > {most}", f'["spec.containers: Forbidden: " + {detail}]'))
    yield "limitDenials", concatenated(found)


def _of_queue_fields(policy: Policy) -> Iterator[Cel]:
    """Yield the denials of queues that the pod names in the terms of its scheduler or of Kueue."""
    for name, backend in BACKENDS.items():
        is_it = "true" if backend is Kueue else is_of_backend(policy, name, "variables.batchScheduler")
        for holder, key in backend.queue_at if is_it != "false" else ():
            value = f'object.metadata.?{holder}[?{text(key)}].orValue("")'
            yield _denial(policy, f"metadata.{holder}[{key}]", "queue", value, f"{is_it} && ")


def _denial(policy: Policy, path: str, noun: str, value: Cel, where: Cel = "") -> Cel:
    """Return the denial of a queue or scheduler, the `value` at `path` of the pod, if the condition `where` holds."""
    denied = negated(_is_allowed(policy, f"{noun}s", value))
    if denied == "false":
        return "[]"
    shown = f'({value}.size() <= {_SHOWN} ? {value} : {value}.substring(0, {_SHOWN - 1}) + "…")'
    detail = f'{NAMED}use {noun} \\"" + {shown} + "\\"" + {allowed_text(policy, f"{noun}s")}'
    return when(f"{where}{denied}", f"[{text(f'{path}: Forbidden: ')} + {detail}]")


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
    if not is_limited(policy, "max_cards_per_pod"):
        return "true"
    is_kai = is_of_backend(policy, Kai.name, "variables.batchScheduler")
    return f"!({is_kai} && {text(KAI_SHARE_DEVICES)} in {OWN})"
