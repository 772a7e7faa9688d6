"""The selection of the shipped registration."""

from typing import Any

from certs.registration import Target, manifest
from certs.webhook_rules import PODS
from webhook.admission.registered_selection import Selection


def webhook_of_manifest(**fields: Any) -> dict[str, Any]:
    """Return the webhook for pods of the shipped configuration, with other fields."""
    webhooks: list[dict[str, Any]] = manifest(Target())["webhooks"]
    return next(each for each in webhooks if each["name"] == PODS) | fields


def selection_of(**fields: Any) -> Selection:
    """Return the selection of the shipped webhook for pods, with other fields; its own conditions are known."""
    return Selection.of(webhook_of_manifest(**fields))
