"""The pods that the API server sends to a webhook, by its registration."""

from typing import Any

import pytest

from certs.registration import Target, manifest
from tests.admission.shipped_selection import selection_of, webhook_of_manifest
from webhook.admission.registered_selection import Selection, selection_of_configuration, webhook_for_pods
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


@pytest.mark.parametrize(
    ("namespace", "labels", "is_covered"),
    [
        ("team-a", {}, True),
        ("kube-system", {}, False),
        ("placement-webhook", {}, False),
        ("placement-webhook-certs", {}, False),
        ("placement-webhook-x", {}, True),
        # What the API server has labelled wins over the name that is asked for.
        ("team-a", {"kubernetes.io/metadata.name": "kube-system"}, False),
    ],
)
def test_the_shipped_selection_covers_all_but_three_namespaces(
    namespace: str, labels: dict[str, str], *, is_covered: bool
) -> None:
    assert SHIPPED.covers(namespace, labels) is is_covered


@pytest.mark.parametrize(
    ("labels", "is_selected"), [({"a": "b"}, True), ({"a": "c"}, False), ({}, False), (None, False), (1, False)]
)
def test_the_object_selector_reads_labels_of_any_form(labels: Any, *, is_selected: bool) -> None:
    pod = {"metadata": {"labels": labels}}

    assert selection_of(objectSelector={"matchLabels": {"a": "b"}}).selects(pod) is is_selected
    assert SHIPPED.selects(pod)
    assert SHIPPED.selects({})


def test_each_condition_is_held_and_those_that_cannot_be_evaluated_are_named() -> None:
    conditions = {
        "lab": "object.metadata.namespace == 'lab'",
        "created": "request.operation == 'CREATE' && !request.dryRun",
        "odd": "request.userInfo.username == 'x'",
    }
    expressions = [{"name": name, "expression": each} for name, each in conditions.items()]
    shipped = webhook_of_manifest()["matchConditions"]
    selection = selection_of(matchConditions=[*shipped, *expressions])

    assert selection.conditions == tuple(conditions.items())
    for namespace, holds in (("lab", True), ("other", False)):
        pod = {"metadata": {"namespace": namespace}}
        assert selection.meets_conditions(pod) is holds
        assert selection.undecided(pod) == ("odd",)


@pytest.mark.parametrize("webhooks", [None, {}, [], [1], [{"name": "x"}]])
def test_a_configuration_without_the_webhook_for_pods_has_no_selection(webhooks: Any) -> None:
    assert selection_of_configuration({"webhooks": webhooks}) is None
    assert webhook_for_pods({}) is None
