"""The files of a mounted Secret, written as a kubelet writes them."""

import base64
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.1
_KEYS = ("tls.crt", "tls.key")


@contextmanager
def mounted(read_secret: Callable[[], dict[str, Any] | None], folder: Path, delay_seconds: float) -> Iterator[None]:
    """Keep tls.crt and tls.key of the Secret in `folder` until the block ends, each change after `delay_seconds`.

    A Secret that is missing, or lacks one of the two keys, changes nothing.

    Source: k8s.io/kubernetes/pkg/volume/util/atomic_writer.go Write
    """
    folder.mkdir()
    ended = threading.Event()

    def keep() -> None:
        shown: list[Any] = []
        while not ended.wait(POLL_SECONDS):
            data = (read_secret() or {}).get("data") or {}
            found = [data.get(key) for key in _KEYS]
            if None not in found and found != shown and not ended.wait(delay_seconds):
                _write(folder, data)
                shown = found

    thread = threading.Thread(target=keep, name="kubelet")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _write(folder: Path, data: dict[str, str]) -> None:
    made = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    for name in _KEYS:
        (made / name).write_bytes(base64.b64decode(data[name]))
    link = folder / "..data_tmp"
    link.symlink_to(made.name)
    link.replace(folder / "..data")
    for name in _KEYS:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
