"""A container engine that can build an image: the docker that runs, else a private dockerd for the time of a build.

The private dockerd runs in a mount and a PID namespace of its own, without bridge and firewall rules, and keeps
everything below one folder. The kernel kills it and its processes when this process ends, however it ends.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.cache import Progress
from tests.controlplane.polling import wait_for
from tests.node.running.namespaces import remove_cgroup

_START_SECONDS = 60.0
_STOP_SECONDS = 20.0

# dockerd would read the settings of the machine's docker, and use its containerd.
_HIDDEN = ("/etc/docker", "/run/docker", "/run/containerd")
_HIDE = f'for folder in {" ".join(_HIDDEN)}; do mkdir -p $folder; mount -t tmpfs none $folder; done; exec "$@"'

_CGROUP = "placement-webhook-image"

ISOLATED = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Run a command with mounts and processes of its own, which end with this process."""


class NoImage(Exception):  # noqa: N818 - a finding: tests say what is missing
    """The image cannot be built here; says why, and the remedy."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The command docker, connected to a running engine. No other process uses a private engine."""

    environ: Mapping[str, str]
    log: Path
    private: bool

    def __call__(self, *arguments: str) -> str:
        """Return what the command prints on standard output.

        Raises:
            NoImage: it failed; with the end of what it printed.
        """
        outcome = subprocess.run(["docker", *arguments], env=self.environ, capture_output=True, text=True, check=False)
        if outcome.returncode:
            raise NoImage(f"docker {arguments[0]}: {_end(outcome.stderr or outcome.stdout)}")
        return outcome.stdout.strip()

    def build(self, *arguments: str, progress: Progress | None = None) -> None:
        """Build an image, with all output in `log` and each step as progress.

        Raises:
            NoImage: a step failed; with the end of the output.
        """
        # The package index and proxies of the machine are often reachable from its own network only.
        proxies = [name for name in self.environ if name.lower() in {"http_proxy", "https_proxy", "no_proxy"}]
        given = [word for name in proxies for word in ("--build-arg", name)]
        command = ["docker", "build", "--network", "host", *given, *arguments]
        with (
            self.log.open("a") as log,
            subprocess.Popen(
                command, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            ) as process,
        ):
            output = []
            for line in process.stdout or ():
                log.write(line)
                output.append(line)
                if progress and line.startswith("Step "):
                    progress(line.strip()[:100])
        if process.returncode:
            raise NoImage(f"docker build failed, see {self.log}: {_end(''.join(output))}")

    @contextmanager
    def passing(self, *images: str) -> Iterator[None]:
        """Remove images after the block, however it ends; a private engine keeps them for the next build."""
        try:
            yield
        finally:
            for image in images:
                if not self.private and self.has(image):
                    self("image", "rm", image)

    def has(self, image: str) -> bool:
        """Return whether the engine has an image of this name."""
        command = ["docker", "image", "inspect", image]
        return subprocess.run(command, env=self.environ, capture_output=True, check=False).returncode == 0


def _end(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return "; ".join(lines[-4:])


@contextmanager
def running_engine(environ: Mapping[str, str], folder: Path, progress: Progress) -> Iterator[Engine]:
    """Return the docker that runs; where none does, a private one that keeps its data in `folder`.

    Raises:
        NoImage: there is no docker and none can be started.
    """
    if shutil.which("docker") is None:
        raise NoImage("docker is not installed: install it, such as by `apt-get install docker.io`")
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "build.log"
    log.write_text("")
    if answers(environ):
        yield Engine(environ, log, private=False)
        return
    missing = [name for name in ("dockerd", "setpriv", "unshare") if shutil.which(name) is None]
    if missing:
        raise NoImage(
            f"no docker runs, and {missing[0]} is not installed: start docker, or `apt-get install docker.io`"
        )
    if os.geteuid() != 0:
        raise NoImage("no docker runs, and only root can start one: start docker, or run this as root")
    private = {**environ, "DOCKER_HOST": f"unix://{folder / 'docker.sock'}"}
    with _dockerd(private, folder, progress):
        yield Engine(private, log, private=True)


def answers(environ: Mapping[str, str]) -> bool:
    """Return whether a docker runs that this process may use; without the command, none does."""
    if shutil.which("docker") is None:
        return False
    command = ["docker", "version", "--format", "{{.Server.Version}}"]
    return subprocess.run(command, env=environ, capture_output=True, check=False).returncode == 0


@contextmanager
def _dockerd(environ: Mapping[str, str], folder: Path, progress: Progress) -> Iterator[None]:
    # What a dockerd left that was killed.
    for leftover in (folder / "docker.sock", folder / "pid"):
        leftover.unlink(missing_ok=True)
    shutil.rmtree(folder / "run", ignore_errors=True)
    flags = {"data-root": folder / "data", "exec-root": folder / "run", "pidfile": folder / "pid"}
    command = [
        *ISOLATED,
        *("sh", "-c", _HIDE, "sh"),
        *("dockerd", "--host", environ["DOCKER_HOST"], "--iptables=false", "--ip-masq=false", "--bridge=none"),
        *("--cgroup-parent", f"/{_CGROUP}"),
        *(word for name, path in flags.items() for word in (f"--{name}", str(path))),
    ]
    progress("no docker runs: starting a private one")
    log = folder / "dockerd.log"
    with (
        log.open("w") as output,
        subprocess.Popen(command, env=environ, stdout=output, stderr=output, start_new_session=True) as process,
    ):
        try:
            wait_for(lambda: process.poll() is not None or answers(environ), "dockerd", deadline_seconds=_START_SECONDS)
            if process.poll() is not None:
                raise NoImage(f"no private dockerd starts here, see {log}: {_end(log.read_text())}")
            yield
        finally:
            if process.poll() is None:
                _end_of(process)
            remove_cgroup(_CGROUP)


def _end_of(process: "subprocess.Popen[bytes]") -> None:
    """End dockerd as it wants to be ended, so that its data stays usable; unshare itself ignores the signal."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
