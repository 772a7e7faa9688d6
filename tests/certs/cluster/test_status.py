"""The report about certificates in a place, for all commands."""

import base64
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from certs.cluster.status import Place, as_text, report
from certs.inspection import Artifacts
from tests.support.tls.certificates import FRESH, NOW, OTHER


def reported(held: Artifacts, configuration: dict[str, Any] | None = None) -> dict[str, Any]:
    return report([Place("tls", held, ca_key_kept=True)], configuration, NOW, timedelta(days=30))


@pytest.mark.parametrize(
    ("held", "verifies", "matches"),
    [
        pytest.param(FRESH, True, True, id="in order"),
        pytest.param(replace(FRESH, ca_certificate=None), False, True, id="no CA"),
        pytest.param(replace(FRESH, ca_certificate=OTHER.ca_certificate), False, True, id="another CA"),
        pytest.param(replace(FRESH, certificate=None), False, False, id="no certificate"),
        pytest.param(replace(FRESH, key=OTHER.key), True, False, id="another key"),
    ],
)
def test_chain_and_key_are_distinguished(held: Artifacts, verifies: bool, matches: bool) -> None:
    (place,) = reported(held)["places"]
    assert (place["chainVerifies"], place["keyMatches"]) == (verifies, matches)


@pytest.mark.parametrize(
    ("held", "problems"),
    [
        pytest.param(FRESH, [], id="in order"),
        pytest.param(replace(FRESH, ca_key=None), [], id="the CA's key is elsewhere"),
        pytest.param(
            replace(FRESH, ca_key=OTHER.ca_key),
            ["tls: ca.key: Required value: must hold the private key of ca.crt; this is the key of another one"],
            id="the CA's key is another's",
        ),
        pytest.param(
            replace(FRESH, key=None), ["tls: tls.key: Required value: the private key of tls.crt"], id="no key"
        ),
    ],
)
def test_only_the_key_of_the_ca_may_be_absent(held: Artifacts, problems: list[str]) -> None:
    found = reported(held)
    assert (found["problems"], found["healthy"]) == (problems, not problems)


@pytest.mark.parametrize(
    ("webhooks", "days", "problem"),
    [
        pytest.param([], 30, "a webhook; its manifest has them", id="no webhook"),
        pytest.param([{"name": "a"}], 30, "cert-manager's cainjector puts it there", id="no caBundle"),
        pytest.param(None, 10_000, "cert-manager renews it; check its Certificate", id="expires soon"),
    ],
)
def test_cert_manager_is_named_where_it_keeps_the_ca_bundle(webhooks: Any, days: int, problem: str) -> None:
    """`certs register` refuses such a configuration."""
    trusted = [{"name": "a", "clientConfig": {"caBundle": base64.b64encode(FRESH.ca_certificate or b"").decode()}}]
    annotations = {"cert-manager.io/inject-ca-from": "placement-webhook/placement-webhook"}
    configuration = {
        "metadata": {"name": "web", "annotations": annotations},
        "webhooks": trusted if webhooks is None else webhooks,
    }
    found = report([Place("tls", replace(FRESH, ca_key=None), ca_key_kept=False)], configuration, NOW, timedelta(days))

    assert found["problems"]
    assert all(problem in each for each in found["problems"])
    assert "certs register" not in as_text(found, configuration)


def test_configuration_without_a_webhook_trusts_no_ca() -> None:
    assert reported(FRESH, {"metadata": {"name": "web"}})["problems"] == [
        "tls: MutatingWebhookConfiguration web: Required value: a webhook; `placement-webhook certs register` makes it"
    ]
