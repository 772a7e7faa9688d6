"""The options of the `certs` commands."""

from pathlib import Path

import pytest
import yaml

from certs import directory as store
from certs.inspection import inspect
from certs.registration import Target, manifest
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import fake_api
from tests.support.servers.loopback import closed_port
from tests.support.servers.server import utc_now


def names_in(directory: Path) -> str:
    return str(inspect(store.read(directory), utc_now()).names)


@pytest.mark.parametrize(
    "flags",
    [
        "--dns a --dns b --dns c",
        "--dns a b c",
        "--dns a,b,c",
        "--dns a b --dns c",
        "--dns=a,b --dns c",
    ],
)
def test_several_names_can_be_given_in_any_way(certs: Run, tmp_path: Path, flags: str) -> None:
    assert certs("issue", *flags.split(), "--dir", tmp_path).code == 0
    assert names_in(tmp_path) == "a, b, c"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--dns a_b", '--dns: Invalid value: "a_b"'),
        ("--dns 10.0.0.1", "is an IP address"),
        ("--dns a --ip x", '--ip: Invalid value: "x"'),
        ("", "--dns: Required value"),
        ("a", "unexpected extra argument"),
    ],
)
def test_bad_names_are_bad_usage(certs: Run, tmp_path: Path, flags: str, message: str) -> None:
    refused = certs("issue", *flags.split(), "--dir", tmp_path)
    assert (refused.code, refused.output) == (2, "")
    assert message in refused.errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flags", [("--wait-seconds", "-1"), ("--wait-seconds", "soon")])
def test_register_waits_for_a_time(certs: Run, flags: tuple[str, ...]) -> None:
    refused = certs("register", *flags)
    assert refused.code == 2
    assert f"Invalid value for '--wait-seconds': {flags[1]!r}" in refused.errors.replace("-1.0", "'-1'")


@pytest.mark.parametrize("flags", [("--kubeconfig", "absent"), ("--in-cluster",)])
def test_missing_cluster_is_bad_input(certs: Run, flags: tuple[str, ...]) -> None:
    refused = certs("register", *flags)
    assert refused.code == 2
    assert "no cluster can be read from it" in refused.errors


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: x, user: {token: x}}]
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("clusters: [", id="no YAML"),
        pytest.param("\0", id="a character that YAML has not"),
        pytest.param("[" * 3000, id="nested too deep"),
        pytest.param(KUBECONFIG.replace('"https://127.0.0.1:1"', "1"), id="a server that is no text"),
    ],
)
def test_kubeconfig_that_is_none_is_bad_input(certs: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    refused = certs("register", "--kubeconfig", tmp_path / "config")
    assert refused.code == 2
    assert "no cluster can be read from it" in refused.errors


def test_api_server_that_does_not_answer_is_a_fault(certs: Run, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(KUBECONFIG)
    failed = certs("register", "--kubeconfig", tmp_path / "config")
    assert failed.code == 1
    assert "Error: https://127.0.0.1:1: the API server does not answer" in failed.errors
    assert "Traceback" not in failed.errors


@pytest.mark.parametrize(("status", "code"), [(403, 2), (429, 1), (503, 1)])
def test_a_request_that_the_caller_can_correct_is_bad_input_and_a_busy_api_server_a_fault(
    certs: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, code: int
) -> None:
    monkeypatch.setattr("certs.cluster.client._RETRY_SECONDS", 0)
    with fake_api() as api:
        api.refuses = status
        failed = certs("register", "--kubeconfig", api.kubeconfig(tmp_path))

    assert (failed.code, failed.output) == (code, "")
    assert f": {status} because Refused" in failed.errors


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--dir", ".", "--dns", "a"), "leave --dns and --ip out"),
        (("--skip-probe", "--require-probe"), "mutually exclusive"),
        (("--dry-run", "client"), "is not one of 'none', 'server'"),
    ],
)
def test_flags_of_register_that_contradict_are_bad_usage(certs: Run, flags: tuple[str, ...], message: str) -> None:
    refused = certs("register", *flags)
    assert refused.code == 2
    assert message in refused.errors


def test_manifest_has_the_names_and_the_url_that_are_given(certs: Run) -> None:
    where = ("--namespace", "team", "--service", "web", "--configuration", "own")

    of_service, of_url = certs("manifest", *where), certs("manifest", *where, "--url", "https://a.example.com/mutate")

    for printed, url in ((of_service, None), (of_url, "https://a.example.com/mutate")):
        assert printed.code == 0
        target = Target("team", service="web", configuration="own", url=url)
        assert yaml.load(printed.output, yaml.CSafeLoader) == manifest(target)


def test_register_prints_each_step(certs: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        done = certs("register", "--skip-probe", "--kubeconfig", api.kubeconfig(tmp_path))

    steps = done.output.splitlines()
    assert (done.code, len(steps)) == (0, 3)
    assert steps[0] == "probe: skipped"
    assert "dry run" not in done.output


def test_the_probe_of_register_is_as_its_flags_say(certs: Run, tmp_path: Path) -> None:
    where = ("--endpoint", f"127.0.0.1:{closed_port()}", "--require-probe")
    with fake_api() as api:
        kubeconfig = ("--kubeconfig", api.kubeconfig(tmp_path))
        first, before = certs("register", *where, "--secret-first", *kubeconfig), len(api.writes)
        second = certs("register", *where, *kubeconfig)

    assert (first.code, second.code, before, len(api.writes)) == (2, 2, 1, 1)
    for refused in (first, second):
        assert f'Error: probe: Invalid value: "{where[1]}"; not reachable (' in refused.errors
