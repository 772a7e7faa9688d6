"""`make release`: the files of a version, in one folder with the checksums of all of them."""

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
from tests.node.images.engine import NoImage


def main(arguments: list[str]) -> int:
    """Write everything but the software bill of materials, which `make sbom` has put there before."""
    parser = argparse.ArgumentParser(prog="python -m tests.deploy.release")
    parser.add_argument("output", type=Path)
    parser.add_argument(
        "--image", choices=("yes", "no", "stand-in"), default="yes", help="stand-in: of another base if need be"
    )
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
        if given.image != "no":
            write_image(output, os.environ, progress, stand_in=given.image == "stand-in")
    except (MissingPrograms, NoImage) as missing:
        hints = "; IMAGE=no leaves the image out, and IMAGE=stand-in allows a stand-in as its base"
        print(f"release: {missing}{hints if isinstance(missing, NoImage) else ''}", file=sys.stderr)
        return 1
    if given.image == "no":
        progress("without the image")
    write_sums(output)
    print((output / SUMS).read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
