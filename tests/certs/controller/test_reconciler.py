"""A pass of the controller while other clients write the same objects, and one that fails."""

import asyncio
import base64
import copy
import json
from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from certs.cluster.client import configuration_named
from certs.cluster.probe import Called, Outcome
from certs.controller import reconciler
from certs.controller.admin import CREATE, MEND, RECORD, ControllerMetrics
from certs.controller.reconciler import Memory, Options, Pass, Reconciler
from certs.inspection import Artifacts
from certs.names import server_names
from certs.pem import certificates
from certs.pki import issue_ca
from certs.plan import Action, Rules, Step
from certs.registration import Endpoint, Target, ca_bundles, manifest, with_ca_bundle
from certs.secret import OWNER, REQUEST_ANNOTATION, SETTINGS_ANNOTATION, artifacts_in, new_secret, recorded_settings
from certs.webhook_rules import PODS, WORKLOADS, WebhookRules
from tests.support.admission import policy_with
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api
from tests.support.tls.certificates import FRESH, NOW, OTHER
from webhook.documents.field import InvalidInput
from webhook.policy.loader import built_in_policy
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ClientConfig

SECRET = "/api/v1/namespaces/placement-webhook/secrets/placement-webhook-tls"
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/00-placement-webhook"
NONE = timedelta(0)
OPTIONS = Options(
    Target(),
    ("00-placement-webhook",),
    Rules(server_names(["localhost"]), trust_wait=NONE, propagation_wait=NONE),
    "one",
)


def test_a_ca_is_trusted_from_when_every_bundle_has_it() -> None:
    memory, (old, new) = Memory(), (certificates(issue_ca(now=NOW).certificate, "ca.crt")[0] for _ in range(2))

    assert memory.trusted_for(((old,), (old, new)), 0.0) == {old: NONE}
    assert memory.trusted_for(((old, new), (old, new)), 10.0) == {old: timedelta(seconds=10), new: NONE}
    assert memory.trusted_for(((old,), (new,)), 20.0) == {}
    assert memory.trusted_for(((old,), (old,)), 30.0) == {old: NONE}


def test_a_secret_is_unchanged_from_its_last_version() -> None:
    memory = Memory()

    found = [memory.unchanged_for(*each).total_seconds() for each in (("1", 5.0), ("1", 9.0), ("2", 10.0), ("2", 12.0))]
    assert found == [0, 4, 0, 2]


def passes(
    api: FakeConfigurationApi, folder: Path, metrics: ControllerMetrics, options: Options = OPTIONS
) -> list[Pass]:
    """Make passes until one has nothing to do."""

    async def make() -> list[Pass]:
        reconciler, made = Reconciler(options, metrics), list[Pass]()
        async with ClientConfig(api.kubeconfig(folder)).connect() as server:
            while not made or made[-1].pause == NONE:
                made.append(await reconciler.reconcile(server))
        return made

    return asyncio.run(make())


@pytest.mark.parametrize("conflicts", [0, 1, 3])
def test_an_object_that_another_client_changes_meanwhile_is_read_again(tmp_path: Path, conflicts: int) -> None:
    metrics = ControllerMetrics()
    with fake_api() as api:
        api.objects[CONFIGURATION] = manifest(OPTIONS.target)
        api.objects[CONFIGURATION]["metadata"]["resourceVersion"] = "1"
        api.conflicts = conflicts
        made = passes(api, tmp_path, metrics)
    assert made[-1].step.action is Action.KEEP
    webhooks = api.objects[CONFIGURATION]["webhooks"]
    trusted = {base64.b64decode(webhook["clientConfig"]["caBundle"]) for webhook in webhooks}
    assert trusted == {artifacts_in(api.objects[SECRET]).ca_certificate}
    counted = metrics.actions.labels(MEND, "conflict")
    assert counted._value.get() == conflicts


def test_webhooks_are_added_only_to_the_configuration_that_the_controller_creates(tmp_path: Path) -> None:
    options = replace(OPTIONS, configurations=(*OPTIONS.configurations, "other"), creates=True)
    with fake_api() as api:
        for name in options.configurations:
            of_an_earlier_version = manifest(Target(configuration=name))
            del of_an_earlier_version["webhooks"][1:]
            of_an_earlier_version["metadata"]["resourceVersion"] = "1"
            api.objects[configuration_named(name).path] = of_an_earlier_version
        passes(api, tmp_path, ControllerMetrics(), options)

    own, other = (api.objects[configuration_named(name).path]["webhooks"] for name in options.configurations)
    assert [each["name"] for each in own] == [each["name"] for each in manifest(Target())["webhooks"]]
    assert [each["name"] for each in other] == [PODS]


def test_added_webhooks_are_those_of_the_policies_of_the_controller(tmp_path: Path) -> None:
    rules = WebhookRules.of([policy_with(keyDomain="gpu.example.com", workloadKinds=[])])
    options = replace(OPTIONS, creates=True, webhook_rules=rules)
    with fake_api() as api:
        of_an_earlier_version = manifest(Target())
        del of_an_earlier_version["webhooks"][1:]
        of_an_earlier_version["metadata"]["resourceVersion"] = "1"
        api.objects[CONFIGURATION] = of_an_earlier_version
        passes(api, tmp_path, ControllerMetrics(), options)

    added = {each["name"]: each for each in api.objects[CONFIGURATION]["webhooks"][1:]}
    wanted = {each["name"]: each for each in manifest(Target(), rules)["webhooks"][1:]}
    assert rules.rules(WORKLOADS) != WebhookRules.of([built_in_policy()]).rules(WORKLOADS)
    assert added.keys() == wanted.keys()
    for name, each in wanted.items():
        assert {key: added[name].get(key) for key in ("rules", "matchConditions")} == {
            key: each.get(key) for key in ("rules", "matchConditions")
        }


def test_a_secret_that_another_controller_creates_meanwhile_is_kept(tmp_path: Path) -> None:
    configuration = manifest(OPTIONS.target)
    configuration["metadata"]["resourceVersion"] = "1"
    with fake_api() as api:
        api.objects[CONFIGURATION] = copy.deepcopy(configuration)
        passes(api, tmp_path, ControllerMetrics())
        theirs = api.objects[SECRET]
    metrics = ControllerMetrics()
    with fake_api() as api:
        api.objects[CONFIGURATION] = configuration
        api.created_meanwhile[SECRET] = copy.deepcopy(theirs)
        made = passes(api, tmp_path, metrics)
    assert artifacts_in(api.objects[SECRET]) == artifacts_in(theirs)
    counted = metrics.actions.labels(made[0].step.action, "conflict")
    assert counted._value.get() == 1


def test_a_rejected_request_is_an_error_of_the_pass(tmp_path: Path) -> None:
    with fake_api() as api:
        api.refuses = 403
        with pytest.raises(ApiServerError, match=f"^GET {SECRET}: 403 because Refused$"):
            passes(api, tmp_path, ControllerMetrics())


def test_a_configuration_that_was_deleted_gets_the_settings_of_the_administrator_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replace(OPTIONS, creates=True)
    monkeypatch.setattr(reconciler, "probe", lambda endpoint, _: Called(str(endpoint), Outcome.TRUSTED, ""))

    async def create(kubeconfig: Path) -> None:
        async with ClientConfig(kubeconfig).connect() as server:
            await Reconciler(options, ControllerMetrics()).reconcile(server)

    with fake_api() as api:
        passes(api, tmp_path, ControllerMetrics(), options)
        settings = {PODS: {"failurePolicy": "Fail"}, "of.another.version": {"failurePolicy": "Fail"}}
        api.objects[SECRET]["metadata"]["annotations"] = {SETTINGS_ANNOTATION: json.dumps(settings)}
        before = {each["name"]: each["failurePolicy"] for each in api.objects.pop(CONFIGURATION)["webhooks"]}
        asyncio.run(create(api.kubeconfig(tmp_path)))

        after = {each["name"]: each["failurePolicy"] for each in api.objects[CONFIGURATION]["webhooks"]}
        assert (before[PODS], after) == ("Ignore", before | {PODS: "Fail"})


def test_a_server_that_is_waited_for_is_logged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    details = chain(["refused", "refused"], repeat("timed out"))
    monkeypatch.setattr(reconciler, "probe", lambda at, _: Called(str(at), Outcome.UNREACHABLE, next(details)))

    async def make(kubeconfig: Path) -> None:
        made = Reconciler(replace(OPTIONS, creates=True), ControllerMetrics())
        async with ClientConfig(kubeconfig).connect() as server:
            for _ in range(6):
                await made.reconcile(server)

    with fake_api() as api, capture_logs() as logs:
        asyncio.run(make(api.kubeconfig(tmp_path)))

    reasons = [each["reason"] for each in logs if each["event"] == "the webhook configuration is created later"]
    assert [each.rpartition(": ")[2] for each in reasons] == ["refused", "timed out"]


Object = dict[str, Any]


def stored(content: Object, **metadata: Any) -> Object:
    """Return an object as the API server has stored it."""
    made = copy.deepcopy(content)
    made["metadata"] |= {"resourceVersion": "1", **metadata}
    return made


def reconciled(
    api: FakeConfigurationApi, folder: Path, options: Options = OPTIONS, metrics: ControllerMetrics | None = None
) -> Pass:
    """Make one pass."""

    async def make() -> Pass:
        async with ClientConfig(api.kubeconfig(folder)).connect() as server:
            return await Reconciler(options, metrics or ControllerMetrics()).reconcile(server)

    return asyncio.run(make())


def count(metrics: ControllerMetrics, action: str, result: str) -> float:
    counted: float = metrics.actions.labels(action, result)._value.get()
    return counted


SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
WITH_OLD_CA = replace(FRESH, ca_certificate=(FRESH.ca_certificate or b"") + (OTHER.ca_certificate or b""))


@pytest.mark.parametrize(
    ("done", "pause"),
    [
        pytest.param(Pass(Step(Action.KEEP, (), DAY), tried=True), NONE, id="after a write"),
        pytest.param(Pass(Step(Action.KEEP, (), DAY), tried=False), DAY, id="until the next step"),
        pytest.param(Pass(Step(Action.KEEP, (), DAY), tried=False, waits_for="a"), 2 * SECOND, id="for the server"),
        pytest.param(Pass(Step(Action.KEEP, (), SECOND), tried=False, waits_for="a"), SECOND, id="for the sooner"),
        pytest.param(
            Pass(Step(Action.KEEP, (), DAY), tried=True, waits_for="a"), NONE, id="for the server, with a write"
        ),
    ],
)
def test_the_next_pass_is_useful_when_something_can_have_changed(done: Pass, pause: timedelta) -> None:
    assert done.pause == pause


FOREIGN_SECRET = stored(new_secret(Target(), FRESH), labels={})
INJECTED = stored(manifest(Target()), annotations={"cert-manager.io/inject-ca-from": "a/b"})


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        (SECRET, FOREIGN_SECRET, "is not of this controller"),
        (CONFIGURATION, INJECTED, "cert-manager keeps this caBundle"),
    ],
)
def test_an_object_of_another_owner_is_an_error_before_anything_is_written(
    tmp_path: Path, path: str, content: Object, message: str
) -> None:
    with fake_api() as api:
        api.objects = {CONFIGURATION: stored(manifest(Target())), path: copy.deepcopy(content)}
        with pytest.raises(InvalidInput, match=message):
            reconciled(api, tmp_path)
    assert api.writes == []


def test_the_metrics_have_the_ends_of_ca_and_certificate_and_whether_a_step_is_left(tmp_path: Path) -> None:
    metrics, names = ControllerMetrics(), ("ca", "certs_controller_certificate")

    def shown() -> list[float | None]:
        ends = (f"placement_webhook_{name}_not_after_timestamp_seconds" for name in names)
        gauges = (*ends, "placement_webhook_certs_controller_rotation_in_progress")
        return [metrics.registry.get_sample_value(each) for each in gauges]

    with fake_api() as api:
        reconciled(api, tmp_path, metrics=metrics)
        assert shown() == [0, 0, 1]
        reconciled(api, tmp_path, metrics=metrics)
        held = artifacts_in(api.objects[SECRET])
    (ca,), (server,) = certificates(held.ca_certificate or b"", ""), certificates(held.certificate or b"", "")
    assert shown() == [ca.not_valid_after_utc.timestamp(), server.not_valid_after_utc.timestamp(), 0]


def test_settings_of_an_administrator_are_recorded_once_and_only_by_a_controller_that_creates(tmp_path: Path) -> None:
    options, metrics = replace(OPTIONS, creates=True), ControllerMetrics()
    with fake_api() as api:
        configuration = stored(with_ca_bundle(manifest(Target()), FRESH.ca_certificate or b""))
        configuration["webhooks"][1]["failurePolicy"] = "Fail"
        api.objects = {SECRET: stored(new_secret(Target(), FRESH)), CONFIGURATION: configuration}

        assert not reconciled(api, tmp_path, OPTIONS).tried
        assert recorded_settings(api.objects[SECRET]) == {}
        with capture_logs() as logs:
            assert reconciled(api, tmp_path, options, metrics).tried
        assert not reconciled(api, tmp_path, options, metrics).tried

        name = configuration["webhooks"][1]["name"]
        assert [(each["action"], each["webhooks"]) for each in logs] == [(RECORD, [name])]
        assert recorded_settings(api.objects[SECRET]) == {name: {"failurePolicy": "Fail"}}
        assert artifacts_in(api.objects[SECRET]) == FRESH
        assert count(metrics, RECORD, "done") == 1

        del configuration["webhooks"][1]["failurePolicy"]
        passes(api, tmp_path, metrics, options)
        assert recorded_settings(api.objects[SECRET]) == {}


def test_nothing_is_recorded_of_a_configuration_that_is_gone(tmp_path: Path) -> None:
    """It waits for a certificate, which waits until the other configuration trusts its CA."""
    rules = replace(OPTIONS.rules, trust_wait=DAY)
    options = replace(OPTIONS, configurations=(*OPTIONS.configurations, "other"), creates=True, rules=rules)
    other = configuration_named("other").path
    with fake_api() as api:
        bundle = FRESH.ca_certificate or b""
        api.objects = {
            SECRET: stored(new_secret(Target(), replace(FRESH, certificate=None))),
            other: stored(with_ca_bundle(manifest(Target(configuration="other")), bundle)),
        }
        done = reconciled(api, tmp_path, options)
    assert (done.step.action, done.step.wait, done.tried, done.waits_for) == (Action.ISSUE_SERVING, DAY, False, "")
    assert api.writes == []


def test_a_bundle_is_left_alone_as_long_as_no_ca_is_known(tmp_path: Path) -> None:
    """Also one that cannot be read: without a CA, there is nothing better to write."""
    with fake_api() as api:
        api.objects[CONFIGURATION] = stored(with_ca_bundle(manifest(Target()), b"?"))
        reconciled(api, tmp_path)
        assert [path for path, _ in api.writes] == [SECRET]
        reconciled(api, tmp_path)
        assert [path for path, _ in api.writes] == [SECRET, CONFIGURATION]
        assert set(ca_bundles(api.objects[CONFIGURATION])) == {artifacts_in(api.objects[SECRET]).ca_certificate}


def test_a_ca_that_only_a_bundle_has_is_dropped_without_a_write_to_the_secret(tmp_path: Path) -> None:
    """Such a write would begin the wait for the replicas anew."""
    metrics = ControllerMetrics()
    both = (FRESH.ca_certificate or b"") + (OTHER.ca_certificate or b"")
    with fake_api() as api:
        api.objects = {
            SECRET: stored(new_secret(Target(), FRESH)),
            CONFIGURATION: stored(with_ca_bundle(manifest(Target()), both)),
        }
        made = passes(api, tmp_path, metrics)
        assert set(ca_bundles(api.objects[CONFIGURATION])) == {FRESH.ca_certificate}
    assert [each.step.action for each in made] == [Action.DROP_OLD_CA, Action.KEEP]
    assert [path for path, _ in api.writes] == [CONFIGURATION]
    assert (count(metrics, MEND, "done"), count(metrics, Action.DROP_OLD_CA, "done")) == (1, 0)


@pytest.mark.parametrize(
    ("secret", "wait", "is_created"),
    [
        pytest.param(FRESH, NONE, True, id="in order"),
        pytest.param(WITH_OLD_CA, DAY, True, id="while an old CA waits to be dropped"),
        pytest.param(replace(WITH_OLD_CA, certificate=OTHER.certificate, key=OTHER.key), DAY, False, id="not switched"),
        pytest.param(replace(FRESH, certificate=None), DAY, False, id="without a certificate"),
    ],
)
def test_the_configuration_is_created_as_soon_as_the_new_certificate_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: Artifacts, wait: timedelta, is_created: bool
) -> None:
    """Another configuration trusts both CAs, and steps wait for API servers and replicas."""
    monkeypatch.setattr(reconciler, "probe", lambda at, _: Called(str(at), Outcome.TRUSTED, ""))
    rules = replace(OPTIONS.rules, trust_wait=wait, propagation_wait=wait)
    options = replace(OPTIONS, configurations=("00-placement-webhook", "other"), creates=True, rules=rules)
    other, trusted = configuration_named("other").path, secret.ca_certificate or b""
    with fake_api() as api:
        api.objects = {
            SECRET: stored(new_secret(Target(), secret)),
            other: stored(with_ca_bundle(manifest(Target(configuration="other")), trusted)),
        }
        reconciled(api, tmp_path, options)
        created = api.objects.get(CONFIGURATION)

    assert (created is not None) is is_created
    if created is not None:
        assert set(ca_bundles(created)) == {trusted}
    assert artifacts_in(api.objects[SECRET]) == secret


@pytest.mark.parametrize(("probe_at", "host"), [(None, "placement-webhook.placement-webhook.svc"), ("a:9", "a")])
def test_the_server_is_probed_at_the_address_that_is_given_under_the_name_that_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe_at: str | None, host: str
) -> None:
    probed: list[tuple[Endpoint, bytes]] = []

    def trusted(endpoint: Endpoint, bundle: bytes) -> Called:
        probed.append((endpoint, bundle))
        return Called(str(endpoint), Outcome.TRUSTED, "")

    monkeypatch.setattr(reconciler, "probe", trusted)
    metrics = ControllerMetrics()
    with fake_api() as api:
        passes(api, tmp_path, metrics, replace(OPTIONS, creates=True, probe_at=probe_at))
        assert ca_bundles(api.objects[CONFIGURATION]) == [probed[0][1]] * 4

    ((endpoint, bundle),) = probed
    assert (endpoint.host, endpoint.server_name) == (host, "placement-webhook.placement-webhook.svc")
    assert bundle == artifacts_in(api.objects[SECRET]).ca_certificate
    assert count(metrics, CREATE, "done") == 1
    # Two controllers that create one object at once have a conflict.
    assert [query for _, query in api.writes] == [{"fieldManager": f"{OWNER}-one"}] * 2


@pytest.mark.parametrize(("path", "action"), [(SECRET, Action.ADD_NEXT_CA), (CONFIGURATION, MEND)])
def test_a_write_that_is_rejected_is_an_error_and_counted(tmp_path: Path, path: str, action: str) -> None:
    metrics = ControllerMetrics()
    with fake_api() as api:
        if path == CONFIGURATION:
            api.objects[SECRET] = stored(new_secret(Target(), FRESH))
        api.objects[CONFIGURATION] = stored(manifest(Target()))
        api.refused[f"PATCH {path}"] = 403
        with pytest.raises(ApiServerError, match="403 because Refused"):
            reconciled(api, tmp_path, metrics=metrics)
    assert [count(metrics, action, each) for each in ("done", "conflict", "failed")] == [0, 0, 1]
    assert api.writes == []


def test_each_change_is_logged_with_its_reason_and_a_conflict_as_none(tmp_path: Path) -> None:
    with fake_api() as api, capture_logs() as logs:
        api.objects[CONFIGURATION] = stored(manifest(Target()))
        api.conflicts = 1
        passes(api, tmp_path, ControllerMetrics())

    shown = [{key: value for key, value in each.items() if key != "log_level"} for each in logs]
    faster = {"event": "another client was faster; the objects are read again", "action": MEND}
    mended = {"event": "certificates changed", "action": MEND, "configuration": "00-placement-webhook", "cas": 1}
    issued = {"event": "certificates changed", "action": "add_next_ca", "reasons": "there is no CA yet"}
    assert shown == [issued, faster, mended]


def test_an_existing_secret_is_changed_and_keeps_what_others_have_set(tmp_path: Path) -> None:
    """A merge patch owns no field, so that another controller can change the Secret, too."""
    with fake_api() as api:
        configuration = with_ca_bundle(manifest(Target()), FRESH.ca_certificate or b"")
        secret = stored(new_secret(Target(), replace(FRESH, key=OTHER.key)), annotations={"mine": "yes"})
        api.objects = {SECRET: secret, CONFIGURATION: stored(configuration)}
        passes(api, tmp_path, ControllerMetrics())
        after = api.objects[SECRET]
    assert after["metadata"]["annotations"] == {"mine": "yes"}
    assert artifacts_in(after).ca_key == FRESH.ca_key
    assert artifacts_in(after).certificate != FRESH.certificate
    assert api.writes == [(SECRET, {"fieldManager": OWNER})]


def to_drop_the_old_ca() -> Object:
    return new_secret(Target(), WITH_OLD_CA)


def to_add_a_ca() -> Object:
    secret = new_secret(Target(), FRESH)
    secret["metadata"]["annotations"] = {REQUEST_ANNOTATION: "ca"}
    return secret


@pytest.mark.parametrize("secret", [to_drop_the_old_ca(), to_add_a_ca()], ids=["drop", "add"])
@pytest.mark.parametrize("second_is_refused", [False, True])
def test_each_ca_bundle_is_written_before_the_secret_which_waits_for_all_of_them(
    tmp_path: Path, secret: Object, second_is_refused: bool
) -> None:
    second = configuration_named("second").path
    options = replace(OPTIONS, configurations=("00-placement-webhook", "second"))
    with fake_api() as api:
        api.objects[SECRET] = stored(secret)
        for path in (CONFIGURATION, second):
            api.objects[path] = stored(manifest(Target(configuration=path.rpartition("/")[2])))
        if second_is_refused:
            api.refused[f"PATCH {second}"] = 403
            with pytest.raises(ApiServerError, match="403"):
                reconciled(api, tmp_path, options)
        else:
            reconciled(api, tmp_path, options)
        after = api.objects[SECRET]["data"]

    assert [path for path, _ in api.writes] == [CONFIGURATION, *([] if second_is_refused else [second, SECRET])]
    assert (after == secret["data"]) is second_is_refused
