"""The options of `serve`, and the settings that they make."""

import math
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from structlog.testing import capture_logs

from tests.support.programs.cluster_files import write_cluster
from tests.support.programs.command import Run
from tests.support.servers.kubeconfigs import write_kubeconfig
from webhook.cli.commands.serve import serve_command as serve
from webhook.cli.commands.serve import serve_outputs
from webhook.cli.commands.serve.serve_command import with_objects
from webhook.placement.waiting.pod_table import UNSEEN_SECONDS
from webhook.policy.loader import built_in_policy, parse_policy
from webhook.policy.spec.document import API_VERSION
from webhook.runtime.metrics import Metrics
from webhook.runtime.settings import Address, Settings
from webhook.serving.app import Scoring, scoring
from webhook.serving.observed.predictions import Predictions
from webhook.serving.policies.cluster_policies import PolicySource
from webhook.serving.policies.in_force import Policies
from webhook.watch.api_server import ClientConfig


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        pytest.param(
            ("--cluster", "absent"), {"NO_CLUSTER": "true"}, "--cluster: Invalid value", id="a file, not none"
        ),
        pytest.param(
            ("--cluster", "absent"), {"IN_CLUSTER": "true", "CONTEXT": "c"}, "--cluster: Invalid", id="a file, not live"
        ),
        pytest.param(("--in-cluster",), {"KUBECONFIG": "absent"}, "--in-cluster: Invalid", id="this one, not another"),
        pytest.param(
            ("--kubeconfig", "absent"), {"KUBECONFIG": "other"}, '--kubeconfig: Invalid value: "absent"', id="its own"
        ),
        pytest.param(
            ("--kubeconfig", "absent"),
            {"IN_CLUSTER": "true"},
            '--kubeconfig: Invalid value: "absent"',
            id="not this one",
        ),
        pytest.param(("--context", "c"), {"KUBECONFIG": "other"}, 'Invalid value: "other"', id="a context of the file"),
    ],
)
def test_a_flag_for_the_view_wins_over_the_environment(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], environment: dict[str, str], expected: str
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(f"PLACEMENT_WEBHOOK_{name}", value)

    outcome = run("serve", "--tls-dir", "t", *arguments)

    assert outcome.code == 2
    assert expected in outcome.errors.splitlines()[-1]


@pytest.mark.parametrize(
    ("flag", "value", "range_"),
    [
        ("--audit-max-total-bytes", "0", "x>=1"),
        ("--max-connections-per-address", "0", "x>=1"),
        ("--shutdown-delay-seconds", "-0.5", "x>=0"),
    ],
)
def test_a_number_outside_its_range_is_rejected(run: Run, flag: str, value: str, range_: str) -> None:
    outcome = run("serve", "--tls-dir", "t", flag, value)

    assert (outcome.code, outcome.output) == (2, "")
    assert outcome.errors.splitlines()[-1] == (
        f"Error: Invalid value for '{flag}': {value} is not in the range {range_}."
    )


@dataclass
class Started:
    """The settings, policies and predictions that the server starts with, and the options of its audit log."""

    settings: Settings | None = None
    policies: Policies | None = None
    predictions: Predictions | None = None
    pods: object = None
    audit: dict[str, Any] = field(default_factory=dict)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    found = Started()

    class Writer:
        def __init__(self, path: str, **options: Any) -> None:
            found.audit = {"path": path} | {
                key: each for key, each in options.items() if not key.startswith(("on_", "now"))
            }

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

    def build(settings: Settings, policies: Policies, *others: Any) -> None:
        found.settings, found.policies, found.predictions, found.pods = settings, policies, others[3], others[-1]

    monkeypatch.setattr(serve_outputs, "AuditWriter", Writer)
    monkeypatch.setattr(serve, "build_server", build)
    monkeypatch.setattr(serve, "serve_until_signalled", lambda *_: None)
    monkeypatch.setattr(serve, "configure_logs", lambda *_: None)
    return found


def test_defaults_are_those_of_the_documents(run: Run, started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/operations.md names them."""
    monkeypatch.setenv("POD_NAME", "r")
    assert run("serve", "--tls-dir", "t").code == 0

    assert started.settings == Settings(Path("t"), replica="r")
    assert started.audit == {
        "path": "-",
        "max_bytes": 104_857_600,
        "backups": 10,
        "max_total_bytes": 4_294_967_296,
        "replica": "r",
    }


def test_each_flag_sets_its_own_setting(run: Run, started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "r")
    settings = {
        "listen": "127.0.0.1:1",
        "admin-listen": "127.0.0.1:2",
        "max-connections-per-address": 1,
        "server-name": "webhook.example.com",
        "shutdown-delay-seconds": 4,
    }
    audit = {"": "a.jsonl", "-max-total-bytes": 400}
    flags = {f"--{name}": value for name, value in settings.items()} | {
        f"--audit{name}": value for name, value in audit.items()
    }
    arguments = [each for flag in flags.items() for each in flag]

    assert run("serve", "--tls-dir", "t", *arguments).code == 0

    assert started.settings == Settings(
        tls_dir=Path("t"),
        listen=Address("127.0.0.1", 1),
        admin_listen=Address("127.0.0.1", 2),
        max_connections_per_address=1,
        server_name="webhook.example.com",
        shutdown_delay_seconds=4,
        replica="r",
    )
    assert started.audit == {
        "path": "a.jsonl",
        "max_bytes": 50,
        "backups": 4,
        "max_total_bytes": 400,
        "replica": "r",
    }


@pytest.mark.parametrize(
    ("pod_name", "replica"),
    [pytest.param("pod", "pod", id="the pod"), pytest.param("", "host", id="else the host")],
)
def test_the_replica_is_named_after(
    run: Run,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    pod_name: str,
    replica: str,
) -> None:
    monkeypatch.setenv("POD_NAME", pod_name)
    monkeypatch.setattr(socket, "gethostname", lambda: "host")

    assert run("serve", "--tls-dir", "t").code == 0

    assert started.settings == Settings(Path("t"), replica=replica)


@pytest.mark.parametrize(
    ("view", "unseen_seconds"),
    [
        pytest.param((), math.inf, id="no view"),
        pytest.param(("--cluster", "cluster.json"), math.inf, id="a file, which shows no new pod"),
        pytest.param(("--kubeconfig", "kubeconfig"), UNSEEN_SECONDS, id="a live cluster"),
    ],
)
def test_only_a_live_cluster_shows_what_becomes_of_an_admitted_pod(
    run: Run,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    view: tuple[str, ...],
    unseen_seconds: float,
) -> None:
    """Elsewhere, a pod that another webhook denies keeps its room, and no prediction is ever compared."""
    given: dict[str, Any] = {}

    def note(*args: Any, **options: Any) -> Scoring:
        given.update(options)
        return scoring(*args, **options)

    monkeypatch.setattr(serve, "scoring", note)
    monkeypatch.chdir(tmp_path)
    write_cluster(tmp_path)
    write_kubeconfig(tmp_path, "http://127.0.0.1:1")

    assert run("serve", "--tls-dir", "t", *view).code == 0

    assert given == {"unseen_seconds": unseen_seconds}
    assert (started.predictions is not None) == (unseen_seconds == UNSEEN_SECONDS)


def test_of_several_policy_files_the_last_one_counts_and_the_others_are_named(
    run: Run, started: Started, tmp_path: Path
) -> None:
    """A chart appends `extraArgs` to the flags of its manifest."""
    files = [tmp_path / f"{name}.yaml" for name in ("first", "second", "last")]
    for file in files:
        file.write_text(
            f"apiVersion: {API_VERSION}\nkind: PlacementPolicy\nmetadata: {{name: {file.stem}}}\nspec: {{}}\n"
        )

    with capture_logs() as logs:
        assert run("serve", "--tls-dir", "t", *(each for file in files for each in ("--policy", file))).code == 0

    assert started.policies is not None
    assert started.policies.current().name == "last"
    (warned,) = [each for each in logs if each["event"] == "--policy is given several times"]
    assert (warned["used"], warned["ignored"]) == (str(files[-1]), [str(files[0]), str(files[1])])


@pytest.mark.parametrize(("flags", "are_written"), [((), True), (("--no-events",), False)])
@pytest.mark.usefixtures("started")
def test_rejected_objects_get_events_unless_there_are_none(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: tuple[str, ...], are_written: bool
) -> None:
    recorders: list[object] = []

    def note(*given: Any) -> PolicySource:
        recorders.extend(given[4:])
        return with_objects(*given)

    monkeypatch.setattr(serve, "with_objects", note)
    live = ("--kubeconfig", write_kubeconfig(tmp_path, "http://127.0.0.1:1"), "--policy-source", "crd")

    assert run("serve", "--tls-dir", "t", *live, *flags).code == 0

    assert [each is not None for each in recorders] == [are_written]


@pytest.mark.parametrize(
    ("flags", "is_answered"),
    [
        ((), False),
        (("--client-ca", "ca.crt"), True),
        (("--extender-insecure",), True),
        (("--client-ca", "ca.crt", "--extender-insecure"), True),
    ],
)
@pytest.mark.parametrize("view", [("--cluster", "cluster.json"), ("--kubeconfig", "kubeconfig")])
def test_an_extender_answers_clients_of_the_ca_or_all_if_that_is_asked_for(
    run: Run,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    flags: tuple[str, ...],
    is_answered: bool,
    view: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_cluster(tmp_path)
    write_kubeconfig(tmp_path, "http://127.0.0.1:1").rename(tmp_path / "kubeconfig")

    outcome = run("serve", "--tls-dir", "t", "--extender-profile", "pack-gpus", *view, *flags)

    assert outcome.code == (0 if is_answered else 2)
    assert (started.settings is not None) is is_answered
    assert ("--extender-profile needs --client-ca" in outcome.errors) is not is_answered


@pytest.mark.parametrize(
    ("flags", "is_warned"),
    [((), False), (("--client-ca", "c"), True), (("--client-ca", "c", "--client-name", "kube-apiserver-*"), False)],
)
@pytest.mark.usefixtures("started")
def test_a_ca_for_all_of_its_clients_is_a_warning(run: Run, flags: tuple[str, ...], is_warned: bool) -> None:
    with capture_logs() as logs:
        assert run("serve", "--tls-dir", "t", *flags).code == 0

    assert [each["event"] for each in logs] == ["--client-ca without --client-name"] * is_warned
    assert all((each["ca"], each["remedy"][:18]) == ("c", "give --client-name") for each in logs)


@pytest.mark.parametrize(
    ("view", "name"),
    [
        ((), "none"),
        (("--no-cluster",), "none"),
        (("--cluster", "cluster.json"), "file cluster.json"),
        (("--kubeconfig", "kubeconfig"), "kubeconfig kubeconfig"),
        (("--kubeconfig", "kubeconfig", "--context", "local"), "kubeconfig kubeconfig, context local"),
        (("--in-cluster",), "in-cluster"),
    ],
)
def test_the_view_of_the_cluster_has_a_name(
    run: Run,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    view: tuple[str, ...],
    name: str,
) -> None:
    async def read(_: object) -> None:
        """Read nothing."""

    monkeypatch.setattr(ClientConfig, "read", read)
    # A flag wins over the variable.
    monkeypatch.setenv("PLACEMENT_WEBHOOK_CONTEXT" if view == ("--in-cluster",) else "UNUSED", "other")
    monkeypatch.chdir(tmp_path)
    write_cluster(tmp_path)

    assert run("serve", "--tls-dir", "t", *view).code == 0

    assert started.settings is not None
    assert started.settings.cluster == name


@pytest.mark.parametrize(
    ("flags", "code", "is_kept"),
    [
        (("--audit", "a.jsonl"), 0, False),
        (("--audit", "a.jsonl", "--audit-pods"), 0, True),
        (("--audit-pods",), 2, False),
        (("--audit", "-", "--audit-pods"), 2, False),
    ],
)
def test_pods_are_kept_beside_an_audit_file_if_that_is_asked_for(
    run: Run,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    flags: tuple[str, ...],
    code: int,
    is_kept: bool,
) -> None:
    monkeypatch.chdir(tmp_path)

    outcome = run("serve", "--tls-dir", "t", *flags)

    assert outcome.code == code
    assert ("--audit-pods keeps pods in FILE.pods: give --audit FILE, too." in outcome.errors) is (code == 2)
    assert (started.pods is not None) is is_kept


def test_an_object_with_a_name_of_its_own_is_not_warned_of() -> None:
    policies = Policies(built_in_policy(), Metrics(), lambda: "")
    with_objects(ClientConfig(None).connect, policies, None, Metrics())
    selector = "namespaceSelector: {matchLabels: {team: a}}"
    text = f"apiVersion: {API_VERSION}\nkind: PlacementPolicy\nmetadata: {{name: other}}\nspec: {{{selector}}}\n"

    with capture_logs() as logs:
        policies.put_objects([parse_policy(text, "object")])

    assert [each["log_level"] for each in logs] == ["info"]
