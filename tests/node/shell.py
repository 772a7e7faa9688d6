"""A shell of an administrator at the root of the project: the commands of the pages run in it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.controlplane.polling import Stopwatch
from tests.docs.markdown import blocks_under
from tests.node.running.namespaces import run
from tests.node.running.node import Node
from tests.support.objects.manifests import ROOT


class Shell:
    """Runs commands in a copy of the project's manifests, with kubectl, helm and placement-webhook in PATH.

    It must be used within the network of the node.
    """

    def __init__(self, node: Node, folder: Path, programs: Mapping[str, Path] = MappingProxyType({})) -> None:
        self.folder = folder
        for copied in ("deploy", "examples"):
            shutil.copytree(ROOT / copied, folder / copied)
        own = folder / "bin"
        own.mkdir()
        for name, program in programs.items():
            (own / name).symlink_to(program)
        environment = node.kubectl_environment
        found = [str(own), str(Path(sys.executable).parent), environment["PATH"]]
        homes = {f"HELM_{name}_HOME": str(folder / "helm" / name) for name in ("CACHE", "CONFIG", "DATA")}
        self._environment = {**environment, **homes, "PATH": os.pathsep.join(found)}

    def __call__(self, command: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Return the outcome of a command of bash, which stops at the first failure.

        Raises:
            CalledProcessError: it failed, and `check` was left on; with its output as a note.
        """
        script = f"cd {self.folder} && {command}"
        began = Stopwatch()
        try:
            return run(["bash", "-euc", script], check=check, environment=self._environment)
        finally:
            # pytest shows it with a failure.
            print(f"{began.seconds:6.1f} s  $ {command.strip()}", file=sys.stderr)

    def run_block(
        self, page: str, heading: str, number: int = 0, replaced: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        """Run a code block below a heading of a page, counted from 0, with words `replaced`; return its output.

        Raises:
            CalledProcessError: a command failed.
        """
        command = self.block(page, heading, number)
        for old, new in replaced.items():
            assert old in command
            command = command.replace(old, new)
        return self(command).stdout

    def block(self, page: str, heading: str, number: int = 0) -> str:
        """Return a code block of commands below a heading of a page, counted from 0."""
        found = [each for each in blocks_under(ROOT / page, heading) if each.language in ("console", "sh", "text")]
        commands = [each.text for each in found if each.text.startswith(("kubectl", "placement-webhook", "helm"))]
        assert len(commands) > number, f"{page}: {len(commands)} blocks of commands below {heading!r}"
        return commands[number]

    def replace(self, path: str, old: str, new: str) -> None:
        """Edit a file of the copy, as a page asks for."""
        file = self.folder / path
        text = file.read_text()
        assert old in text, f"{path}: no {old!r}"
        file.write_text(text.replace(old, new))
