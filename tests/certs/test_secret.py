"""Which Secrets the certs controller may write: its own ones, and those that `certs register` has applied."""

import base64
from typing import Any

import pytest

from certs.inspection import CA_CERTIFICATE, CERTIFICATE
from certs.registration import FIELD_MANAGER, Target
from certs.secret import OWNER, OWNER_LABEL, check_owned, new_secret, secret_patch
from tests.support.tls.certificates import FRESH
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


@pytest.mark.parametrize("file", [CA_CERTIFICATE, CERTIFICATE])
def test_a_certificate_of_another_ca_is_kept_also_after_certs_register_has_written_it(file: str) -> None:
    """`certs register --dir` writes the certificates of any CA, which a rotation would replace."""
    found = secret((FIELD_MANAGER, "Apply"))
    foreign = next(pair for pair in pairs() if pair.name == "self-signed-of-req-x509")
    found["data"][file] = base64.b64encode(foreign.files["tls.crt"].encode()).decode()

    with pytest.raises(InvalidInput, match=r"^Secret: Forbidden: has a certificate that CN=.* has issued; delete it"):
        check_owned(found, "Secret")


@pytest.mark.parametrize("fulfilled", [True, False])
def test_a_write_is_refused_if_the_secret_has_changed_since_it_was_read(fulfilled: bool) -> None:
    patch = secret_patch(secret(resourceVersion="7"), FRESH, fulfilled=fulfilled)
    assert patch["metadata"]["resourceVersion"] == "7"
