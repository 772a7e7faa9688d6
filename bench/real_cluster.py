"""The control plane of a benchmark."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tests.controlplane.binaries import find_or_build
from tests.controlplane.control_plane import ControlPlane


@contextmanager
def control_plane_and_folder() -> Iterator[tuple[ControlPlane, Path]]:
    """Yield a control plane, and a folder that is removed with it; print to standard error what has to be built."""
    programs = find_or_build(os.environ, lambda line: click.echo(f"control plane: {line}", err=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "control-plane").mkdir()
        with ControlPlane(programs, folder / "control-plane") as control_plane:
            yield control_plane, folder
