"""No command prints control characters of an object, a file, a record, a certificate or an API server."""

import ast
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
import yaml

from tests.cli.hostile import (
    HOSTILE,
    SURROGATE,
    api_server,
    as_list,
    assert_safe,
    denied_pod,
    held_pod,
    hostile_nodes,
    hostile_pod,
    hostile_record,
    malformed_pod,
    write_certificates,
)
from tests.support.programs.audit_records import chain_lines, write_lines
from tests.support.programs.command import Run
from tests.support.programs.programs import forked
from webhook.cli.output.terminal import Progress, echo_json, echo_progress, remarks_taken, warn
from webhook.documents.documents import parse

ROOT = Path(__file__).parents[3]
_PRINTING = re.compile(r"print|click\.s?echo|click\.style|Console|sys\.std(out|err)\..*write.*|.*print_exc")
_OWN_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Reset the logs: `serve` and `demo` configure them for the whole process."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def hostile_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder of hostile files that no command writes to."""
    folder = tmp_path_factory.mktemp("hostile")
    with chdir(folder):
        _write_hostile_files()
    written = _contents(folder)
    yield folder
    assert _contents(folder) == written


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(hostile_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of links to the hostile files, in which the commands run."""
    shutil.copytree(hostile_files, tmp_path, dirs_exist_ok=True, copy_function=os.symlink)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write_hostile_files() -> None:
    Path("pod.json").write_bytes(orjson.dumps(hostile_pod()))
    Path("pods.json").write_bytes(as_list(hostile_pod(), hostile_pod()))
    Path("surrogate.json").write_text(json.dumps(hostile_pod(SURROGATE)))
    Path("refused.json").write_bytes(orjson.dumps(denied_pod()))
    Path("malformed.json").write_bytes(orjson.dumps(malformed_pod()))
    Path("kind.json").write_bytes(as_list({"apiVersion": "v1", "kind": HOSTILE}, hostile_pod()))
    Path("cluster.json").write_bytes(as_list(*hostile_nodes()))
    Path("held.json").write_bytes(as_list(*hostile_nodes(), held_pod()))
    Path("bad-cluster.json").write_bytes(as_list({**hostile_nodes()[0], "status": {"allocatable": {HOSTILE: HOSTILE}}}))
    Path("broken.yaml").write_bytes(b"a: [\x1b[31m\n\x9b")
    Path("policy.yaml").write_text(yaml.safe_dump(_policy({HOSTILE: HOSTILE, "invalidAnnotations": HOSTILE})))
    Path("named.yaml").write_text(yaml.safe_dump(_policy({})))
    Path("scheduler.yaml").write_text(yaml.safe_dump(_scheduler_config()))
    write_lines(Path("audit.jsonl"), chain_lines(hostile_record(number) for number in range(8)))
    raw = b"".join(_raw(line) + b"\n" for line in chain_lines([hostile_record()]))
    Path("raw.jsonl").write_bytes(raw + b"\x1b[31mnot a record\n\x9b{}\n")
    Path("trace.csv").write_text(f"arrival,requests,annotations\n0,cpu=1,workload-type={HOSTILE!r}\n1,cpu=1,\n")
    Path("tls").mkdir()
    write_certificates(Path("tls"))


def _policy(spec: dict[str, Any]) -> dict[str, Any]:
    kind = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
    return {**kind, "metadata": {"name": "a" if spec else HOSTILE}, "spec": spec}


def _scheduler_config() -> dict[str, Any]:
    profile = {"schedulerName": HOSTILE, "plugins": {"filter": {"enabled": [{"name": HOSTILE}]}}}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
        HOSTILE: HOSTILE,
    }


def _raw(line: bytes) -> bytes:
    """Return the record with raw characters where JSON allows them, as a forger would write it."""
    return orjson.dumps(orjson.loads(line)).replace(b'{"time"', b'{\r\t"time"', 1)


COMMANDS: list[list[str]] = [
    ["check", "-f", "pod.json", "--cluster", "cluster.json"],
    ["check", "-f", "pods.json", "--cluster", "cluster.json", "--max-nodes", "0"],
    ["check", "-f", "pod.json", "--cluster", "cluster.json", "-o", "json"],
    ["check", "-f", "pod.json", "--cluster", "cluster.json", "--mutate"],
    ["check", "-f", "refused.json", "--cluster", "cluster.json", "--mutate"],
    ["check", "-f", "refused.json", "--cluster", "cluster.json", "--mutate", "-o", "json"],
    ["check", "-f", "malformed.json", "--cluster", "cluster.json"],
    ["check", "-f", "surrogate.json", "--cluster", "cluster.json"],
    ["check", "-f", "surrogate.json", "--cluster", "cluster.json", "-o", "json"],
    ["check", "-f", "kind.json", "--cluster", "cluster.json"],
    ["check", "-f", "pod.json", "--cluster", "bad-cluster.json"],
    ["check", "-f", "pod.json", "--cluster", "broken.yaml"],
    ["check", "-f", "pod.json", "--cluster", "cluster.json", "--scheduler-config", "scheduler.yaml"],
    ["check", "-f", "pod.json", "--cluster", "cluster.json", "--scheduler-profile", HOSTILE],
    ["check", "-f", "pod.json", "--cluster", "cluster.json", "--policy", "policy.yaml"],
    ["check", "-f", HOSTILE, "--cluster", "cluster.json"],
    ["check", "-f", "pod.json", "--cluster", HOSTILE],
    ["check", "-f", "pod.json", "--kubeconfig", HOSTILE],
    ["check", f"--{HOSTILE}"],
    ["capacity", "-f", "pod.json", "--cluster", "cluster.json"],
    ["capacity", "-f", "pods.json", "--cluster", "cluster.json", "--together"],
    ["capacity", "-f", "pod.json", "--cluster", "cluster.json", "-o", "json"],
    ["capacity", "-f", "pods.json", "--cluster", "cluster.json", "--together", "-o", "json"],
    ["capacity", "-f", "refused.json", "--cluster", "cluster.json", "--mutate"],
    ["capacity", "-f", "malformed.json", "--cluster", "cluster.json"],
    ["capacity", "-f", "surrogate.json", "--cluster", "cluster.json", "-o", "json"],
    ["capacity", "-f", "kind.json", "--cluster", "cluster.json"],
    ["capacity", "-f", "pod.json", "--cluster", "cluster.json", "--until", HOSTILE],
    ["capacity", "-f", "pod.json", "--cluster", "cluster.json", "--scheduler-profile", HOSTILE],
    ["reclaim", "--cluster", "held.json"],
    ["reclaim", "--cluster", "held.json", "-o", "json"],
    ["reclaim", "--cluster", "cluster.json", "--class", HOSTILE],
    ["nodes", "--cluster", "cluster.json"],
    ["nodes", "--cluster", "cluster.json", "-o", "json"],
    ["allowed", "-n", HOSTILE, "--cluster", "cluster.json"],
    ["allowed", "-n", HOSTILE, "--cluster", "cluster.json", "-o", "json"],
    ["explain", f"pod/{HOSTILE}", "--cluster", "cluster.json"],
    ["explain", f"{HOSTILE}/a", "--cluster", "cluster.json"],
    ["version"],
    [HOSTILE],
    *(["mutate", "-f", "pod.json", "-o", output] for output in ("yaml", "json", "patch", "diff")),
    *(["mutate", "-f", "surrogate.json", "-o", output] for output in ("yaml", "json", "patch", "diff")),
    ["mutate", "-f", "pod.json", "--cluster", "cluster.json"],
    ["mutate", "-f", "refused.json"],
    ["mutate", "-f", "refused.json", "-o", "patch"],
    ["mutate", "-f", "malformed.json"],
    ["mutate", "-f", "broken.yaml"],
    ["mutate", "-f", "pod.json", "-o", HOSTILE],
    ["mutate", "-f", "pod.json", "--policy", "policy.yaml"],
    *(["audit", command, file] for command in ("list", "summary", "verify") for file in ("audit.jsonl", "raw.jsonl")),
    *(
        ["audit", command, "-o", "json", file]
        for command in ("list", "summary", "verify")
        for file in ("audit.jsonl", "raw.jsonl")
    ),
    ["audit", "show", "d1", "audit.jsonl"],
    ["audit", "show", "d1", "raw.jsonl"],
    ["audit", "show", "-o", "json", "d1", "raw.jsonl"],
    ["audit", "show", "d", "audit.jsonl"],
    ["audit", "show", HOSTILE, "audit.jsonl"],
    ["audit", "list", HOSTILE],
    ["audit", "list", "--since", HOSTILE, "audit.jsonl"],
    ["audit", "verify", "--head", HOSTILE, "audit.jsonl"],
    ["audit", "sql", "SELECT * FROM records", "raw.jsonl"],
    ["audit", "sql", "SELECT * FROM records", "-o", "json", "raw.jsonl"],
    ["audit", "sql", HOSTILE, "audit.jsonl"],
    ["audit", "export", "-o", f"{HOSTILE}/{HOSTILE}", "audit.jsonl"],
    *(
        ["replay", "--policy", "named.yaml", "--against", "named.yaml", "-o", output, "pods.json"]
        for output in ("text", "json", "diff")
    ),
    ["replay", "--policy", "named.yaml", "audit.jsonl"],
    ["replay", "--policy", HOSTILE, HOSTILE],
    ["replay", "--policy", "named.yaml", HOSTILE],
    ["policy", "check", "policy.yaml"],
    ["policy", "check", "named.yaml"],
    ["policy", "check", "broken.yaml"],
    ["policy", "check", HOSTILE],
    ["policy", "show", "--policy", "named.yaml"],
    ["policy", "show", "--policy", "named.yaml", "-o", "json"],
    ["policy", "schema"],
    ["certs", "status", "--dir", "tls"],
    ["certs", "status", "--dir", "tls", "-o", "json"],
    ["certs", "status", "--dir", HOSTILE],
    ["certs", "issue", "--dir", "tls", "--dns", HOSTILE],
    ["certs", "issue", "--dir", f"new {HOSTILE}", "--dns", "localhost"],
    ["certs", "register", "--dir", "tls", "--kubeconfig", HOSTILE],
    ["serve", "--tls-dir", HOSTILE],
    ["serve", "--tls-dir", "tls", "--listen", HOSTILE],
    ["serve", "--tls-dir", "tls", "--audit", f"{HOSTILE}/{HOSTILE}"],
    ["serve", "--tls-dir", "tls", "--policy", "policy.yaml"],
    ["simulate", "--trace", "trace.csv", "--cluster", "cluster.json"],
    ["simulate", "--trace", "trace.csv", "--cluster", "cluster.json", "-o", "json"],
    ["simulate", "--trace", "broken.yaml", "--cluster", "cluster.json"],
    ["simulate", "--trace", HOSTILE, "--cluster", "cluster.json"],
    ["simulate", "--trace", "trace.csv", "--cluster", "cluster.json", "--plot", f"{HOSTILE}/{HOSTILE}"],
    ["doctor", "--kubeconfig", HOSTILE],
    ["doctor", "--check", HOSTILE],
    ["doctor", "--list"],
    ["snapshot", "--kubeconfig", HOSTILE],
    ["snapshot", "--kubeconfig", "pod.json"],
    ["snapshot", "-o", f"{HOSTILE}/{HOSTILE}"],
    ["missed", "--cluster", "pods.json"],
    ["missed", "--cluster", "pods.json", "-o", "json"],
    ["missed", "--cluster", HOSTILE],
    ["demo", "--audit", f"demo {HOSTILE}"],
    ["console", "--cluster", HOSTILE],
    ["console", "--listen", f"192.0.2.1{HOSTILE}:1"],
    ["report", "--cluster", "pods.json", "-o", f"{HOSTILE}/{HOSTILE}"],
    ["report", "--cluster", HOSTILE, "-o", "report.html"],
]


def named(arguments: list[str]) -> str:
    return " ".join(arguments).replace(HOSTILE, "HOSTILE")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("arguments", COMMANDS, ids=named)
def test_no_command_prints_control_characters(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)

    assert done.output or done.errors
    assert "Traceback" not in done.errors
    assert_safe(done.output)
    assert_safe(done.errors)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "-f", "pods.json", "--cluster", "cluster.json"],
        ["mutate", "-f", "pod.json", "-o", "diff"],
        ["mutate", "-f", "refused.json"],
        ["audit", "list", "audit.jsonl"],
        ["audit", "show", "d1", "audit.jsonl"],
        ["serve", "--tls-dir", "tls", "--audit", f"{HOSTILE}/{HOSTILE}"],
    ],
    ids=named,
)
def test_on_a_terminal_only_our_colours_are_control_sequences(arguments: list[str]) -> None:
    shown = on_a_terminal([forked(), *arguments])

    assert "\x1b[" in shown or arguments[0] == "serve"
    assert_safe(_OWN_STYLE.sub("", shown).replace("\r\n", "\n"))
    assert r"\x1b]0;" in shown.replace(r"\u00", r"\x")


def on_a_terminal(command: list[str]) -> str:
    """Return the output of the command on a terminal."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "COLUMNS": "500"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # the other end is closed
            while data := os.read(ours, 65536):
                shown += data
    os.close(ours)
    return shown.decode()


@pytest.mark.usefixtures("folder")
def test_json_output_holds_the_same_values(run: Run) -> None:
    assert [each.content for each in parse(run("mutate", "-f", "pod.json", "-o", "yaml").output, "yaml")] == [
        orjson.loads(run("mutate", "-f", "pod.json", "-o", "json").output)
    ]
    listed = [orjson.loads(line) for line in run("audit", "list", "-o", "json", "audit.jsonl").output.splitlines()]
    assert listed == [orjson.loads(line) for line in Path("audit.jsonl").read_bytes().splitlines()]


ANSWERS: dict[str, tuple[int, dict[str, Any]]] = {
    "refusal": (403, {"kind": "Status", "code": 403, "reason": HOSTILE, "message": HOSTILE}),
    "fault": (500, {"kind": "Status", "code": 500, "reason": HOSTILE, "message": HOSTILE}),
    "objects": (200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [hostile_nodes()[0]]}),
    "malformed objects": (
        200,
        {
            "kind": "List",
            "metadata": {"resourceVersion": "1"},
            "items": [{"metadata": {"name": HOSTILE, "namespace": HOSTILE, "labels": HOSTILE}, "spec": {}}],
        },
    ),
    "no list": (200, {"kind": HOSTILE, "message": HOSTILE, "data": HOSTILE}),
    "configuration": (
        200,
        {"metadata": {"name": HOSTILE}, "webhooks": [{"name": HOSTILE, "clientConfig": {"caBundle": HOSTILE}}]},
    ),
}
ASKING: list[list[str]] = [
    ["missed"],
    ["missed", "-o", "json"],
    ["snapshot"],
    ["snapshot", "--all-kinds"],
    ["report", "-o", "report.html"],
    ["check", "-f", "pod.json"],
    ["check", "-f", "pod.json", "-o", "json"],
    ["doctor", "--configuration", HOSTILE, "--within-seconds", "20"],
    ["doctor", "-o", "json"],
    ["certs", "status"],
    ["certs", "register", "--dir", "tls", "--skip-probe", "--dry-run", "server"],
]


@pytest.mark.slow
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("arguments", ASKING, ids=named)
def test_answers_of_an_api_server_are_escaped(run: Run, folder: Path, arguments: list[str], answer: str) -> None:
    with api_server(folder, *ANSWERS[answer]) as kubeconfig:
        done = run(*arguments, "--kubeconfig", kubeconfig)

    assert done.output or done.errors
    assert "Traceback" not in done.errors
    assert_safe(done.output)
    assert_safe(done.errors)


LOGGING = """
import json, sys, structlog
from webhook.cli.output.logs import configure_logs
hostile = json.loads(sys.argv[1])
configure_logs(sys.argv[2], "info")
log = structlog.get_logger()
log.warning("heard", pod=hostile, labels={hostile: [hostile]})
log.warning(hostile)
try:
    raise ValueError(hostile)
except ValueError:
    log.exception("admission failed", pod=hostile)
"""


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["text", "json", "auto"])
def test_logs_have_no_control_characters(log_format: str) -> None:
    command = [sys.executable, "-c", LOGGING, json.dumps(HOSTILE + SURROGATE), log_format]
    result = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, timeout=60)

    text = result.stderr.decode()
    assert "heard" in text
    assert_safe(_without_traceback(text))


def _without_traceback(text: str) -> str:
    """Return `text` without forged lines in tracebacks, which keep their line breaks."""
    return text.replace("\nFORGED", "\n | FORGED")


def test_an_internal_error_is_printed_without_control_characters(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr("webhook.cli.inputs.session.read_manifests", fail)
    done = run("check", "-f", "pod.json", "--cluster", "cluster.json")

    assert done.code == 1
    assert_safe(_without_traceback(done.errors))


def test_json_is_printed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of a pipe need not wait for the end of the command."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8"))

    sys.stdout.write("text\n")
    echo_json({"a": 1})

    assert raw.getvalue() == b'text\n{"a":1}\n'


@pytest.mark.parametrize(
    ("is_terminal", "printed"),
    [pytest.param(True, "\rone\rtwo", id="a terminal"), pytest.param(False, "one\ntwo\n", id="a file")],
)
def test_progress_replaces_the_last_line_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, printed: str
) -> None:
    errors = io.StringIO()
    monkeypatch.setattr(errors, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stderr", errors)

    for text in ("one", "two"):
        echo_progress(text)

    assert errors.getvalue() == printed


def test_progress_is_printed_five_times_a_second_at_most_and_ended_once(monkeypatch: pytest.MonkeyPatch) -> None:
    errors, now = io.StringIO(), 100.0
    monkeypatch.setattr(errors, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setattr("webhook.cli.output.terminal.time.monotonic", lambda: now)

    progress = Progress()
    for seconds in (0.1, 0.2, 0.25, 0.39, 0.41):
        now = 100 + seconds
        progress.show(f"{seconds}")
    progress.end()
    progress.end()

    assert errors.getvalue() == "\r0.2\r0.41\n"


def test_progress_is_no_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The console takes remarks of each request, and the terminal is that of its server."""
    errors = io.StringIO()
    monkeypatch.setattr(errors, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setattr("webhook.cli.output.terminal._SECONDS_BETWEEN", 0)

    with remarks_taken() as remarks:
        progress = Progress()
        progress.show("1 placed")
        progress.end()

    assert (remarks, errors.getvalue()) == ([], "")


def test_remarks_are_printed_again_after_a_block_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="failed"), remarks_taken() as remarks:  # noqa: PT012 - what fails is the block
        warn("one")
        raise ValueError("failed")
    warn("two")

    assert remarks == ["Warning: one"]
    assert capsys.readouterr().err == "Warning: two\n"


@pytest.mark.slow
def test_all_output_goes_through_one_module() -> None:
    found = []
    folders = (ROOT / "webhook" / "cli", ROOT / "certs", ROOT / "packages")
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        if path.name in ("terminal.py", "screen.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if re.fullmatch(
                    r"print|click\.s?echo|click\.style|Console|sys\.std(out|err)\..*write.*|.*print_exc", called
                ):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {called}")
    assert found == []
