"""The records of what kube-scheduler's plugins answered in their own unit tests, made once for each version."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.build import GO_MODULE
from tests.controlplane.cache import Progress, cache_folder, locked, made_whole
from tests.controlplane.toolchain import NoToolchain, find_or_install
from tests.upstream.tracing import PLUGINS, TRACED, traced_copy

_OWN = Path(__file__).parent
_KEY = (
    *(GO_MODULE / name for name in ("go.mod", "go.sum")),
    *(_OWN / name for name in ("extraction.py", "tracing.py", "golang/traced.go")),
)
# These sleep, or hammer a cache, and place no pod.
_SKIPPED_TESTS = (
    "^(TestBindPodVolumes|TestCheckBindings.*|TestBindAPIUpdate|TestConcurrentAssume|TestAssumePodVolumes)$"
)
_RECORD = "TRACED "


class ExtractionFailed(Exception):  # noqa: N818 - a finding that is shown to the user
    """Upstream's tests could not be run: no Go toolchain, no modules, or they do not compile."""


def extracted(environ: Mapping[str, str], progress: Progress) -> Path:
    """Return the folder with a file of records for each package, extracted if this version of it never was.

    Each line of a file is a JSON object as golang/traced.go writes it, with the name of the `test` that it is of.

    Raises:
        ExtractionFailed: upstream's tests could not be run.
    """
    content = hashlib.sha256()
    for path in _KEY:
        content.update(path.read_bytes())
    cache = cache_folder(environ)
    target = cache / f"tables-{content.hexdigest()[:16]}"
    if not target.exists():
        with locked(cache, progress):
            if not target.exists():
                _extract(target, environ, progress)
    return target


def _extract(target: Path, environ: Mapping[str, str], progress: Progress) -> None:
    try:
        # The release that the control plane is of asks for it.
        wanted = next(line for line in (GO_MODULE / "go.mod").read_text().splitlines() if line.startswith("go "))
        go = find_or_install(wanted.removeprefix("go "), target.parent, environ, progress)
    except NoToolchain as missing:
        raise ExtractionFailed(str(missing)) from missing
    settings = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOSUMDB": "off", "GOWORK": "off", "GOFLAGS": "-mod=mod"}
    environ = {**environ, **settings}
    progress(f"extracting the tables of kube-scheduler's tests into {target}: two minutes on two cores, once")
    with tempfile.TemporaryDirectory(prefix="placement-webhook-tables-") as folder, made_whole(target) as unfinished:
        module = _traced_module(go, Path(folder), environ)
        for package in dict.fromkeys(each.package for each in TRACED):
            progress(f"tests of {package}")
            records = _records(go, module, package, environ)
            (unfinished / f"{package}.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))
    progress("extracted")


def _traced_module(go: Path, folder: Path, environ: Mapping[str, str]) -> Path:
    """Return a module in `folder` like that of the control plane, with Kubernetes replaced by the traced copy of it.

    Kubernetes' own go.sum pins what its tests need beyond.
    """
    module = folder / "module"
    module.mkdir()
    shutil.copy(GO_MODULE / "go.mod", module)
    shutil.copy(GO_MODULE / "go.sum", module)
    output = _run([str(go), "mod", "download", "-json", "k8s.io/kubernetes"], module, environ)
    kubernetes = Path(json.loads(output)["Dir"])
    traced_copy(kubernetes, folder / "kubernetes")
    sums = {line for path in (GO_MODULE, kubernetes) for line in (path / "go.sum").read_text().splitlines()}
    (module / "go.sum").write_text("".join(f"{line}\n" for line in sorted(sums)))
    with (module / "go.mod").open("a") as file:
        file.write(f"\nreplace k8s.io/kubernetes => {folder / 'kubernetes'}\n")
    return module


def _records(go: Path, module: Path, package: str, environ: Mapping[str, str]) -> list[dict[str, object]]:
    path = f"k8s.io/kubernetes/{PLUGINS}/{package}"
    arguments = ["test", "-json", "-trimpath", "-count=1", "-parallel=1", "-run=^Test", f"-skip={_SKIPPED_TESTS}", path]
    with tempfile.TemporaryDirectory(dir=module) as folder:
        command = [str(go), *arguments]
        outcome = _outcome(command, module, {**environ, "TRACED_FOLDER": folder})
        found = Path(folder) / "records"
        # A failed upstream test, such as one with a timeout, has recorded as much as one that passes.
        if not found.exists():
            raise _failed(command, outcome)
        records = [json.loads(line) for line in found.read_text().splitlines()]
    test_of = _tests(outcome.stdout)
    return [{"test": test_of[each["number"]], **each} for each in records]


def _tests(output: str) -> dict[int, str]:
    """Return the test of each record by number, from the output of the tests."""
    found = {}
    for line in output.splitlines():
        event = json.loads(line)
        text = event.get("Output", "")
        if text.startswith(_RECORD):
            found[int(text.removeprefix(_RECORD))] = event.get("Test", "")
    return found


def _run(command: list[str], folder: Path, environ: Mapping[str, str]) -> str:
    outcome = _outcome(command, folder, environ)
    if outcome.returncode != 0:
        raise _failed(command, outcome)
    return outcome.stdout


def _outcome(command: list[str], folder: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=dict(environ), capture_output=True, text=True, check=False)


def _failed(command: list[str], outcome: subprocess.CompletedProcess[str]) -> ExtractionFailed:
    lines = [line for line in (outcome.stderr or outcome.stdout).splitlines() if line.strip()]
    return ExtractionFailed(f"{' '.join(command[:3])}: {' / '.join(lines[-5:])}")


def main() -> int:
    """Extract the records and print their folder."""
    try:
        folder = extracted(os.environ, lambda line: print(f"upstream's tables: {line}", file=sys.stderr, flush=True))
    except ExtractionFailed as failure:
        print(f"upstream's tables: {failure}", file=sys.stderr)
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
