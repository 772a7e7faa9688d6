"""The pods that are sent to the webhook, by its configuration or without it."""

import pytest

from certs.registration import Target, manifest
from webhook.admission.registered_selection import Selection
from webhook.documents.field import InvalidInput
from webhook.serving.view.server_follower import _selection


def test_the_registered_selectors_count() -> None:
    configuration = manifest(Target())
    configuration["webhooks"][0]["namespaceSelector"] = {"matchLabels": {"placement": "on"}}

    assert _selection(configuration) == Selection.of({"namespaceSelector": {"matchLabels": {"placement": "on"}}})


@pytest.mark.parametrize(("given", "own"), [("", "placement-webhook"), ("own", "own")])
def test_without_a_configuration_the_shipped_selectors_count(
    monkeypatch: pytest.MonkeyPatch, given: str, own: str
) -> None:
    monkeypatch.setenv("POD_NAMESPACE", given)

    assert _selection(None) == Selection.shipped(own)


def test_a_configuration_without_a_webhook_for_pods_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="webhooks: Required value: must have pods"):
        _selection({"webhooks": [{"name": "another"}]})
