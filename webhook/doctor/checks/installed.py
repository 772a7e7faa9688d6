"""The webhook configuration exists and has the webhooks of its manifest."""

from collections.abc import Iterator

from certs.registration import manifest, missing_webhooks
from certs.webhook_rules import PODS
from webhook.doctor import commands
from webhook.doctor.arguments import has_flag
from webhook.doctor.certificate_owner import controller_of
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, named, warning
from webhook.doctor.installation import Installation, name_of, webhooks_of
from webhook.doctor.matching import is_called_for_pods
from webhook.doctor.source import Source


@check(
    "installed",
    "There is no webhook configuration of the name, it is not called for pods, or it lacks a webhook",
    "`placement-webhook certs register`; or name it with `--configuration`",
    Source.CONFIGURATIONS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault if API servers do not call the webhook at all, or not for all objects."""
    if not installation.knows(Source.CONFIGURATIONS):
        return
    if installation.configuration is None:
        known = [name_of(each) for each in installation.of(Source.CONFIGURATIONS)]
        own = [name for name, each in zip(known, installation.of(Source.CONFIGURATIONS), strict=True) if _is_ours(each)]
        hint = f"`--configuration={own[0]}` names the one that exists" if own else _created(installation)
        what = f"does not exist, so no pod is sent to the webhook; the cluster has {named(known, 5) or 'none'}"
        yield error(installation.place, what, hint)
        return
    if not any(map(is_called_for_pods, installation.webhooks)):
        what = "no rule has the creation of pods"
        yield error(f"{installation.place}: webhooks", what, _with_rules(installation))
    missing = missing_webhooks(installation.configuration, manifest(installation.target))
    if missing:
        what = f"lacks {named(str(each['name']) for each in missing)}: it was made from an earlier manifest"
        yield warning(f"{installation.place}: webhooks", what, commands.registered_again(installation))


def _created(installation: Installation) -> str:
    """Return how a configuration that does not exist is made: by the certs controller if it is to."""
    if has_flag(controller_of(installation) or {}, "--create-configuration"):
        what = "the certs controller creates it when API servers can trust the server"
        return f"{what}: {commands.logs(installation)} has what it waits for"
    return commands.registered_again(installation)


def _with_rules(installation: Installation) -> str:
    """Return how a configuration without rules for pods gets them."""
    own = next((i for i, each in enumerate(installation.webhooks) if each.get("name") == PODS), None)
    if own is None:
        deleted = commands.command(
            "kubectl", "delete", "mutatingwebhookconfiguration", installation.target.configuration
        )
        return f"{deleted}, then {commands.registered_again(installation)}"
    rules = next(each["rules"] for each in manifest(installation.target)["webhooks"] if each["name"] == PODS)
    return f"{commands.patched(installation, {f'/webhooks/{own}/rules': rules})} adds it"


def _is_ours(configuration: dict[str, object]) -> bool:
    return any(".placement." in str(each.get("name")) for each in webhooks_of(configuration))
