"""The pods that the API server sends to a webhook, by its registration."""

import pytest

from certs.registration import Target, manifest
from tests.admission.shipped_selection import selection_of, webhook_of_manifest
from webhook.admission.registered_selection import Selection, selection_of_configuration
from webhook.documents.field import InvalidInput

SHIPPED = Selection.shipped("placement-webhook")


def test_the_selection_of_the_manifest_is_the_shipped_one() -> None:
    assert selection_of() == SHIPPED


def test_a_malformed_selector_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="namespaceSelector"):
        selection_of(namespaceSelector=["placement"])


def test_the_selection_of_a_configuration_is_that_of_its_webhook_for_pods() -> None:
    assert selection_of_configuration(manifest(Target())) == SHIPPED
    assert selection_of_configuration({"webhooks": [{"name": "another"}]}) is None


def test_an_error_in_a_configuration_names_it() -> None:
    webhook = webhook_of_manifest(objectSelector=["placement"])

    with pytest.raises(InvalidInput, match="MutatingWebhookConfiguration own: objectSelector"):
        selection_of_configuration({"metadata": {"name": "own"}, "webhooks": [webhook]})
