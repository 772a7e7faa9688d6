"""The next step by what is in the Secret and the caBundles, and what it writes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography import x509

from certs import pem
from certs.controller.reconciler import Memory
from certs.inspection import Artifacts, read_key_material
from certs.names import server_names
from certs.pki import CA_VALIDITY, KeyPair, issue_ca, issue_server
from certs.plan import MOST_CAS, Action, Observed, Request, Rules, Step, carried_out, fulfils, plan
from tests.support.tls.certificates import NOW

RULES = Rules(server_names(["localhost"]))
LONG = timedelta(days=1)
FIRST, SECOND = issue_ca(now=NOW - timedelta(seconds=9)), issue_ca(now=NOW)


def secret(*cas: KeyPair, signer: KeyPair, issuer: KeyPair, names: str = "localhost") -> Artifacts:
    """Return a Secret that trusts `cas`, with the key of `signer` and a pair that `issuer` has issued."""
    server = issue_server(issuer, dns_names=names.split(), now=NOW)
    return Artifacts(b"".join(ca.certificate for ca in cas), signer.key, server.certificate, server.key)


def aged(days: int) -> Artifacts:
    """Return a Secret whose CA and pair were issued that many days ago."""
    now = NOW - timedelta(days=days)
    ca = issue_ca(now=now)
    server = issue_server(ca, dns_names=["localhost"], now=now)
    return Artifacts(ca.certificate, ca.key, server.certificate, server.key)


STEADY = secret(FIRST, signer=FIRST, issuer=FIRST)
ADDED = secret(SECOND, FIRST, signer=SECOND, issuer=FIRST)
SWITCHED = secret(SECOND, FIRST, signer=SECOND, issuer=SECOND)


def certificates_of(*cas: KeyPair) -> tuple[x509.Certificate, ...]:
    return tuple(each for ca in cas for each in pem.certificates(ca.certificate, "ca.crt"))


def planned(
    held: Artifacts,
    *bundles: Iterable[KeyPair],
    trusted_for: timedelta = LONG,
    unchanged_for: timedelta = LONG,
    requested: Request | None = None,
) -> Step:
    trusted = tuple(certificates_of(*bundle) for bundle in bundles)
    common = set.intersection(*map(set, trusted)) if trusted else set()
    seen = Observed(held, trusted, dict.fromkeys(common, trusted_for), unchanged_for, requested)
    return plan(seen, RULES, NOW)


@pytest.mark.parametrize(
    ("held", "action"),
    [
        pytest.param(Artifacts(), Action.ADD_NEXT_CA, id="no Secret"),
        pytest.param(STEADY, Action.KEEP, id="one CA"),
        pytest.param(ADDED, Action.SWITCH_TO_NEXT_CA, id="the next CA is added"),
        pytest.param(SWITCHED, Action.DROP_OLD_CA, id="the next CA is in use"),
        pytest.param(replace(STEADY, ca_key=None), Action.ADD_NEXT_CA, id="certs register kept no CA key"),
        pytest.param(replace(STEADY, ca_key=SECOND.key), Action.ADD_NEXT_CA, id="the key of another CA"),
        pytest.param(replace(STEADY, ca_key=STEADY.key), Action.ADD_NEXT_CA, id="the server's key as the CA's"),
        pytest.param(replace(ADDED, ca_key=b"?"), Action.ADD_NEXT_CA, id="the next CA's key is unreadable"),
        pytest.param(replace(STEADY, certificate=None), Action.ISSUE_SERVING, id="no tls.crt"),
        pytest.param(replace(STEADY, key=SWITCHED.key), Action.ISSUE_SERVING, id="another server's key"),
        pytest.param(replace(SWITCHED, certificate=b"?"), Action.SWITCH_TO_NEXT_CA, id="damaged in a rotation"),
        pytest.param(replace(STEADY, ca_certificate=b"?"), Action.ADD_NEXT_CA, id="ca.crt is no PEM"),
        pytest.param(
            secret(FIRST, signer=FIRST, issuer=FIRST, names="other"), Action.ISSUE_SERVING, id="for another name"
        ),
        pytest.param(
            secret(FIRST, signer=FIRST, issuer=FIRST, names="a localhost"), Action.KEEP, id="for one name more"
        ),
        pytest.param(aged(240), Action.KEEP, id="240 of 365 days old"),
        pytest.param(aged(250), Action.ISSUE_SERVING, id="250 of 365 days old"),
        pytest.param(aged(2400), Action.ISSUE_SERVING, id="expired"),
        pytest.param(aged(2500), Action.ADD_NEXT_CA, id="CA in its last third"),
        pytest.param(aged(3700), Action.ADD_NEXT_CA, id="CA expired"),
    ],
)
def test_action(held: Artifacts, action: Action) -> None:
    step = planned(held)
    assert step.action is action
    assert step.is_due is (action is not Action.KEEP)


@pytest.mark.parametrize(
    ("held", "rotation", "action"),
    [
        (STEADY, Request.SERVING, Action.ISSUE_SERVING),
        (STEADY, Request.CA, Action.ADD_NEXT_CA),
        (replace(STEADY, certificate=None), Request.CA, Action.ADD_NEXT_CA),
        (ADDED, Request.SERVING, Action.SWITCH_TO_NEXT_CA),
        (ADDED, Request.CA, Action.SWITCH_TO_NEXT_CA),
        (SWITCHED, Request.SERVING, Action.ISSUE_SERVING),
        (SWITCHED, Request.CA, Action.ADD_NEXT_CA),
    ],
)
def test_a_requested_rotation_comes_after_one_that_is_not_complete(
    held: Artifacts, rotation: Request, action: Action
) -> None:
    step = planned(held, (FIRST, SECOND), requested=rotation)
    assert step.action is action
    is_done = rotation is Request.SERVING or action is Action.ADD_NEXT_CA
    assert fulfils(step, rotation) is is_done


def test_nothing_is_to_do_until_the_first_of_ca_and_certificate_is_due() -> None:
    """A third of a life of 30 days is left then. The certificate ends with its CA, and is due later."""
    ca = issue_ca(now=NOW - timedelta(days=15), validity=timedelta(days=30))
    server = issue_server(ca, dns_names=["localhost"], now=NOW)

    step = planned(Artifacts(ca.certificate, ca.key, server.certificate, server.key))

    assert (step.action, step.wait) == (Action.KEEP, timedelta(days=5))


def test_a_new_certificate_waits_until_every_bundle_has_had_its_ca_for_a_while() -> None:
    both = (SECOND, FIRST)
    assert planned(ADDED, both, (FIRST,)).wait == RULES.trust_wait
    assert planned(ADDED, both, both, trusted_for=timedelta(seconds=5)).wait == timedelta(seconds=10)
    assert planned(ADDED, both, both, trusted_for=RULES.trust_wait).is_due
    assert planned(ADDED).is_due, "no API server calls a webhook"


def test_the_old_ca_stays_until_no_replica_serves_it() -> None:
    both = (SECOND, FIRST)
    waiting = planned(SWITCHED, both, unchanged_for=timedelta(minutes=5))
    assert (waiting.wait, set(waiting.ca_bundle)) == (timedelta(minutes=10), {*certificates_of(*both)})
    assert planned(SWITCHED, both).ca_bundle == certificates_of(SECOND)


@pytest.mark.parametrize("held", [STEADY, ADDED, SWITCHED, Artifacts()])
def test_bundles_get_the_cas_of_the_secret_and_keep_theirs(held: Artifacts) -> None:
    other = issue_ca(now=NOW - timedelta(days=2))
    expired = issue_ca(now=NOW - timedelta(days=4000))
    step = planned(held, (other, expired), (), unchanged_for=timedelta(0))
    assert set(step.ca_bundle) == {*read_key_material(held, NOW).cas, *certificates_of(other)}


@pytest.mark.parametrize("in_bundle", [list, reversed])
def test_a_bundle_is_bounded_and_keeps_the_cas_in_use_and_the_last_to_be_issued(
    in_bundle: Callable[[Sequence[KeyPair]], Iterable[KeyPair]],
) -> None:
    # Each ends before the older ones, as a CA of `certs register` ends before one of the controller.
    others = [
        issue_ca(now=NOW + timedelta(seconds=each), validity=CA_VALIDITY - timedelta(days=each))
        for each in range(MOST_CAS)
    ]
    step = planned(ADDED, in_bundle(others))
    assert len(step.ca_bundle) == MOST_CAS
    assert {*certificates_of(FIRST, SECOND)} <= set(step.ca_bundle)
    assert set(step.ca_bundle) == {*certificates_of(FIRST, SECOND, *others[2:])}


def test_the_secret_keeps_every_ca_that_may_be_served() -> None:
    step = planned(STEADY, (FIRST,), requested=Request.CA)
    added = carried_out(step, STEADY, RULES, NOW)
    assert (added.certificate, added.key) == (STEADY.certificate, STEADY.key)
    assert read_key_material(added, NOW).cas[1:] == certificates_of(FIRST)

    switched = carried_out(planned(ADDED), ADDED, RULES, NOW)
    assert read_key_material(switched, NOW).cas == certificates_of(SECOND, FIRST)
    assert read_key_material(switched, NOW).issuer == certificates_of(SECOND)[0]

    assert carried_out(planned(switched), switched, RULES, NOW).ca_certificate == SECOND.certificate


def test_a_lost_secret_gets_the_cas_that_the_bundles_still_trust() -> None:
    made = carried_out(planned(Artifacts(), (FIRST,)), Artifacts(), RULES, NOW)
    keys = read_key_material(made, NOW)
    assert keys.cas[1:] == certificates_of(FIRST)
    assert (keys.signer, made.certificate) == (keys.cas[0], None)


def test_a_renewed_certificate_keeps_the_names_that_the_present_one_has() -> None:
    held = secret(FIRST, signer=FIRST, issuer=FIRST, names="a localhost")
    renewed = carried_out(planned(held, requested=Request.SERVING), held, RULES, NOW)
    assert str(read_key_material(renewed, NOW).pair.names) == "localhost, a"


def test_lifetimes_are_those_of_the_rules() -> None:
    rules = replace(RULES, ca_validity=timedelta(days=3), server_validity=timedelta(days=2))
    held = Artifacts()
    for _ in range(2):
        held = carried_out(plan(Observed(held), rules, NOW), held, rules, NOW)
    keys = read_key_material(held, NOW)
    assert keys.signer
    assert keys.pair.server
    assert keys.signer.not_valid_after_utc - NOW == timedelta(days=3)
    assert keys.pair.server.not_valid_after_utc - NOW == timedelta(days=2)
    assert plan(Observed(held), rules, NOW).wait == timedelta(days=2) * 2 / 3


def test_times_begin_anew_with_each_change() -> None:
    memory, both, one = Memory(), (certificates_of(FIRST, SECOND),), (certificates_of(FIRST),)
    first, second = certificates_of(FIRST, SECOND)
    assert memory.trusted_for(both, 10) == {first: timedelta(0), second: timedelta(0)}
    assert memory.trusted_for(one, 12) == {first: timedelta(seconds=2)}
    assert memory.trusted_for(both, 15) == {first: timedelta(seconds=5), second: timedelta(0)}
    assert memory.trusted_for((*both, ()), 16) == {}
    assert memory.unchanged_for("uid/1", 10) == timedelta(0)
    assert memory.unchanged_for("uid/1", 12) == timedelta(seconds=2)
    assert memory.unchanged_for("uid/2", 13) == timedelta(0)


@pytest.mark.parametrize("bundles", [(), ((),)], ids=["no webhook", "a webhook without a CA"])
def test_the_first_secret_is_written_whole(bundles: tuple[tuple[KeyPair, ...], ...]) -> None:
    """A kubelet that finds only a part of it mounts the volume up to two minutes later."""
    first = carried_out(planned(Artifacts(), *bundles), Artifacts(), RULES, NOW)

    assert None not in (first.ca_certificate, first.ca_key, first.certificate, first.key)
    cas = tuple(pem.certificates(first.ca_certificate or b"", "ca.crt"))
    assert plan(Observed(first, (cas,), {cas[0]: LONG}, LONG), RULES, NOW).action is Action.KEEP


def test_a_certificate_waits_where_api_servers_trust_another_ca() -> None:
    """Replicas serve the pair of the Secret that was deleted."""
    after = carried_out(planned(Artifacts(), (FIRST,)), Artifacts(), RULES, NOW)
    assert (after.certificate, after.key) == (None, None)


def test_a_ca_that_is_not_valid_yet_signs_nothing() -> None:
    """The clock of the controller before was ahead."""
    ca = issue_ca(now=NOW + timedelta(days=1))
    assert read_key_material(Artifacts(ca.certificate, ca.key), NOW).signer is None
    assert read_key_material(Artifacts(ca.certificate, ca.key), NOW + timedelta(days=1)).signer is not None


def test_the_next_ca_has_the_lifetime_of_the_rules_beside_one_that_is_in_use() -> None:
    rules = replace(RULES, ca_validity=timedelta(days=400))
    added = carried_out(planned(STEADY, (FIRST,), requested=Request.CA), STEADY, rules, NOW)
    signer = read_key_material(added, NOW).signer
    assert signer
    assert signer.not_valid_after_utc == NOW + timedelta(days=400)


def test_the_ca_in_use_stays_in_the_secret_however_many_are_newer() -> None:
    others = [issue_ca(now=NOW + timedelta(seconds=each)) for each in range(MOST_CAS)]
    added = carried_out(planned(STEADY, others, requested=Request.CA), STEADY, RULES, NOW)
    keys = read_key_material(added, NOW)
    assert len(keys.cas) == MOST_CAS
    assert keys.issuer == certificates_of(FIRST)[0]


def test_the_signing_ca_comes_first_and_an_expired_one_goes_when_a_certificate_is_issued() -> None:
    expired = issue_ca(now=NOW - timedelta(days=4000))
    held = secret(FIRST, expired, SECOND, signer=SECOND, issuer=FIRST)
    switched = carried_out(planned(held), held, RULES, NOW)
    assert switched.ca_certificate == SECOND.certificate + FIRST.certificate


def test_names_of_a_pair_that_cannot_be_served_are_not_kept() -> None:
    held = replace(secret(FIRST, signer=FIRST, issuer=FIRST, names="a localhost"), key=SWITCHED.key)
    renewed = carried_out(planned(held), held, RULES, NOW)
    assert str(read_key_material(renewed, NOW).pair.names) == "localhost"


def test_a_ca_whose_time_of_trust_is_not_known_is_waited_for() -> None:
    """As long as if API servers had begun to trust it now."""
    bundles = (certificates_of(SECOND, FIRST),)
    nothing: dict[x509.Certificate, timedelta] = {}
    waits = {plan(Observed(ADDED, bundles, known), RULES, NOW).wait for known in (None, nothing)}
    assert waits == {RULES.trust_wait}


@pytest.mark.parametrize(("younger", "action"), [(0, Action.ADD_NEXT_CA), (1, Action.KEEP)])
def test_the_ca_is_due_in_the_second_in_which_a_third_of_its_time_is_left(younger: int, action: Action) -> None:
    begin = NOW - timedelta(days=20) + timedelta(seconds=younger)
    ca = issue_ca(now=begin, validity=timedelta(days=30))
    server = issue_server(ca, dns_names=["localhost"], now=NOW)
    step = planned(Artifacts(ca.certificate, ca.key, server.certificate, server.key))
    assert (step.action, step.wait) == (action, timedelta(seconds=younger))


@pytest.mark.parametrize(
    ("held", "requested", "reasons"),
    [
        (Artifacts(), None, ["there is no CA yet"]),
        (replace(STEADY, ca_certificate=b"?"), None, ["there is no CA yet"]),
        (replace(STEADY, ca_key=SECOND.key), None, ["ca.key has the key of no valid CA"]),
        (
            aged(2500),
            Request.CA,
            ["the CA has 1150 days left, a third of its time", "a rotation of the CA was requested"],
        ),
        (ADDED, None, ["tls.crt is issued by the old CA"]),
        (ADDED, Request.SERVING, ["tls.crt is issued by the old CA", "a rotation was requested"]),
        (replace(STEADY, certificate=None), Request.SERVING, ["tls.crt: Required value: a certificate in PEM"]),
        (SWITCHED, None, ["no replica serves a certificate of another CA any more"]),
        (STEADY, None, ["everything is in order"]),
    ],
)
def test_a_step_has_all_of_its_reasons(held: Artifacts, requested: Request | None, reasons: list[str]) -> None:
    assert planned(held, requested=requested).reasons == tuple(reasons)
