"""The steps of a registration, their order and their writes; test_register.py beside it has a real API server."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from socketserver import BaseRequestHandler
from typing import Any

import pytest

from certs.cluster.register import Registration
from certs.inspection import Artifacts, inspect
from certs.names import server_names
from certs.registration import Target, manifest
from certs.secret import artifacts_in, new_secret
from tests.support.programs.command import run_here
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api
from tests.support.servers.kubeconfigs import write_kubeconfig
from tests.support.servers.loopback import LoopbackServer, closed_port, tls_server
from tests.support.servers.threads import served_in_thread
from tests.support.tls.certificates import AGED, FRESH, NOW, OTHER, make_artifacts, server_of
from tests.support.tls.registering import put_secret, register_in
from webhook.documents.field import InvalidInput
from webhook.watch.api_errors import ApiServerError

SECRET = "/api/v1/namespaces/placement-webhook/secrets/placement-webhook-tls"
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/00-placement-webhook"
SERVICE = "placement-webhook.placement-webhook.svc"
UNPROBED = Registration(Target(), skip_probe=True)
MINE = replace(make_artifacts(dns_names=(SERVICE,)), ca_key=None)


@pytest.fixture
def api() -> Iterator[FakeConfigurationApi]:
    with fake_api() as api:
        yield api


@pytest.fixture
def kubeconfig(api: FakeConfigurationApi, tmp_path: Path) -> Path:
    return api.kubeconfig(tmp_path)


def held(api: FakeConfigurationApi) -> Artifacts:
    return artifacts_in(api.objects[SECRET])


def bundle(api: FakeConfigurationApi) -> bytes:
    client: dict[str, Any] = api.objects[CONFIGURATION]["webhooks"][0]["clientConfig"]
    return base64.b64decode(client["caBundle"])


def put(api: FakeConfigurationApi, kubeconfig: Path, artifacts: Artifacts) -> None:
    """Let the Secret hold `artifacts`, as if that had been so all along."""
    put_secret(kubeconfig, Target(), artifacts)
    api.writes.clear()


def reported(kubeconfig: Path, wanted: Registration, *, dry_run: bool = False) -> list[str]:
    return [step.partition("; valid for")[0] for step in register_in(kubeconfig, wanted, NOW, dry_run=dry_run)]


def test_where_nothing_is_there_the_secret_is_written_before_the_configuration(
    api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    assert reported(kubeconfig, UNPROBED) == [
        "probe: skipped",
        "Secret placement-webhook/placement-webhook-tls: written (issued: nothing there yet)",
        "MutatingWebhookConfiguration 00-placement-webhook: created, 1 CA in caBundle",
    ]
    assert api.writes == [
        (SECRET, {"fieldManager": "placement-webhook-certs"}),
        (CONFIGURATION, {"fieldManager": "placement-webhook-certs"}),
    ]
    assert inspect(held(api), NOW).serving_errors() == []
    assert inspect(held(api), NOW).names.covers(SERVICE)
    assert bundle(api) == held(api).ca_certificate


def test_registering_again_writes_nothing(api: FakeConfigurationApi, kubeconfig: Path) -> None:
    reported(kubeconfig, UNPROBED)
    api.writes.clear()

    assert reported(kubeconfig, UNPROBED) == [
        "probe: skipped",
        "MutatingWebhookConfiguration 00-placement-webhook: unchanged, 1 CA in caBundle",
        "Secret placement-webhook/placement-webhook-tls: kept; everything is in order",
    ]
    assert api.writes == []


def test_the_new_ca_is_trusted_beside_the_old_one_before_the_secret_changes(
    api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    reported(kubeconfig, UNPROBED)
    before = held(api)
    api.writes.clear()

    steps = reported(kubeconfig, replace(UNPROBED, artifacts=MINE))

    assert [path for path, _ in api.writes] == [CONFIGURATION, SECRET]
    assert steps[1].endswith("patched, 2 CAs in caBundle")
    assert steps[2].endswith("written (as given)")
    assert bundle(api) == (MINE.ca_certificate or b"") + (before.ca_certificate or b"")
    assert held(api) == MINE


@pytest.mark.parametrize(
    ("artifacts", "wanted", "why"),
    [
        pytest.param(AGED, UNPROBED, "tls.crt has 120 days left, less than a third of its time", id="due"),
        pytest.param(FRESH, UNPROBED, f"not for {SERVICE}", id="for another name"),
        pytest.param(MINE, replace(UNPROBED, force=True), "a replacement was asked for", id="forced"),
        pytest.param(
            MINE,
            replace(UNPROBED, names=server_names([SERVICE, "other"])),
            f"tls.crt is for {SERVICE}, not for {SERVICE}, other",
            id="for other names",
        ),
    ],
)
def test_what_the_secret_holds_is_issued_anew(
    api: FakeConfigurationApi, kubeconfig: Path, artifacts: Artifacts, wanted: Registration, why: str
) -> None:
    put(api, kubeconfig, artifacts)

    steps = reported(kubeconfig, wanted)

    assert steps[1:] == [
        "MutatingWebhookConfiguration 00-placement-webhook: created, 2 CAs in caBundle",
        f"Secret placement-webhook/placement-webhook-tls: written (issued: {why})",
    ]
    assert held(api).certificate != artifacts.certificate
    assert bundle(api) == (held(api).ca_certificate or b"") + (artifacts.ca_certificate or b"")
    assert [query.get("force") for path, query in api.writes if path == SECRET] == ["true" if wanted.force else None]


def test_a_secret_that_was_not_issued_here_is_refused_unless_forced(
    api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    put(api, kubeconfig, replace(MINE, ca_certificate=None))

    with pytest.raises(InvalidInput, match=r"^Secret .*-tls: tls\.crt: .*; --force replaces it$"):
        reported(kubeconfig, UNPROBED)
    assert api.writes == []
    assert reported(kubeconfig, replace(UNPROBED, force=True))[2].endswith(
        "written (issued: a replacement was asked for)"
    )


def test_given_certificates_must_have_the_name_that_is_called(api: FakeConfigurationApi, kubeconfig: Path) -> None:
    given = replace(FRESH, ca_key=None)

    with pytest.raises(
        InvalidInput, match=rf'--dir: tls\.crt: Invalid value: "localhost"; must be valid for {SERVICE}'
    ):
        reported(kubeconfig, replace(UNPROBED, artifacts=given))
    assert api.writes == []


@pytest.mark.parametrize(
    ("url", "called"), [("", "web.team.svc"), ("https://other.example.com/mutate", "other.example.com")]
)
def test_the_service_of_the_configuration_is_called_unless_a_url_is_given(
    api: FakeConfigurationApi, kubeconfig: Path, url: str, called: str
) -> None:
    api.objects[CONFIGURATION] = manifest(Target(namespace="team", service="web"))

    with pytest.raises(InvalidInput, match=f"must be valid for {called}, "):
        reported(kubeconfig, replace(UNPROBED, target=Target(url=url or None), artifacts=MINE))


@pytest.mark.parametrize("conflicts", [1, 4])
def test_a_configuration_that_others_change_meanwhile_is_patched_again(
    api: FakeConfigurationApi, kubeconfig: Path, conflicts: int
) -> None:
    reported(kubeconfig, UNPROBED)
    api.writes.clear()
    api.conflicts = conflicts

    assert reported(kubeconfig, replace(UNPROBED, artifacts=MINE))[1].endswith("patched, 2 CAs in caBundle")
    assert [path for path, _ in api.writes] == [CONFIGURATION] * (conflicts + 1) + [SECRET]


def test_one_that_others_change_all_the_time_is_given_up(api: FakeConfigurationApi, kubeconfig: Path) -> None:
    reported(kubeconfig, UNPROBED)
    before = held(api)
    api.conflicts = 5

    with pytest.raises(InvalidInput, match=r"another client keeps changing it; try again$"):
        reported(kubeconfig, replace(UNPROBED, artifacts=MINE))
    assert (held(api), api.conflicts) == (before, 0)


@pytest.mark.parametrize("secret_first", [True, False])
def test_only_the_secret_of_a_server_that_cannot_start_without_is_written_before_the_probe(
    api: FakeConfigurationApi, kubeconfig: Path, secret_first: bool
) -> None:
    at = f"127.0.0.1:{closed_port()}"
    wanted = Registration(Target(), require_probe=True, endpoint=at, secret_first=secret_first)

    with pytest.raises(InvalidInput, match=r"not reachable \(.*\), and the webhook is not registered; --skip-probe"):
        reported(kubeconfig, wanted)
    assert [path for path, _ in api.writes] == ([SECRET] if secret_first else [])


def test_a_probe_that_is_not_required_refuses_no_server_out_of_reach(
    api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    steps = reported(kubeconfig, Registration(Target(), endpoint=f"127.0.0.1:{closed_port()}"))

    assert "not reachable from here (" in steps[0]
    assert steps[0].endswith("; registered without a probe")
    assert bundle(api) == held(api).ca_certificate


def test_the_server_at_another_address_is_probed_under_the_name_that_is_called(
    api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    with tls_server(server_of(MINE)) as port:
        wanted = Registration(Target(), artifacts=MINE, endpoint=f"127.0.0.1:{port}", require_probe=True)
        first, *_ = reported(kubeconfig, wanted)

    assert f"127.0.0.1:{port}" in first
    assert SERVICE in first
    assert bundle(api) == MINE.ca_certificate


def test_a_dry_run_is_one_in_each_write(api: FakeConfigurationApi, tmp_path: Path) -> None:
    reported(api.kubeconfig(tmp_path), UNPROBED, dry_run=True)

    assert [(path, query["dryRun"]) for path, query in api.writes] == [(SECRET, "All"), (CONFIGURATION, "All")]
    assert api.objects == {}


def test_a_refusal_is_reported_with_its_status_and_no_answer_without_one(
    api: FakeConfigurationApi, kubeconfig: Path, tmp_path: Path
) -> None:
    api.refuses = 403
    with pytest.raises(ApiServerError, match=f"^GET {CONFIGURATION}: 403 because Refused$") as refused:
        reported(kubeconfig, UNPROBED)
    away = write_kubeconfig(tmp_path, f"http://127.0.0.1:{closed_port()}")
    with pytest.raises(ApiServerError, match=r"^http://127\.0\.0\.1:\d+: the API server does not answer: ") as silent:
        reported(away, UNPROBED)
    assert (refused.value.code, silent.value.code) == (403, 0)


@pytest.mark.parametrize(("status", "code"), [(399, 1), (400, 2), (499, 2), (500, 1)])
def test_what_the_caller_can_correct_exits_2_and_any_other_failure_1(
    api: FakeConfigurationApi, tmp_path: Path, status: int, code: int
) -> None:
    api.refuses = status

    outcome = run_here("certs", "rotate", "--timeout-seconds", "0", "--kubeconfig", api.kubeconfig(tmp_path))

    assert outcome.code == code
    assert outcome.errors.startswith(f"Error: GET {SECRET}: {status} ")


def test_a_read_whose_connection_breaks_is_tried_once_more(tmp_path: Path) -> None:
    requests: list[bytes] = []

    class Hangup(BaseRequestHandler):
        def handle(self) -> None:
            requests.append(self.request.recv(4096))

    with LoopbackServer(("127.0.0.1", 0), Hangup) as server, served_in_thread(server):
        api = FakeConfigurationApi(url=f"http://127.0.0.1:{server.server_address[1]}")
        with pytest.raises(ApiServerError, match="the API server does not answer"):
            reported(api.kubeconfig(tmp_path), UNPROBED)

    assert [request.partition(b" HTTP")[0] for request in requests] == [f"GET {CONFIGURATION}".encode()] * 2


def test_a_secret_of_the_controller_is_registered_and_not_replaced(api: FakeConfigurationApi, kubeconfig: Path) -> None:
    with_ca_key = make_artifacts(dns_names=(SERVICE,))
    api.objects[SECRET] = new_secret(Target(), with_ca_key)
    api.objects[SECRET]["metadata"]["resourceVersion"] = "1"

    assert reported(kubeconfig, UNPROBED)[1:] == [
        "MutatingWebhookConfiguration 00-placement-webhook: created, 1 CA in caBundle",
        "Secret placement-webhook/placement-webhook-tls: kept; everything is in order",
    ]
    assert reported(kubeconfig, replace(UNPROBED, artifacts=with_ca_key))[2].endswith(": kept; as given")
    with pytest.raises(InvalidInput, match="the certs controller maintains it: `placement-webhook certs rotate`"):
        reported(kubeconfig, replace(UNPROBED, force=True))
    assert [path for path, _ in api.writes] == [CONFIGURATION]


@pytest.mark.parametrize("given", [make_artifacts(dns_names=(SERVICE,)), None], ids=["given", "issued"])
def test_no_key_of_a_ca_is_stored_where_pods_can_read_it(
    api: FakeConfigurationApi, kubeconfig: Path, given: Artifacts | None
) -> None:
    reported(kubeconfig, replace(UNPROBED, artifacts=given))

    assert sorted(api.objects[SECRET]["data"]) == ["ca.crt", "tls.crt", "tls.key"]


def test_a_ca_whose_key_is_discarded_ends_with_its_certificate(api: FakeConfigurationApi, kubeconfig: Path) -> None:
    reported(kubeconfig, UNPROBED)

    found = inspect(held(api), NOW)
    assert found.ca
    assert found.server
    assert found.ca.not_valid_after_utc == found.server.not_valid_after_utc


def test_a_configuration_that_cert_manager_keeps_is_not_registered(api: FakeConfigurationApi, kubeconfig: Path) -> None:
    configuration = api.objects[CONFIGURATION] = manifest(Target())
    configuration["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from-secret": "a/b"}

    with pytest.raises(InvalidInput, match="cert-manager keeps this caBundle"):
        reported(kubeconfig, UNPROBED)
    assert api.writes == []


def test_names_that_the_api_server_does_not_call_are_refused_in_the_name_of_the_secret(
    api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    with pytest.raises(InvalidInput, match=rf"^Secret .*-tls: tls\.crt: .*; must be valid for {SERVICE}, "):
        reported(kubeconfig, replace(UNPROBED, names=server_names(["other"])))
    assert api.writes == []


def test_a_server_is_probed_where_api_servers_call_it_and_one_of_another_ca_is_untrusted(
    api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    with tls_server(server_of(FRESH)) as port:
        wanted = Registration(Target(url=f"https://localhost:{port}/mutate"))
        first, *_ = reported(kubeconfig, replace(wanted, artifacts=replace(FRESH, ca_key=None)))
        written = len(api.writes)
        with pytest.raises(InvalidInput) as refused:
            reported(
                kubeconfig,
                replace(
                    wanted,
                    artifacts=replace(OTHER, ca_key=None),
                    target=Target("b", configuration="b", url=wanted.target.url),
                ),
            )

    assert first == f"probe: localhost:{port}: TLSv1.3, certificate valid for localhost"
    assert "; the API server would not trust it, and the webhook is not registered; --skip-probe" in str(refused.value)
    assert (written, len(api.writes)) == (2, 2)


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(404, "; `kubectl create namespace placement-webhook` creates it, --namespace names another one"), (403, "")],
)
def test_a_secret_that_cannot_be_written_names_the_namespace_that_is_missing(
    api: FakeConfigurationApi, kubeconfig: Path, status: int, remedy: str
) -> None:
    api.refused[f"PATCH {SECRET}"] = status

    with pytest.raises(ApiServerError, match=f"{status} because Refused") as refused:
        reported(kubeconfig, UNPROBED)
    assert str(refused.value).endswith(f"because Refused{remedy}")
    assert refused.value.code == status
    assert api.objects == {}
