"""Go commands that build programs from pinned modules, with progress output."""

import re
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.cache import Progress

_SETTINGS = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOSUMDB": "off", "GOWORK": "off"}
_PROGRESS_INTERVAL_SECONDS = 15
_MODULES_SHOWN = 10
_REFUSED = re.compile(r"(?:^|\s)(?P<module>[\w.~/-]+@v[\w.+-]+): (?P<why>.+)$")


class BuildFailed(Exception):  # noqa: N818 - a finding that is shown to the user
    """The programs could not be built; names each module that could not be downloaded, or the compiler's last lines."""


class GoCommand:
    """Runs go commands in the module in `folder`, reporting how far they are every 15 seconds.

    go.sum pins every module by its hash, hence no checksum database is asked.
    """

    def __init__(self, go: Path, folder: Path, environ: Mapping[str, str], progress: Progress) -> None:
        self._go = go
        self._folder = folder
        self._environ = {**environ, **_SETTINGS}
        self._progress = progress

    def __call__(self, *arguments: str, doing: str) -> list[str]:
        """Return the lines of its output, standard error included.

        Raises:
            BuildFailed: the command failed.
        """
        lines: list[str] = []
        done = threading.Event()
        reporter = threading.Thread(target=self._report, args=(doing, lines, done), daemon=True)
        with subprocess.Popen(
            [str(self._go), *arguments],
            cwd=self._folder,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            reporter.start()
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    lines.append(line.rstrip())
            except BaseException:
                process.kill()
                raise
            finally:
                done.set()
                reporter.join()
        if process.returncode != 0:
            raise BuildFailed(explained(lines))
        return lines

    def _report(self, doing: str, lines: list[str], done: threading.Event) -> None:
        began = time.monotonic()
        while not done.wait(_PROGRESS_INTERVAL_SECONDS):
            self._progress(f"{doing}: {len(lines)} so far, {time.monotonic() - began:.0f} s")


def explained(output: list[str]) -> str:
    """Return the error in the output of a go command: each module that it could not download, else its last lines."""
    refused: dict[str, str] = {}
    for line in output:
        if found := _REFUSED.search(line):
            refused.setdefault(found["module"], found["why"])
    if refused:
        shown = [f"Go module {module}: {why}" for module, why in list(refused.items())[:_MODULES_SHOWN]]
        return "; ".join(shown) + (f"; and {len(refused) - len(shown)} more" if len(refused) > len(shown) else "")
    return "go: " + " / ".join(line for line in output[-5:] if line)
