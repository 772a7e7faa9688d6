"""Collected by `make test-ray` alone, since Ray is large and is not needed for anything else."""

import os

collect_ignore_glob = [] if os.environ.get("TEST_RAY", "0") != "0" else ["test_*.py"]
