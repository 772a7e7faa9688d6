"""Helm, built from its Go module as the control plane is."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.cache import Progress
from tests.schedulers.build import Recipe, built
from tests.support.objects.manifests import DEPLOY

CHART = DEPLOY / "chart"
RECIPE = Recipe("helm", "helm.sh/helm/v4", (), modules=Path(__file__).parent / "golang", minutes=4)

IMAGE = "placement-webhook"
"""The name of the image that the overlays have until it is set."""

Object = dict[str, Any]


def with_required(values: Object) -> Object:
    """Return `values` with the two that the chart requires: the image, and a scheduler unless there is a policy."""
    scheduler = {} if "policy" in values else {"scheduler": "volcano"}
    return {**scheduler, **values, "image": {"repository": IMAGE, **values.get("image", {})}}


@dataclass(frozen=True, slots=True)
class Helm:
    """The program, with its own files in `folder`."""

    program: Path
    folder: Path

    def __call__(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """Return what Helm prints on standard output, or on standard error if it fails and `check` is off.

        Raises:
            CalledProcessError: it failed; with its output as a note.
        """
        homes = {f"HELM_{name}_HOME": str(self.folder / name) for name in ("CACHE", "CONFIG", "DATA")}
        outcome = subprocess.run(
            [str(self.program), *arguments],
            env={**os.environ, **homes, "GOGC": "off"},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if outcome.returncode == 0:
            return outcome.stdout
        if check:
            failure = subprocess.CalledProcessError(outcome.returncode, outcome.args, outcome.stdout, outcome.stderr)
            failure.add_note(outcome.stdout + outcome.stderr)
            raise failure
        return outcome.stderr

    def template(
        self, values: Object | None = None, *flags: str, namespace: str = "placement-webhook", check: bool = True
    ) -> str:
        """Return the manifests of the chart with these values, and with Volcano where they choose no scheduler."""
        given = yaml.safe_dump(with_required(values or {}))
        arguments = ("template", "placement-webhook", str(CHART), "--namespace", namespace, "--values", "-", *flags)
        return self(*arguments, stdin=given, check=check)


def build(environ: Mapping[str, str], progress: Progress) -> Path:
    """Return the program, built if this version never was.

    Raises:
        BuildFailed: there is no Go toolchain, a module was refused, or it does not compile.
    """
    return built(RECIPE, environ, progress).program("helm")
