"""A sweep on Ray: the same runs on the machines of a Ray cluster, or on local workers without one."""

import os
from collections.abc import Iterator, Sequence

from webhook.analysis.simulation.outcome import Outcome
from webhook.analysis.simulation.sweep import Experiment, Run, simulated


def swept_on_ray(experiment: Experiment, runs: Sequence[Run], processes: int | None) -> Iterator[tuple[Run, Outcome]]:
    """Yield the outcome of each of `runs` as it is known; `processes` is the number of local workers.

    The Ray cluster is the one that RAY_ADDRESS names, which has its own workers.

    Raises:
        ImportError: Ray is not installed.
        InvalidInput: as in `simulated`.
    """
    import ray

    local = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": processes, "include_dashboard": False}
    ray.init(log_to_driver=False, logging_level="ERROR", **local)
    try:
        shared = ray.put(experiment)
        remote = ray.remote(max_retries=0)(simulated)
        pending = {remote.remote(shared, run): run for run in runs}
        while pending:
            done, _ = ray.wait([*pending])
            for each in done:
                yield pending.pop(each), _result(each)
    finally:
        ray.shutdown()


def _result(reference: object) -> Outcome:
    import ray

    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        # The error of the run, as in this process.
        raise (error.cause if isinstance(error.cause, Exception) else error) from None
    return outcome
