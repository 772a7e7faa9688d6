"""All commands end alike if the output is full, its reader has gone, or the user presses Ctrl-C; NO_COLOR counts."""

import fcntl
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
from click.testing import CliRunner

from tests.controlplane.polling import wait_for
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.programs.audit_records import chain_lines, make_record, write_lines
from tests.support.programs.cluster_files import FEASIBLE, INFEASIBLE, TRAINING, as_list, write_cluster
from tests.support.programs.command import Outcome, run_here
from tests.support.programs.programs import forked
from tests.support.servers.fake_configuration_api import fake_api
from tests.support.servers.server import write_certificate
from webhook.cli.output.program import as_called, with_program_name
from webhook.cli.output.yaml_text import to_yaml
from webhook.cli.root import root
from webhook.policy.loader import built_in_policy

ROOT = Path(__file__).parents[3]
DECISION = make_record(0).decision

# Each command with its exit code. `serve` writes nothing but its audit log, which has tests of its own. The commands of
# the certs controller and `console` write logs and lines of progress only, and `report` a file.
COMMANDS: list[tuple[str, int]] = [
    ("allowed --cluster cluster.json", 0),
    ("audit export audit.jsonl", 0),
    ("audit list audit.jsonl", 0),
    (f"audit show {DECISION} audit.jsonl", 0),
    ("audit summary audit.jsonl", 0),
    ("audit verify audit.jsonl", 0),
    ("capacity -f pods.json --cluster cluster.json", 0),
    ("capacity -f pods.json --cluster cluster.json --together -o json", 0),
    ("certs issue --dir new --dns localhost", 0),
    ("certs manifest", 0),
    ("certs register --kubeconfig kubeconfig --skip-probe --dry-run server", 0),
    ("certs status --dir tls", 0),
    ("check -f pods.json --cluster cluster.json", 4),
    ("check -f pods.json --cluster cluster.json -o json", 4),
    ("demo", 0),
    ("doctor --kubeconfig kubeconfig", 3),
    ("explain pod/load --cluster cluster.json", 0),
    ("missed --kubeconfig kubeconfig", 0),
    ("mutate -f pods.json", 0),
    ("mutate -f pods.json -o patch", 0),
    ("nodes --cluster cluster.json", 0),
    ("policy check policy.yaml", 0),
    ("policy export", 0),
    ("policy schema", 0),
    ("policy show", 0),
    ("policy test policy.yaml", 0),
    ("replay --policy policy.yaml --against policy.yaml --cluster cluster.json", 0),
    ("reclaim --cluster cluster.json", 0),
    ("simulate --trace trace.csv --cluster cluster.json", 0),
    ("snapshot --kubeconfig kubeconfig", 0),
    ("version", 0),
    ("--help", 0),
    ("--version", 0),
    ("check --help", 0),
]


def leaves(command: click.Command, path: str = "") -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield path.strip()
        return
    for name in command.list_commands(click.Context(command)):
        inner = command.get_command(click.Context(command), name)
        assert inner is not None
        yield from leaves(inner, f"{path} {name}")


def test_the_table_has_every_command() -> None:
    named = {name for name in leaves(root) if any(f"{line} ".startswith(f"{name} ") for line, _ in COMMANDS)}

    assert {*leaves(root)} - named == {"console", "report", "serve", "certs controller", "certs rotate"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with the files of the commands and the kubeconfig of an API server, while that runs."""
    write_cluster(tmp_path)
    (tmp_path / "pods.json").write_text(as_list(FEASIBLE, INFEASIBLE, TRAINING))
    (tmp_path / "trace.csv").write_text("arrival,duration,requests\n0,60,cpu=1\n30,60,cpu=1\n")
    (tmp_path / "policy.yaml").write_text(to_yaml(built_in_policy().document.model_dump(mode="json", by_alias=True)))
    write_lines(tmp_path / "audit.jsonl", chain_lines(make_record(number) for number in range(3)))
    (tmp_path / "tls").mkdir()
    write_certificate(tmp_path / "tls")
    (tmp_path / "tls" / "tls.key").chmod(0o600)
    with fake_api() as api:
        api.objects = {f"/api/v1/{kind}": {"kind": "List", "items": []} for kind in ("namespaces", "nodes", "pods")}
        api.kubeconfig(tmp_path)
        yield tmp_path


@contextmanager
def started(
    command: str, folder: Path, *, is_forked: bool = True, **streams: Any
) -> "Iterator[subprocess.Popen[bytes]]":
    """Start the command, in an interpreter of its own unless it is forked."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | streams.pop("environment", {})
    program = [forked()] if is_forked else [sys.executable, "-P", "-m", "webhook"]
    arguments = [*program, *command.split()]
    with subprocess.Popen(arguments, cwd=folder, env=environment, **streams) as process:
        try:
            yield process
        finally:
            process.kill()


def run(command: str, folder: Path, **streams: Any) -> Outcome:
    with started(command, folder, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}) as process:
        output, errors = process.communicate()
    return Outcome(process.returncode, (output or b"").decode(), (errors or b"").decode())


def ends_in_a_blank(line: str) -> bool:
    return line != line.rstrip()


@pytest.mark.parametrize(("command", "code"), [each for each in COMMANDS if each[0] != "demo"])
def test_no_line_of_the_output_ends_in_a_blank(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int
) -> None:
    monkeypatch.chdir(folder)
    ran = run_here(*command.split())

    assert ran.code == code, ran.errors
    assert [*filter(ends_in_a_blank, ran.output.splitlines())] == []


@pytest.mark.slow
def test_no_line_of_the_demo_ends_in_a_blank(folder: Path) -> None:
    """The demo sets up the logs of its process, so it has one of its own."""
    assert [*filter(ends_in_a_blank, run("demo", folder).output.splitlines())] == []


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command, _ in COMMANDS])
def test_a_full_output_is_one_error_line_and_code_1(folder: Path, command: str) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = run(command, folder, stdout=full)

    error, *others = reversed(ran.errors.splitlines())
    assert (ran.code, error) == (1, "Error: standard output cannot be written: No space left on device")
    assert [line for line in others if re.match(r"Error|Traceback|\s", line)] == []


# One command for each way to write: a table, JSON lines, lines of text, bytes, a server's results, click's own texts.
# The first has an interpreter of its own, whose end flushes the output once more.
WRITERS = {
    "check -f pods.json --cluster cluster.json": False,
    "check -f pods.json --cluster cluster.json -o json": True,
    "mutate -f pods.json": True,
    "snapshot --kubeconfig kubeconfig": True,
    "demo": True,
    "--help": True,
}


@pytest.mark.slow
@pytest.mark.parametrize(("command", "is_forked"), WRITERS.items())
def test_an_output_that_its_reader_has_closed_is_no_error(folder: Path, command: str, is_forked: bool) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as closed:
        ran = run(command, folder, stdout=closed, is_forked=is_forked)

    assert ran.code == 0
    assert "Error" not in ran.errors
    assert "Traceback" not in ran.errors


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["full", "closed"])
def test_a_standard_error_that_fails_changes_nothing(folder: Path, stream: str) -> None:
    file = Path("/dev/full").open("wb") if stream == "full" else None  # noqa: SIM115 - closed below
    redirect = {"stderr": file} if file else {"preexec_fn": lambda: os.close(2), "stderr": None}
    ran = run("check -f pods.json --cluster cluster.json --mutate", folder, is_forked=False, **redirect)
    if file:
        file.close()

    assert ran.code == 4
    assert "3 pods: 2 Feasible, 1 Infeasible" in ran.output


INTERRUPTED = [
    "check -f - --cluster cluster.json",
    "check -f pods.json --cluster -",
    "capacity -f pods.json --cluster -",
    "mutate -f -",
    "policy check -",
    "audit list -",
    f"audit show {DECISION} -",
    "audit summary -",
    "audit verify -",
]


def assert_interrupted(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGINT)
    # The signal goes through a client, and `communicate` would end standard input first.
    assert process.wait() == 130
    _, errors = process.communicate()
    assert errors.decode().splitlines()[-1] == "Interrupted."
    assert b"Traceback" not in errors


@pytest.mark.slow
@pytest.mark.parametrize("command", INTERRUPTED)
def test_ctrl_c_ends_a_command_that_reads_standard_input(folder: Path, command: str) -> None:
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with started(command, folder, **pipes) as process:
        assert process.stdin is not None
        process.stdin.write(b"# not the end\n")
        process.stdin.flush()
        wait_for(lambda: bytes_in(process.stdin) == 0, "the command to read")

        assert_interrupted(process)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["policy schema", "demo", "serve --help"])
def test_ctrl_c_ends_a_command_whose_reader_stands_still(folder: Path, command: str) -> None:
    ours, theirs = os.pipe()
    # Less than the command prints.
    capacity = fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
    with os.fdopen(ours, "rb") as reader, started(command, folder, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        wait_for(lambda: bytes_in(reader) > capacity - 512, "the command to fill the pipe")

        assert_interrupted(process)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["snapshot", "check -f pods.json", "certs register --skip-probe"])
def test_ctrl_c_ends_a_command_that_waits_for_an_api_server(folder: Path, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.getsockname()[1]}"}}
        context = {"name": "c", "context": {"cluster": "c", "user": ""}}
        content = {"clusters": [cluster], "contexts": [context], "current-context": "c"}
        (folder / "kubeconfig").write_bytes(orjson.dumps(content))
        environment = {"KUBECONFIG": str(folder / "kubeconfig")}
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with started(command, folder, environment=environment, **pipes) as process:
            connection, _ = server.accept()
            with connection:
                assert connection.recv(4) == b"GET "

                assert_interrupted(process)


@pytest.mark.slow
def test_ctrl_c_ends_a_long_count_after_its_progress(folder: Path) -> None:
    """Pods that spread over zones are placed one after the other; the node has room for more than are ever counted."""
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    node = make_node_object("large", labels={"zone": "a"}, capacity={"pods": "1000000"})
    (folder / "large.json").write_text(as_list(node))
    (folder / "spread.json").write_text(as_list(make_pod("web").spec(topologySpreadConstraints=[spread])))
    ours, theirs = pty.openpty()
    shown = b""
    command = "capacity -f spread.json --cluster large.json"
    with started(command, folder, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        while b"placed" not in shown:
            shown += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
        shown += os.read(ours, 65536)
    os.close(ours)

    assert (process.returncode, output) == (130, b"")
    assert re.search(rb"default/web: \d+ placed", shown)
    assert b"Interrupted." in shown


def bytes_in(pipe: Any) -> int:
    """Return the number of unread bytes in the pipe."""
    return int.from_bytes(fcntl.ioctl(pipe.fileno(), termios.FIONREAD, b"\0" * 4), sys.byteorder)


def on_a_terminal(command: str, folder: Path, **environment: str) -> str:
    """Return all that the command prints on a terminal."""
    ours, theirs = pty.openpty()
    streams: dict[str, Any] = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    settings = {"TERM": "xterm-256color", "COLUMNS": "100"} | environment
    shown = b""
    with started(command, folder, environment=settings, **streams):
        os.close(theirs)
        with suppress(OSError):  # the other end is closed
            while data := os.read(ours, 65536):
                shown += data
    os.close(ours)
    return shown.decode()


COLOURED = [
    "audit list audit.jsonl",
    f"audit show {DECISION} audit.jsonl",
    "audit summary audit.jsonl",
    "audit verify audit.jsonl",
    "certs status --dir tls --least-days 100000",
    "capacity -f pods.json --cluster cluster.json --mutate",
    "check -f pods.json --cluster cluster.json --mutate",
    "demo",
    "mutate -f pods.json -o diff",
]


@pytest.mark.slow
@pytest.mark.parametrize("command", COLOURED)
def test_no_color_gives_no_escape_sequence(folder: Path, command: str) -> None:
    assert "\x1b[" in on_a_terminal(command, folder)
    assert "\x1b[" not in on_a_terminal(command, folder, NO_COLOR="1")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["audit list audit.jsonl", "mutate -f pods.json -o diff"], ids=["table", "lines"])
def test_a_terminal_without_colours_gets_no_escape_sequence(folder: Path, command: str) -> None:
    assert "\x1b[" not in on_a_terminal(command, folder, TERM="dumb")


@pytest.mark.slow
def test_errors_of_the_server_have_no_escape_sequence_with_no_color(folder: Path) -> None:
    command = "serve --tls-dir tls --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --audit ."
    plain = on_a_terminal(command, folder, NO_COLOR="1")

    assert "Error: " in plain
    assert "\x1b[" not in plain


def test_examples_of_nested_commands_name_the_program_as_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.group()
    def outer() -> None:
        """Do one of these."""

    @outer.group()
    def inner() -> None:
        """Do one of these."""

    @inner.command()
    def last() -> None:
        """Do it.

        \b
        placement-webhook outer inner last
        """

    monkeypatch.setattr(sys, "argv", ["/usr/bin/kubectl-placement"])
    with_program_name(outer)

    help_text = CliRunner().invoke(outer, ["inner", "last", "--help"]).output
    assert "  kubectl placement outer inner last\n" in help_text


@pytest.mark.parametrize(
    ("folder", "shown"), [("first", "placement-webhook"), ("second", "{}/second/placement-webhook")]
)
def test_a_program_is_named_by_its_path_if_its_name_calls_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, shown: str
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "placement-webhook").touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}{os.pathsep}{tmp_path / 'second'}")
    monkeypatch.setattr(sys, "argv", [f"{tmp_path}/{folder}/placement-webhook"])

    assert as_called() == shown.format(tmp_path)
