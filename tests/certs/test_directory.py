"""A directory of certificates: modes, atomic writes, and errors."""

import gc
import os
import stat
from dataclasses import fields, replace
from pathlib import Path

import pytest

from certs import directory as store
from certs.inspection import Artifacts
from tests.support.tls.certificates import FRESH, OTHER
from webhook.documents.field import InvalidInput

FILES = ["ca.crt", "ca.key", "tls.crt", "tls.key"]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def modes(directory: Path) -> dict[str, str]:
    return {path.name: f"{stat.S_IMODE(path.stat().st_mode):o}" for path in sorted(directory.iterdir())}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_keys_are_0600_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store.write(tmp_path / "a" / "b", FRESH)
    finally:
        os.umask(before)
    assert modes(tmp_path / "a" / "b") == {"ca.crt": "644", "ca.key": "600", "tls.crt": "644", "tls.key": "600"}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    store.write(tmp_path, FRESH)
    assert store.read(tmp_path) == FRESH


def test_files_that_are_not_given_stay(tmp_path: Path) -> None:
    store.write(tmp_path, FRESH)
    store.write(tmp_path, Artifacts(certificate=OTHER.certificate, key=OTHER.key))
    assert store.read(tmp_path) == replace(FRESH, certificate=OTHER.certificate, key=OTHER.key)


def test_readable_keys_of_before_become_0600(tmp_path: Path) -> None:
    (tmp_path / "tls.key").touch(mode=0o644)
    store.write(tmp_path, FRESH)
    assert modes(tmp_path)["tls.key"] == "600"


def test_removed_files_are_gone(tmp_path: Path) -> None:
    store.write(tmp_path, FRESH)
    store.write(tmp_path, replace(FRESH, ca_key=None), FRESH)
    assert store.read(tmp_path) == replace(FRESH, ca_key=None)


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    store.write(tmp_path, FRESH)
    assert names(tmp_path) == [*FILES[:2], "notes.txt", *FILES[2:]]


@pytest.mark.parametrize("failing", FILES)
def test_a_failure_leaves_nothing_half_written(tmp_path: Path, failing: str) -> None:
    """A directory in a file's place cannot be replaced by a file, not even by root."""
    store.write(tmp_path, FRESH)
    (tmp_path / failing).unlink()
    (tmp_path / failing / "inside").mkdir(parents=True)
    with pytest.raises(InvalidInput, match="cannot be written"):
        store.write(tmp_path, OTHER)
    whole = {getattr(each, field.name) for each in (FRESH, OTHER) for field in fields(Artifacts)}
    assert names(tmp_path) == FILES
    assert all((tmp_path / name).read_bytes() in whole for name in FILES if name != failing)


def test_a_key_is_in_place_before_its_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads the files at each new certificate has the new key by then. A rename is atomic in one folder."""
    placed, replace_file = list[str](), Path.replace

    def note(path: Path, target: Path) -> Path:
        assert path.parent == target.parent
        placed.append(target.name)
        return replace_file(path, target)

    monkeypatch.setattr(Path, "replace", note)
    store.write(tmp_path, FRESH)

    assert sorted(placed) == FILES
    assert placed.index("ca.key") < placed.index("ca.crt")
    assert placed.index("tls.key") < placed.index("tls.crt")


def test_staging_fails_before_anything_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(tmp_path, FRESH)
    synced: list[int] = []

    def disk_full_at_the_third_file(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full_at_the_third_file)
    with pytest.raises(InvalidInput, match="No space left on device"):
        store.write(tmp_path, OTHER)
    assert store.read(tmp_path) == FRESH
    assert names(tmp_path) == FILES


def test_missing_directory_is_reported_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"--dir: .*no such directory; `placement-webhook certs issue"):
        store.read(tmp_path / "absent")


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="is not a directory"):
        store.read(tmp_path / "file")
    with pytest.raises(InvalidInput, match="cannot be written"):
        store.write(tmp_path / "file", FRESH)


def test_unreadable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tls.key").mkdir()
    with pytest.raises(InvalidInput, match=r"tls\.key.*cannot be read"):
        store.read(tmp_path)


@pytest.mark.parametrize(
    ("mode", "safe"), [(0o600, True), (0o400, True), (0o440, True), (0o644, False), (0o660, False)]
)
def test_keys_that_others_can_read_are_reported(tmp_path: Path, mode: int, safe: bool) -> None:
    store.write(tmp_path, FRESH)
    (tmp_path / "tls.key").chmod(mode)
    assert [error.path for error in store.mode_errors(tmp_path)] == ([] if safe else ["tls.key"])


def test_a_file_that_was_held_and_is_gone_already_is_no_error(tmp_path: Path) -> None:
    store.write(tmp_path, FRESH)
    (tmp_path / "ca.key").unlink()
    store.write(tmp_path, replace(FRESH, ca_key=None), FRESH)

    assert names(tmp_path) == ["ca.crt", "tls.crt", "tls.key"]


def test_no_file_stays_open(tmp_path: Path) -> None:
    gc.collect()
    before = sorted(Path("/proc/self/fd").iterdir())
    store.write(tmp_path, FRESH)
    assert sorted(Path("/proc/self/fd").iterdir()) == before
