"""`make release`: what a version is published as, in one folder with the checksums of everything in it."""

import argparse
import os
import sys
from pathlib import Path

from tests.controlplane.binaries import MissingPrograms, find_or_build
from tests.deploy.release.artifacts import (
    SUMS,
    epoch,
    write_chart,
    write_image,
    write_manifests,
    write_packages,
    write_sums,
)
from tests.node.image_engine import NoImage


def main(arguments: list[str]) -> int:
    """Write everything but the software bill of materials, which `make sbom` has put there before."""
    parser = argparse.ArgumentParser(prog="python -m tests.deploy.release")
    parser.add_argument("output", type=Path)
    parser.add_argument("--no-image", action="store_true", help="leave the image out")
    parser.add_argument("--repository", default="", help="registry and name of the image in the manifests")
    given = parser.parse_args(arguments)
    output: Path = given.output
    output.mkdir(parents=True, exist_ok=True)

    def progress(line: str) -> None:
        print(f"release: {line}", file=sys.stderr, flush=True)

    try:
        kubectl = find_or_build(os.environ, progress)["kubectl"]
        time = epoch(os.environ)
        write_packages(output, time)
        write_chart(output, time)
        write_manifests(output, kubectl, given.repository)
        if not given.no_image:
            write_image(output, os.environ, progress)
    except (MissingPrograms, NoImage) as missing:
        hint = "; IMAGE=no leaves the image out" if isinstance(missing, NoImage) else ""
        print(f"release: {missing}{hint}", file=sys.stderr)
        return 1
    if given.no_image:
        progress("without the image")
    write_sums(output)
    print((output / SUMS).read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
