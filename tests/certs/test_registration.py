"""The webhook configuration: what is created, how caBundles are merged and patched, and where the API server calls."""

import base64
import copy
from typing import Any

import jsonpatch
import pytest

from certs import registration
from certs.cluster.register import merged_ca_bundle
from certs.inspection import Artifacts
from certs.pem import certificates
from certs.registration import Endpoint, Target
from tests.support.tls.certificates import ALL_EXPIRED, FRESH, NOW, OTHER, ca_of
from webhook.documents.field import InvalidInput

NEW, OLD, GONE = (ca_of(each).certificate for each in (FRESH, OTHER, ALL_EXPIRED))
UNREADABLE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def make_configuration(*bundles: bytes | None, url: str | None = None, **service: Any) -> dict[str, Any]:
    client = {"url": url} if url else {"service": {"name": "web", "namespace": "team", "path": "/mutate", **service}}
    webhooks = [
        {"name": f"{index}.example.com", "clientConfig": client | ({"caBundle": encoded(bundle)} if bundle else {})}
        for index, bundle in enumerate(bundles)
    ]
    return {"metadata": {"name": "web", "resourceVersion": "7"}, "webhooks": webhooks}


def encoded(bundle: bytes) -> str:
    return base64.b64encode(bundle).decode()


def test_manifest_takes_the_names_of_the_target() -> None:
    made = registration.manifest(Target("team", "tls", "web", "my-webhook"))
    webhook = made["webhooks"][0]
    assert made["metadata"]["name"] == "my-webhook"
    assert webhook["clientConfig"] == {"service": {"namespace": "team", "name": "web", "port": 443, "path": "/mutate"}}
    assert webhook["namespaceSelector"]["matchExpressions"][0]["values"] == ["kube-system", "team", "team-certs"]


def test_manifest_calls_a_url_in_place_of_the_service() -> None:
    made = registration.manifest(Target(url="https://10.0.0.1:8443/mutate"))
    assert made["webhooks"][0]["clientConfig"] == {"url": "https://10.0.0.1:8443/mutate"}


@pytest.mark.parametrize(
    ("others", "merged"),
    [
        pytest.param([], [NEW], id="first"),
        pytest.param([OLD], [NEW, OLD], id="the old CA stays beside the new"),
        pytest.param([NEW], [NEW], id="the same CA stands once"),
        pytest.param([OLD + NEW, OLD], [NEW, OLD], id="each CA of several bundles stands once"),
        pytest.param([GONE + OLD], [NEW, OLD], id="an expired CA goes"),
        pytest.param([b"\n"], [NEW], id="a placeholder counts as nothing"),
        pytest.param(
            [UNREADABLE + OLD],
            [NEW, OLD],
            id="what cannot be read goes",
        ),
    ],
)
def test_ca_bundles_are_merged(others: list[bytes], merged: list[bytes]) -> None:
    bundle = merged_ca_bundle(Artifacts(NEW), Artifacts(), make_configuration(*others), NOW)
    assert certificates(bundle, "caBundle") == [certificates(each, "CA")[0] for each in merged]


def test_patch_changes_the_ca_bundle_of_every_webhook_and_nothing_else() -> None:
    before = make_configuration(None, OLD)
    after = jsonpatch.apply_patch(copy.deepcopy(before), registration.ca_bundle_patch(before, NEW, None))
    assert after == make_configuration(NEW, NEW)


def test_patch_names_the_version_that_was_read() -> None:
    operations = registration.ca_bundle_patch(make_configuration(OLD), NEW, None)
    assert operations[0] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


def test_nothing_is_patched_where_all_is_there() -> None:
    assert registration.ca_bundle_patch(make_configuration(NEW, NEW), NEW, None) == []


@pytest.mark.parametrize("bundle", [NEW + OLD, OLD + NEW])
def test_a_ca_bundle_with_the_wanted_certificates_is_left_in_its_order(bundle: bytes) -> None:
    wanted = certificates(NEW + OLD, "CA")
    assert registration.mending_patch(make_configuration(bundle), wanted) == []


@pytest.mark.parametrize(
    "bundle",
    [
        pytest.param(None, id="none"),
        pytest.param(OLD, id="another CA"),
        pytest.param(NEW + OLD, id="one more CA"),
        pytest.param(UNREADABLE + NEW, id="an unreadable block before the CA"),
        pytest.param(NEW + UNREADABLE, id="an unreadable block behind the CA"),
    ],
)
def test_a_ca_bundle_that_is_not_the_wanted_certificates_alone_is_replaced(bundle: bytes | None) -> None:
    """An API server rejects the whole bundle for a block that it cannot read."""
    before = make_configuration(NEW, bundle)
    operations = registration.mending_patch(before, certificates(NEW, "CA"))
    assert jsonpatch.apply_patch(before, operations) == make_configuration(NEW, NEW)


def test_patch_puts_a_url_in_place_of_the_service() -> None:
    before = make_configuration(OLD)
    after = jsonpatch.apply_patch(copy.deepcopy(before), registration.ca_bundle_patch(before, NEW, "https://a/mutate"))
    assert after["webhooks"][0]["clientConfig"] == {"url": "https://a/mutate", "caBundle": encoded(NEW)}


@pytest.mark.parametrize(
    ("configuration", "endpoint"),
    [
        pytest.param(make_configuration(None), Endpoint("web.team.svc", 443, "web.team.svc"), id="Service"),
        pytest.param(
            make_configuration(None, port=8443), Endpoint("web.team.svc", 8443, "web.team.svc"), id="port of a Service"
        ),
        pytest.param(make_configuration(None, url="https://a.b/mutate"), Endpoint("a.b", 443, "a.b"), id="url"),
        pytest.param(
            make_configuration(None, url="https://127.0.0.1:8443/mutate"),
            Endpoint("127.0.0.1", 8443, "127.0.0.1"),
            id="url with a port",
        ),
        pytest.param(make_configuration(None, url="https://[::1]:1/"), Endpoint("::1", 1, "::1"), id="IPv6 url"),
        pytest.param(
            registration.manifest(Target()),
            Endpoint("placement-webhook.placement-webhook.svc", 443, "placement-webhook.placement-webhook.svc"),
            id="the manifest",
        ),
    ],
)
def test_endpoint_is_where_the_api_server_calls(configuration: dict[str, Any], endpoint: Endpoint) -> None:
    assert registration.endpoint_of(configuration) == endpoint


def test_endpoint_of_several_webhooks_is_that_of_the_first() -> None:
    configuration = make_configuration(None, url="https://first/mutate")
    configuration["webhooks"] += make_configuration(None, url="https://second/mutate")["webhooks"]
    assert registration.endpoint_of(configuration).host == "first"
    assert registration.endpoint_of(configuration, configuration["webhooks"][1]).host == "second"


@pytest.mark.parametrize(
    ("url", "names"),
    [
        (None, "web.team.svc, web.team.svc.cluster.local, web.team, web"),
        ("https://a.example.com:8443/mutate", "a.example.com"),
        ("https://10.0.0.1/mutate", "10.0.0.1"),
        ("https://[fd00::1]/mutate", "fd00::1"),
    ],
)
def test_a_certificate_needs_the_names_of_the_service_or_the_host_of_the_url(url: str | None, names: str) -> None:
    target = Target("team", service="web", url=url)
    called = registration.endpoint_of(registration.manifest(target))
    assert str(registration.names_to_serve(target, called)) == names


@pytest.mark.parametrize("url", ["http://a/mutate", "a:443", "https://", "https://a:x/", "https://[::1/"])
def test_a_bad_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"must be https://HOST\[:PORT\]/PATH"):
        registration.endpoint_of(make_configuration(None, url=url))


@pytest.mark.parametrize("configuration", [{"metadata": {"name": "web"}}, {"webhooks": [{"clientConfig": {}}]}])
def test_a_configuration_without_a_webhook_is_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="must have a webhook"):
        registration.endpoint_of(configuration)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("a.b:65535", "a.b", 65535), ("127.0.0.1:1", "127.0.0.1", 1), ("[::1]:8443", "::1", 8443)],
)
def test_endpoint_of_the_command_line(text: str, host: str, port: int) -> None:
    assert registration.parse_endpoint(text, "name") == Endpoint(host, port, "name")


@pytest.mark.parametrize("text", ["a", "a:", ":1", "a:0", "a:65536", "a:b", "a:１"])
def test_a_bad_endpoint_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--endpoint: Invalid value: .*; must be HOST:PORT"):
        registration.parse_endpoint(text, "name")


def test_a_ca_bundle_that_cert_manager_keeps_is_left_to_it() -> None:
    configuration = make_configuration(OLD)
    configuration["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": "team/tls"}
    with pytest.raises(InvalidInput, match="cert-manager keeps this caBundle"):
        registration.check_not_injected(configuration)


@pytest.mark.parametrize(
    ("changed", "own"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"objectSelector": {}}, {}, id="the empty selector that the API server sets"),
        pytest.param({"failurePolicy": "Fail"}, {"failurePolicy": "Fail"}, id="the failure policy"),
        pytest.param({"namespaceSelector": {}}, {"namespaceSelector": {}}, id="a selector that was emptied"),
        pytest.param({"timeoutSeconds": 1}, {}, id="what an administrator does not set"),
    ],
)
def test_the_settings_of_an_administrator_are_those_that_differ_from_the_manifest(
    changed: dict[str, Any], own: dict[str, Any]
) -> None:
    configuration = registration.manifest(Target())
    webhook = configuration["webhooks"][0]
    webhook |= changed

    found = registration.own_settings(configuration, registration.manifest(Target()))

    assert found == ({webhook["name"]: own} if own else {})


@pytest.mark.parametrize("value", [5, "é", "YQ", "a===", None, ""])
def test_a_ca_bundle_that_is_not_base64_is_empty(value: object) -> None:
    configuration = {"webhooks": [{"clientConfig": {"caBundle": value}}, {"clientConfig": {"caBundle": "YQ=="}}, {}]}
    assert registration.ca_bundles(configuration) == [b"", b"a", b""]


def test_webhooks_are_added_also_where_that_for_pods_selects_no_namespaces() -> None:
    configuration = registration.manifest(Target())
    pods = configuration["webhooks"][0]
    del pods["namespaceSelector"]

    added = registration.missing_webhooks({"webhooks": [pods]}, registration.manifest(Target()))

    shipped = registration.manifest(Target())["webhooks"][1:]
    assert [each["namespaceSelector"] for each in added] == [each["namespaceSelector"] for each in shipped]
