"""Write the generated files of the repository: `python -m tools`, by `make docs`."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DEPLOY = ROOT / "deploy"
