"""Read and write a directory with ca.crt, ca.key, tls.crt and tls.key. Keys have mode 0600; writes are atomic."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from certs.inspection import CA_CERTIFICATE, CA_KEY, CERTIFICATE, FILES, KEY, Artifacts
from webhook.documents.field import FieldError, InvalidInput, invalid

# A key is in place before its certificate.
_WRITTEN = (CA_KEY, CA_CERTIFICATE, KEY, CERTIFICATE)
_NOTHING = Artifacts()
_KEY_MODE = 0o600
_CERTIFICATE_MODE = 0o644
# A Secret volume lets the pod's group (fsGroup) read keys. No one else needs to read them.
_UNSAFE_KEY_BITS = 0o037


def read(directory: Path, *, may_be_absent: bool = False) -> Artifacts:
    """Return the files that exist in `directory`, or none if `may_be_absent` is true and it does not exist.

    Raises:
        InvalidInput: the directory does not exist, or a file in it cannot be read.
    """
    if may_be_absent and not directory.exists():
        return Artifacts()
    if not directory.is_dir():
        detail = "is not a directory" if directory.exists() else "no such directory"
        remedy = "`placement-webhook certs issue --dir DIR --dns NAME` makes one"
        raise InvalidInput([invalid("--dir", str(directory), f"{detail}; {remedy}")])
    return Artifacts(*(_content(directory / name) for name in FILES))


def write(directory: Path, artifacts: Artifacts, held: Artifacts = _NOTHING) -> None:
    """Write the files of `artifacts` that differ from `held` to `directory`, which is created if needed.

    A file that is only in `held` is deleted. All files are first written under temporary names and then renamed, so a
    concurrent reader never reads a partial file.

    Raises:
        InvalidInput: the directory cannot be created or written. If the disk is full, nothing has changed.
    """
    files = dict(zip(FILES, zip(artifacts, held, strict=True), strict=True))
    changed = {name: files[name][0] for name in _WRITTEN if files[name][0] != files[name][1]}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _replace(directory, {name: content for name, content in changed.items() if content is not None})
        for name, content in changed.items():
            if content is None:
                (directory / name).unlink(missing_ok=True)
        _sync(directory)
    except OSError as error:
        detail = f"cannot be written: {error.strerror or error}; choose another directory or make this one writable"
        raise InvalidInput([invalid("--dir", str(directory), detail)]) from error


def mode_errors(directory: Path) -> list[FieldError]:
    """Return an error for each key in `directory` that others can read."""
    errors: list[FieldError] = []
    for name in (CA_KEY, KEY):
        with contextlib.suppress(OSError):
            mode = stat.S_IMODE((directory / name).stat().st_mode)
            if mode & _UNSAFE_KEY_BITS:
                errors.append(invalid(name, f"{mode:04o}", f"others can read the key; chmod 600 {directory / name}"))
    return errors


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput([invalid("--dir", str(path), f"cannot be read: {error.strerror or error}")]) from error


def _replace(directory: Path, files: Mapping[str, bytes]) -> None:
    staged: dict[Path, Path] = {}
    with contextlib.ExitStack() as stack:
        for name, content in files.items():
            # mkstemp creates the file with mode 0600, so that a key is never readable to others.
            descriptor, path = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
            stack.callback(Path(path).unlink, missing_ok=True)
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(descriptor, _KEY_MODE if name in (CA_KEY, KEY) else _CERTIFICATE_MODE)
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            staged[Path(path)] = directory / name
        for temporary, final in staged.items():
            temporary.replace(final)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
