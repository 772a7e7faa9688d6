"""The pairs of tests/certs/pairs, as people make them."""

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "certs" / "pairs"


@dataclass(frozen=True, slots=True)
class MadePair:
    """A pair and whether API servers trust it: `trusted`, `untrusted` or `not served`."""

    name: str
    kind: str
    files: dict[str, str]

    def write(self, folder: Path) -> Path:
        """Write ca.crt, tls.crt and tls.key into `folder`."""
        for name, text in self.files.items():
            (folder / name).write_bytes(text.encode())
        return folder


def pairs(*kinds: str) -> list[MadePair]:
    """Return the pairs of these kinds; of all, if none is given."""
    found = [MadePair(path.stem, **json.loads(path.read_text())) for path in sorted(FOLDER.glob("*.json"))]
    return [pair for pair in found if not kinds or pair.kind in kinds]
