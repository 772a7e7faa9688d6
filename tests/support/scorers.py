"""A base for scorers that answer with what a test says."""

import numpy as np

from webhook.cluster.snapshot import Rows


class ScorerOfNoNodes:
    """A scorer for clusters where nobody waits, so that it is never asked for the feasible nodes alone."""

    def feasible_rows(self, *_: object) -> Rows:
        """No rows."""
        return np.empty(0, dtype=np.intp)
