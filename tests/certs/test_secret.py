"""Which Secrets the certs controller may write: its own ones, and those that `certs register` has applied."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from certs.inspection import CA_CERTIFICATE, CERTIFICATE, Artifacts
from certs.plan import Request
from certs.registration import FIELD_MANAGER, Target
from certs.secret import (
    OWNER,
    OWNER_LABEL,
    REQUEST_ANNOTATION,
    SETTINGS_ANNOTATION,
    artifacts_in,
    check_owned,
    is_owned,
    new_secret,
    recorded_settings,
    request_patch,
    requested_rotation,
    secret_patch,
    settings_patch,
)
from tests.support.servers.fake_configuration_api import merged
from tests.support.tls.certificates import FRESH, OTHER, with_malformed_extension
from tests.support.tls.pairs import pairs
from webhook.documents.field import InvalidInput


def secret(*managed: tuple[str, str], **metadata: Any) -> dict[str, Any]:
    """Return a Secret with certificates of this tool, whose fields these managers own by these operations."""
    found = new_secret(Target(), FRESH)
    fields = [{"manager": manager, "operation": operation} for manager, operation in managed]
    found["metadata"] = {"name": "placement-webhook-tls", "managedFields": fields, **metadata}
    return found


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(secret(labels={OWNER_LABEL: OWNER}), id="its own"),
        pytest.param(secret((FIELD_MANAGER, "Apply")), id="of certs register"),
        pytest.param(secret(("kubectl", "Update"), (FIELD_MANAGER, "Apply")), id="of certs register, then edited"),
    ],
)
def test_a_secret_of_this_tool_is_maintained(found: dict[str, Any]) -> None:
    check_owned(found, "Secret")


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(secret(), id="without an owner"),
        pytest.param(secret(("kubectl", "Apply")), id="applied by another client"),
        pytest.param(secret((FIELD_MANAGER, "Update")), id="of another client, with a request of certs rotate"),
        pytest.param(secret(labels={OWNER_LABEL: "another"}), id="with the label of another tool"),
    ],
)
def test_a_secret_of_another_client_is_refused(found: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"^Secret: Forbidden: is not of this controller; delete it"):
        check_owned(found, "Secret")


SELF_SIGNED = next(pair for pair in pairs() if pair.name == "self-signed-of-req-x509").files["tls.crt"].encode()


@pytest.mark.parametrize("file", [CA_CERTIFICATE, CERTIFICATE])
@pytest.mark.parametrize("foreign", [SELF_SIGNED, with_malformed_extension().certificate], ids=["named", "nameless"])
def test_a_certificate_of_another_ca_is_kept_also_after_certs_register_has_written_it(
    file: str, foreign: bytes
) -> None:
    """`certs register --dir` writes the certificates of any CA, which a rotation would replace."""
    found = secret((FIELD_MANAGER, "Apply"))
    found["data"][file] = base64.b64encode(foreign).decode()

    with pytest.raises(InvalidInput, match=r"^Secret: Forbidden: has a certificate that .* has issued; delete it"):
        check_owned(found, "Secret")


@pytest.mark.parametrize("fulfilled", [True, False])
def test_a_write_is_refused_if_the_secret_has_changed_since_it_was_read(fulfilled: bool) -> None:
    patch = secret_patch(secret(resourceVersion="7"), FRESH, fulfilled=fulfilled)
    assert patch["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize("labels", [{}, {OWNER_LABEL: OWNER}])
def test_a_secret_that_cert_manager_writes_is_refused_whatever_its_label(labels: dict[str, str]) -> None:
    found = secret((FIELD_MANAGER, "Apply"), labels=labels, annotations={"cert-manager.io/certificate-name": "tls"})
    with pytest.raises(InvalidInput, match=r"^Secret: Forbidden: cert-manager writes this Secret"):
        check_owned(found, "Secret")


@pytest.mark.parametrize(("fulfilled", "left"), [(True, None), (False, Request.CA)])
def test_a_write_takes_the_secret_over_and_removes_only_a_request_that_is_fulfilled(
    fulfilled: bool, left: Request | None
) -> None:
    annotations = {REQUEST_ANNOTATION: "ca", SETTINGS_ANNOTATION: '{"a": {}}', "mine": "yes"}
    before = secret((FIELD_MANAGER, "Apply"), labels={"mine": "yes"}, annotations=annotations, resourceVersion="7")

    after = merged(before, secret_patch(before, OTHER, fulfilled=fulfilled))

    assert artifacts_in(after) == OTHER
    assert requested_rotation(after) == left
    assert is_owned(after)
    assert (after["metadata"]["labels"]["mine"], after["metadata"]["annotations"]["mine"]) == ("yes", "yes")
    assert recorded_settings(after) == {"a": {}}


def test_a_request_and_settings_are_written_beside_other_annotations_on_the_version_that_was_read() -> None:
    before = secret(annotations={"mine": "yes"}, resourceVersion="7")
    settings = {"a": {"failurePolicy": "Fail"}}

    requested, recorded = request_patch(before, Request.SERVING), settings_patch(before, settings)

    assert [each["metadata"]["resourceVersion"] for each in (requested, recorded)] == ["7", "7"]
    both = merged(merged(before, requested), recorded)
    assert (requested_rotation(both), recorded_settings(both)) == (Request.SERVING, settings)
    none = merged(both, settings_patch(both, {}))
    assert none["metadata"]["annotations"] == {"mine": "yes", REQUEST_ANNOTATION: "serving"}


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (None, {}),
        ("", {}),
        ("{", {}),
        ("[1]", {}),
        ("null", {}),
        ('{"a": {"failurePolicy": "Fail"}, "b": 1, "c": [2]}', {"a": {"failurePolicy": "Fail"}}),
    ],
)
def test_recorded_settings_that_are_no_objects_are_passed_over(text: str | None, settings: dict[str, Any]) -> None:
    annotations = {} if text is None else {SETTINGS_ANNOTATION: text}
    assert recorded_settings(secret(annotations=annotations)) == settings


@pytest.mark.parametrize("value", ["SERVING", "both", ""])
def test_a_request_that_is_unknown_requests_nothing(value: str) -> None:
    assert requested_rotation(secret(annotations={REQUEST_ANNOTATION: value})) is None
    assert requested_rotation(None) is None


@pytest.mark.parametrize(("owned", "kind"), [(True, "Opaque"), (False, "kubernetes.io/tls")])
def test_a_new_secret_has_the_names_of_the_target_and_only_files_that_exist(owned: bool, kind: str) -> None:
    made = new_secret(Target("team", "tls"), replace(FRESH, ca_key=None), is_owned=owned)

    assert (made["apiVersion"], made["kind"], made["type"]) == ("v1", "Secret", kind)
    assert (made["metadata"]["namespace"], made["metadata"]["name"]) == ("team", "tls")
    assert is_owned(made) is owned
    assert sorted(made["data"]) == ["ca.crt", "tls.crt", "tls.key"]
    assert artifacts_in(json.loads(json.dumps(made))) == replace(FRESH, ca_key=None)


@pytest.mark.parametrize("value", ["?", "Y?Q==", "YQ", 5, None, [], ""])
def test_a_file_of_a_secret_that_is_not_base64_is_missing(value: object) -> None:
    assert artifacts_in({"data": {"ca.crt": value, "tls.key": "YQ=="}}) == Artifacts(key=b"a")
