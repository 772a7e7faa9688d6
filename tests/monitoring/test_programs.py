"""The sources of Prometheus, and the errors if it is not available."""

from pathlib import Path

import pytest

from tests.monitoring.programs import PROGRAMS, MissingPrometheus, find_or_download


def put_program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def environment(tmp_path: Path, **programs: str) -> dict[str, str]:
    """Return an environment whose PATH has these stand-ins before the system's, and whose cache is empty."""
    for name, script in programs.items():
        put_program(tmp_path / "bin", name, script)
    (tmp_path / "bin").mkdir(exist_ok=True)
    return {"PATH": f"{tmp_path / 'bin'}:/no-such-folder", "XDG_CACHE_HOME": str(tmp_path / "cache")}


def ignore(line: str) -> None:
    """Progress that no test reads."""


def test_programs_of_the_path_are_taken(tmp_path: Path) -> None:
    environ = environment(tmp_path, prometheus="", promtool="")

    assert find_or_download(environ, pytest.fail) == {name: tmp_path / "bin" / name for name in PROGRAMS}


def test_a_machine_without_apt_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingPrometheus, match="apt-get: No such file or directory; put prometheus and promtool into"):
        find_or_download(environment(tmp_path), ignore)


def test_the_last_line_of_apt_is_the_reason(tmp_path: Path) -> None:
    fails = "echo reading >&2; echo 'E: Unable to locate package prometheus' >&2; exit 100"
    environ = environment(tmp_path, **{"apt-get": fails})

    with pytest.raises(MissingPrometheus, match="apt-get update: E: Unable to locate package prometheus; put"):
        find_or_download(environ, ignore)
    assert [each.name for each in (tmp_path / "cache" / "placement-webhook" / "prometheus").iterdir()] == ["lock"]
