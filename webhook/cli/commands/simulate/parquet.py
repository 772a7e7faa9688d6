"""The outcomes of `simulate` as a Parquet file: a row for each run."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from webhook.analysis.simulation.outcome import Outcome

_TEXT, _WHOLE, _NUMBER = pa.string(), pa.int64(), pa.float64()
_WAITS = {"by": _TEXT, "value": _TEXT, "pods": _WHOLE, "never_placed": _WHOLE, "p50": _NUMBER, "p99": _NUMBER}
_SAMPLE = {"seconds": _NUMBER, "allocated": _NUMBER, "fragmented": _NUMBER, "waiting": _WHOLE}
SCHEMA = pa.schema(
    {
        "policy": _TEXT,
        "profile": _TEXT,
        "seed": _WHOLE,
        **dict.fromkeys(("nodes", "cards", "pods", "denied", "placed"), _WHOLE),
        **dict.fromkeys(("allocated", "most_allocated", "last_allocated", "fragmented"), _NUMBER),
        "waits": pa.list_(pa.struct(_WAITS)),
        "series": pa.list_(pa.struct(_SAMPLE)),
        "unmodelled": pa.list_(_TEXT),
        "denial": _TEXT,
    }
)


def write_parquet(file: IO[bytes], outcomes: Sequence[Outcome]) -> None:
    """Write the outcomes in their order."""
    rows: list[dict[str, Any]] = [asdict(each) for each in outcomes]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), file)
