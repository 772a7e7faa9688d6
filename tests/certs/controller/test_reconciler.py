"""A pass of the controller while other clients write the same objects, and one that fails."""

import asyncio
import base64
import copy
import json
from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from certs.cluster.client import configuration_named
from certs.cluster.probe import Called, Outcome
from certs.controller import reconciler
from certs.controller.admin import MEND, ControllerMetrics
from certs.controller.reconciler import Memory, Options, Pass, Reconciler
from certs.names import server_names
from certs.pem import certificates
from certs.pki import issue_ca
from certs.plan import Action, Rules
from certs.registration import Target, manifest
from certs.secret import SETTINGS_ANNOTATION, artifacts_in
from certs.webhook_rules import PODS
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api
from tests.support.tls.certificates import NOW
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
