"""The webhooks are called for what the policy needs: rules and matchConditions are those that it generates."""

from collections.abc import Iterator

from certs.registration import manifest
from certs.webhook_rules import PODS, Coverage
from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, named, warning
from webhook.doctor.installation import Installation, JsonObject, listed
from webhook.doctor.source import Source


@check(
    "match-conditions",
    "The rules or matchConditions of a webhook differ from those that the policy generates",
    "`placement-webhook certs register --policy FILE`, or apply `placement-webhook certs manifest --policy FILE`",
    Source.CONFIGURATIONS,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each webhook of the manifest whose conditions or rules in the cluster are others."""
    coverage = Coverage.of(installation.policies)
    wanted = {each["name"]: each for each in manifest(installation.target, coverage)["webhooks"]}
    for index, webhook in enumerate(installation.webhooks):
        meant = wanted.get(str(webhook.get("name")))
        if meant is None:
            continue
        where = f"{installation.place}: webhooks[{index}]"
        if changed := _changed_conditions(webhook, meant):
            remedy = _remedy(installation, index, meant, "matchConditions")
            yield warning(f"{where}.matchConditions", f"not as the policy generates them: {changed}", remedy)
        if missing := sorted(_covered(meant) - _covered(webhook)):
            what = f"lack what the policy covers: {named('/'.join(each) for each in missing)}"
            yield warning(f"{where}.rules", what, _remedy(installation, index, meant, "rules"))


def _remedy(installation: Installation, index: int, wanted: JsonObject, name: str) -> str:
    """Return how the field `name` of a webhook gets the value of `wanted`: that of pods is the same for each policy."""
    if wanted["name"] == PODS:
        return commands.patched(installation, {f"/webhooks/{index}/{name}": wanted[name]})
    stored = installation.stored
    where = f"; FILE is in ConfigMap {installation.target.namespace}/{stored.name}" if stored is not None else ""
    return f"{commands.covering(installation)}{where}"


def _changed_conditions(webhook: JsonObject, wanted: JsonObject) -> str:
    held, meant = ({each.get("name"): each.get("expression") for each in _conditions(one)} for one in (webhook, wanted))
    parts = {
        "missing": [name for name in meant if name not in held],
        "added": [name for name in held if name not in meant],
        "changed": [name for name in held if name in meant and held[name] != meant[name]],
    }
    return "; ".join(f"{word} {named(map(str, names), 3)}" for word, names in parts.items() if names)


def _conditions(webhook: JsonObject) -> list[JsonObject]:
    return listed(webhook, "matchConditions")


def _covered(webhook: JsonObject) -> set[tuple[str, str, str]]:
    """Return the operations, groups and resources that the rules have."""
    return {
        (str(operation), str(group), str(resource))
        for rule in listed(webhook, "rules")
        for operation in rule.get("operations") or ()
        for group in rule.get("apiGroups") or ()
        for resource in rule.get("resources") or ()
    }
