"""The action for certificates, by existing files and time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from certs.inspection import Artifacts, inspect
from certs.names import server_names
from certs.plan import Action, Step, plan_at_once
from tests.support.tls import certificates
from tests.support.tls.certificates import AGED, ALL_EXPIRED, EXPIRED, FRESH, NOW, OTHER

ISSUE, RENEW, KEEP, REFUSE = Action.ISSUE, Action.RENEW, Action.KEEP, Action.REFUSE
LOCALHOST = server_names(["localhost"])


def planned(held: Artifacts, *, ca_key_kept: bool = True, replacing: bool = False, names: str = "localhost") -> Step:
    wanted = server_names(names.split())
    return plan_at_once(inspect(held, NOW), NOW, names=wanted, replacing=replacing, ca_key_kept=ca_key_kept)


@pytest.mark.parametrize(
    ("held", "action"),
    [
        pytest.param(Artifacts(), ISSUE, id="nothing there"),
        pytest.param(FRESH, KEEP, id="all in order"),
        pytest.param(replace(FRESH, ca_key=None), KEEP, id="in order, the CA's key elsewhere"),
        pytest.param(replace(FRESH, ca_key=OTHER.ca_key), KEEP, id="in order, the CA's key another's"),
        pytest.param(replace(FRESH, ca_key=b"?"), KEEP, id="in order, the CA's key unreadable"),
        pytest.param(AGED, RENEW, id="less than a third of its time left"),
        pytest.param(EXPIRED, RENEW, id="expired, its CA not"),
        pytest.param(replace(FRESH, certificate=None), RENEW, id="no server certificate"),
        pytest.param(replace(FRESH, key=None), RENEW, id="no server key"),
        pytest.param(replace(FRESH, key=OTHER.key), RENEW, id="server key of another certificate"),
        pytest.param(replace(AGED, ca_key=None), REFUSE, id="due, no CA key"),
        pytest.param(replace(AGED, ca_key=OTHER.ca_key), REFUSE, id="due, the CA's key another's"),
        pytest.param(
            replace(AGED, ca_key=certificates.encrypted(AGED.ca_key)), REFUSE, id="due, the CA's key encrypted"
        ),
        pytest.param(replace(AGED, ca_key=b"?"), REFUSE, id="due, the CA's key unreadable"),
        pytest.param(ALL_EXPIRED, REFUSE, id="CA expired"),
        pytest.param(certificates.FROM_TOMORROW, REFUSE, id="from a clock that was ahead"),
        pytest.param(certificates.ENCRYPTED_KEY, REFUSE, id="server key encrypted"),
        pytest.param(replace(FRESH, ca_certificate=OTHER.ca_certificate), REFUSE, id="issued by another CA"),
        pytest.param(replace(FRESH, ca_certificate=None), REFUSE, id="no CA"),
        pytest.param(
            Artifacts(certificate=FRESH.certificate, key=FRESH.key), REFUSE, id="somebody's tls.crt and tls.key"
        ),
        pytest.param(replace(FRESH, certificate=b"?"), REFUSE, id="tls.crt is no PEM"),
        pytest.param(replace(FRESH, ca_certificate=b"?"), REFUSE, id="ca.crt is no PEM"),
    ],
)
def test_action(held: Artifacts, action: Action) -> None:
    todo = planned(held)
    assert todo.action is action
    assert bool(todo.obstacles) is (action is REFUSE)


@pytest.mark.parametrize("held", [AGED, EXPIRED, ALL_EXPIRED, replace(FRESH, key=None)])
def test_without_a_ca_key_a_due_certificate_is_replaced_with_its_ca(held: Artifacts) -> None:
    assert planned(replace(held, ca_key=None), ca_key_kept=False).action is ISSUE


def test_without_a_ca_key_valid_certificates_stay_and_foreign_ones_are_refused() -> None:
    assert planned(replace(FRESH, ca_key=None), ca_key_kept=False).action is KEEP
    assert planned(replace(FRESH, ca_certificate=None), ca_key_kept=False).action is REFUSE


@pytest.mark.parametrize(
    "held", [FRESH, ALL_EXPIRED, replace(FRESH, certificate=b"?"), replace(FRESH, ca_certificate=None)]
)
def test_replacement_is_issued_in_any_case(held: Artifacts) -> None:
    assert planned(held, replacing=True).action is ISSUE


@pytest.mark.parametrize(
    ("names", "action"), [("a b", KEEP), ("b a", KEEP), ("a", RENEW), ("a b c", RENEW), ("a c", RENEW)]
)
def test_other_names_call_for_a_new_certificate(names: str, action: Action) -> None:
    assert planned(certificates.make_artifacts(dns_names=("a", "b")), names=names).action is action


def test_names_are_left_as_they_are_where_none_are_asked_for() -> None:
    assert plan_at_once(inspect(FRESH, NOW), NOW).action is KEEP


def test_renewal_is_due_when_a_third_of_the_time_is_left() -> None:
    """The five minutes by which a certificate is backdated are no part of its time."""
    found = inspect(FRESH, NOW)
    assert found.server
    at = found.server.not_valid_after_utc - timedelta(days=365) / 3
    assert plan_at_once(found, at - timedelta(seconds=1)).action is KEEP
    assert plan_at_once(found, at).action is RENEW


def test_one_that_ends_this_second_has_expired_and_no_days_left() -> None:
    found = inspect(FRESH, NOW)
    assert found.server
    at = found.server.not_valid_after_utc
    assert len(plan_at_once(inspect(FRESH, at), at).reasons) == 1


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        (AGED, "tls.crt has 120 days left, less than a third of its time"),
        (EXPIRED, f'tls.crt: Invalid value: "{NOW:%Y-%m-%d}"; expired on that day; issue a new one'),
        (replace(FRESH, key=OTHER.key), "tls.key: Required value: must hold the private key of tls.crt"),
        (certificates.make_artifacts(dns_names=("a",)), "tls.crt is for a, not for localhost"),
    ],
)
def test_reason_is_reported(held: Artifacts, reason: str) -> None:
    assert reason in planned(held).reasons[0]
