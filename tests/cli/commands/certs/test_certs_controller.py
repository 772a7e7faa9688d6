"""`certs controller` as a process: its flags, its end, and an API server that is away. `certs rotate`: its end."""

import json
import re
import signal
import socket
import subprocess
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from certs.controller.admin import ControllerMetrics
from certs.controller.reconciler import Options, Reconciler
from certs.inspection import Artifacts, inspect
from certs.names import server_names, service_names
from certs.plan import Request, Rules
from certs.registration import Target, manifest, with_ca_bundle
from certs.secret import REQUEST_ANNOTATION, artifacts_in, new_secret
from tests.support.programs.command import Run, run_alone
from tests.support.programs.programs import forked
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.loopback import closed_port
from tests.support.tls.certificates import FRESH, NOW, OTHER, ca_of, make_artifacts
from webhook.cli.commands.certs.certs_controller import _is_done
from webhook.runtime.settings import Address
from webhook.watch.api_server import ClientConfig

NAMES = server_names(service_names(Target().service, Target().namespace))
SECRET = "/api/v1/namespaces/placement-webhook/secrets/placement-webhook-tls"
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/00-placement-webhook"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--server-days", "1", "--propagation-seconds", "30000"), "--server-days is too short: a third of it"),
        (("--server-days", "1", "--trust-seconds", "28800"), "--server-days is too short: a third of it"),
        (
            ("--server-days", "3", "--trust-seconds", "43200", "--propagation-seconds", "43200"),
            "--server-days is too short: a third of it must be more than --trust-seconds and --propagation-seconds",
        ),
        (("--ca-days", "1"), "--ca-days 1 is less than --server-days 365"),
        (("--ca-days", "0"), "0.0 is not in the range 0<x<=36500"),
        (("--dns", "a_b"), '--dns: Invalid value: "a_b"'),
        (("--url", "http://a"), "must be https://HOST"),
        (("--endpoint", "a"), '--endpoint: Invalid value: "a"; must be HOST:PORT'),
        (("--admin-listen", "a"), "must be HOST:PORT"),
    ],
)
def test_bad_flags_are_bad_usage(certs: Run, flags: tuple[str, ...], message: str) -> None:
    refused = certs("controller", *flags)
    assert (refused.code, refused.output) == (2, "")
    assert message in refused.errors


@dataclass
class Ran:
    """The calls of `run_until_signalled`, which ends at once."""

    options: Options
    admin: Address
    source: ClientConfig


def ran(certs: Run, monkeypatch: pytest.MonkeyPatch, *flags: object) -> Options:
    """Return the options of the controller that these flags start."""
    found: list[Ran] = []

    async def note(*given: Any) -> None:
        found.append(Ran(*given))

    monkeypatch.setattr("certs.controller.loop.run_until_signalled", note)
    done = certs("controller", "--kubeconfig", "config", *flags)
    assert (done.code, done.output, done.errors) == (0, "", "")
    (only,) = found
    assert only.source == ClientConfig(Path("config"), False, None)
    assert only.admin == Address("127.0.0.1", 8080)
    return only.options


def test_a_controller_without_flags_has_the_defaults_of_the_manifests(
    certs: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD_NAME", "pod")

    options = ran(certs, monkeypatch)

    wanted = Options(Target(), (Target().configuration,), Rules(NAMES), options.instance)
    assert options == wanted
    assert re.fullmatch("pod-[0-9a-f]{8}", options.instance)


def test_a_controller_does_as_its_flags_say(certs: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POD_NAME", "p" * 100)
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: placement.maip.mxsf.io/v1alpha1\nkind: PlacementPolicy\nspec: {keyDomain: a.com}\n")
    where = (
        "--namespace",
        "team",
        "--secret",
        "tls",
        "--service",
        "web",
        "--configuration",
        "own",
        "--endpoint",
        "a:1",
    )
    others = ("--also-configuration", "other", "--also-configuration", "own", "--create-configuration")
    times = ("--ca-days", "3", "--server-days", "3", "--trust-seconds", "43200", "--propagation-seconds", "43199")
    names = ("--dns", "b", "a", "--ip", "10.0.0.1")

    options = ran(certs, monkeypatch, *where, *others, *times, *names, "--policy", policy)

    day = timedelta(days=1)
    assert options.target == Target("team", "tls", "web", "own")
    assert options.configurations == ("own", "other")
    assert options.rules == Rules(
        server_names(["b", "a"], ["10.0.0.1"]), 3 * day, 3 * day, day / 2, day / 2 - timedelta(seconds=1)
    )
    assert (options.creates, options.probe_at) == (True, "a:1")
    assert options.webhook_rules is not None
    assert options.webhook_rules.key_domains == ("a.com",)
    assert options.instance[:64] == "p" * 63 + "-"


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (
            ("--namespace", "team", "--service", "web"),
            ["web.team.svc", "web.team.svc.cluster.local", "web.team", "web"],
        ),
        (("--url", "https://a.example.com/mutate"), ["a.example.com"]),
    ],
)
def test_a_certificate_is_for_what_api_servers_call_unless_names_are_given(
    certs: Run, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], names: list[str]
) -> None:
    assert ran(certs, monkeypatch, *flags).rules.names == server_names(names)


@pytest.mark.slow
def test_an_admin_port_in_use_is_bad_input(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path, f"http://127.0.0.1:{closed_port()}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = run_alone("certs", "controller", "--kubeconfig", kubeconfig, "--admin-listen", where)
    assert refused.code == 2
    assert f'--admin-listen: Invalid value: "{where}"; cannot listen there: ' in refused.errors


@pytest.mark.slow
def test_an_api_server_that_is_away_is_reported_once_and_a_signal_ends_the_process(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path, f"http://127.0.0.1:{closed_port()}")
    command = [forked(), "certs", "controller", f"--kubeconfig={kubeconfig}"]
    arguments = ["--admin-listen=127.0.0.1:0", "--log-format=json"]
    with subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        lines = iter(process.stderr.readline, "")
        seen = [json.loads(next(lines))]
        while seen[-1]["event"] != "the certificates are not maintained":
            seen.append(json.loads(next(lines)))
        process.send_signal(signal.SIGTERM)
        seen.extend(json.loads(line) for line in lines)
    assert process.returncode == 0
    assert seen[0]["event"] == "the certs controller runs"
    assert [each["level"] for each in seen if "not maintained" in each["event"]] == ["error"]
    assert seen[-1]["event"] == "the certs controller ends"


@pytest.mark.slow
def test_a_signal_ends_the_process_while_the_api_server_does_not_answer(tmp_path: Path) -> None:
    """A request may take 30 seconds until it fails."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        kubeconfig = write_kubeconfig(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        command = [forked(), "certs", "controller", f"--kubeconfig={kubeconfig}"]
        with subprocess.Popen([*command, "--admin-listen=127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as process:
            connection, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=25) == 0
            connection.close()


RENEWED = make_artifacts(ca=ca_of(FRESH))
BOTH_CAS = (OTHER.ca_certificate or b"") + (FRESH.ca_certificate or b"")


@pytest.mark.parametrize(
    ("wanted", "now", "is_done"),
    [
        pytest.param(Request.SERVING, FRESH, False, id="the same certificate"),
        pytest.param(Request.SERVING, RENEWED, True, id="a new certificate"),
        pytest.param(Request.SERVING, replace(RENEWED, key=OTHER.key), False, id="a certificate with another key"),
        pytest.param(Request.CA, RENEWED, False, id="the same CA, after another request took the place of this one"),
        pytest.param(
            Request.CA,
            replace(RENEWED, ca_certificate=BOTH_CAS, ca_key=OTHER.ca_key),
            False,
            id="a new CA, which has not issued the certificate",
        ),
        pytest.param(Request.CA, replace(OTHER, ca_certificate=BOTH_CAS), True, id="a certificate of a new CA"),
    ],
)
def test_a_rotation_is_done_once_the_secret_has_what_was_requested(
    wanted: Request, now: Artifacts, is_done: bool
) -> None:
    before, after = new_secret(Target(), FRESH), new_secret(Target(), now)
    requested = new_secret(Target(), now)
    requested["metadata"]["annotations"] = {REQUEST_ANNOTATION: wanted}

    assert _is_done(after, before, wanted, NOW) == is_done
    assert not _is_done(requested, before, wanted, NOW)


def installed(api: FakeConfigurationApi) -> None:
    """Store a Secret of the controller and a configuration that trusts its CA."""
    secret = new_secret(Target(), FRESH)
    configuration = with_ca_bundle(manifest(Target()), FRESH.ca_certificate or b"")
    for path, content in ((SECRET, secret), (CONFIGURATION, configuration)):
        content["metadata"]["resourceVersion"] = "1"
        api.objects[path] = content


@pytest.mark.parametrize(
    ("flags", "steps"),
    [
        ((), ["next issue_serving within 15 s: a rotation was requested"]),
        (
            ("--ca",),
            [
                "next add_next_ca within 0 s: a rotation of the CA was requested",
                "next switch_to_next_ca within 15 s: tls.crt is issued by the old CA",
            ],
        ),
    ],
)
def test_rotate_prints_each_step_of_the_controller_once_until_the_certificate_is_new(
    certs: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], steps: list[str]
) -> None:
    rules = Rules(server_names(["localhost"]), trust_wait=timedelta(0))
    controller = Reconciler(Options(Target(), (Target().configuration,), rules, "one"), ControllerMetrics())
    pauses: list[float] = []

    async def work(seconds: float) -> None:
        """Let the controller make a pass in every second pause, so that some steps are read twice."""
        pauses.append(seconds)
        if len(pauses) % 2 == 0:
            async with ClientConfig(tmp_path / "kubeconfig").connect() as server:
                await controller.reconcile(server)

    monkeypatch.setattr("webhook.cli.commands.certs.certs_controller.asyncio.sleep", work)
    # What the controller logs is not printed by the command.
    with fake_api() as api, capture_logs():
        installed(api)
        api.kubeconfig(tmp_path).rename(tmp_path / "kubeconfig")
        done = certs("rotate", *flags, "--kubeconfig", tmp_path / "kubeconfig")

        held = artifacts_in(api.objects[SECRET])
    first, *printed, last = done.output.splitlines()
    server = inspect(held, NOW).server
    assert (done.code, done.errors) == (0, "")
    assert first.endswith(f"rotation requested: {'ca' if flags else 'serving'}")
    assert printed == steps
    assert server
    assert last == f"tls.crt is renewed, valid until {server.not_valid_after_utc:%Y-%m-%d}"
    assert held.certificate != FRESH.certificate
    assert (held.ca_key != FRESH.ca_key) is bool(flags)
    assert set(pauses) == {0.5}


def test_rotate_that_the_controller_does_not_carry_out_fails_after_the_timeout(
    certs: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]

    async def pause(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("webhook.cli.commands.certs.certs_controller.asyncio.sleep", pause)
    monkeypatch.setattr("webhook.cli.commands.certs.certs_controller.time.monotonic", lambda: now[0])
    with fake_api() as api:
        installed(api)
        refused = certs("rotate", "--timeout-seconds", "3", "--kubeconfig", api.kubeconfig(tmp_path))

    assert refused.code == 2
    assert "serving" in refused.errors
    assert refused.errors.endswith("is not done in time; the log of the certs controller has the reason\n")
    assert now == [103.5]


def test_rotate_of_a_secret_that_is_deleted_meanwhile_shows_that_it_is_gone(
    certs: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_api() as api:
        installed(api)

        async def delete(_: float) -> None:
            if SECRET not in api.objects:
                api.objects[SECRET] = new_secret(Target(), OTHER)
            else:
                del api.objects[SECRET]

        monkeypatch.setattr("webhook.cli.commands.certs.certs_controller.asyncio.sleep", delete)
        done = certs("rotate", "--kubeconfig", api.kubeconfig(tmp_path))

    _, _, gone, last = done.output.splitlines()
    assert (done.code, gone) == (0, "the Secret is gone, or has another owner")
    assert last.startswith("tls.crt is renewed, valid until ")


@pytest.mark.parametrize("conflicts", [4, 5])
def test_a_request_that_others_undo_is_written_again_a_few_times(certs: Run, tmp_path: Path, conflicts: int) -> None:
    with fake_api() as api:
        installed(api)
        api.merge_conflicts = conflicts
        done = certs("rotate", "--timeout-seconds", "0", "--kubeconfig", api.kubeconfig(tmp_path))

    assert done.code == (0 if conflicts < 5 else 2)
    assert ("another client keeps changing it; try again" in done.errors) is (conflicts == 5)
    assert len(api.writes) == 5
