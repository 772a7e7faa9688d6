"""A cache folder in which everything is there as a whole or not at all, however many builders there are."""

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Progress = Callable[[str], None]

_UNFINISHED = "unfinished-"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where built programs are kept: below XDG_CACHE_HOME, else ~/.cache."""
    base = Path(environ["XDG_CACHE_HOME"]) if environ.get("XDG_CACHE_HOME") else Path.home() / ".cache"
    return base / "placement-webhook" / "controlplane"


@contextmanager
def locked(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the folder's lock; what a killed builder left unfinished is gone when it is held."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"another process builds in {folder}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in folder.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(leftover)
        yield


@contextmanager
def made_whole(target: Path) -> Iterator[Path]:
    """A new folder to fill, which becomes `target` at the end, and is gone if anything goes wrong."""
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=target.parent))
    try:
        yield unfinished
        unfinished.chmod(0o755)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
