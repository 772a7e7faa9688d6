"""Read the use of cards from a Prometheus that scrapes NVIDIA's dcgm-exporter."""

import math
import re
from contextlib import suppress
from typing import Any

import aiohttp
import orjson
from yarl import URL

from placement_reclaim.classes.idle import CardUse, PodUse
from placement_reclaim.cluster import Name

# Of the first metric that a pod has. That of the engine is also that of MIG devices, and has a right of its own.
# Source: https://github.com/NVIDIA/dcgm-exporter, etc/dcp-metrics-included.csv
ACTIVITY = ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL")
_POWER, _MEMORY = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED"
# Source: https://docs.vllm.ai/en/latest/usage/metrics.html, and Triton's docs/user_guide/metrics.md
_REQUESTS = '{__name__=~"vllm:request_success_total|nv_inference_request_success"}'
# Without honorLabels, `pod` is the exporter's own pod.
_OF_POD = "namespace, pod, exported_namespace, exported_pod"
_STEP_SECONDS = 300
_MOST_BYTES = 64 * 1024 * 1024
_TIMEOUT = aiohttp.ClientTimeout(total=60)
# A password with a / or an @ of its own would be read as a part of the host or the path, which errors show.
_URL = re.compile(r"https?://([^/?#]*@)?[^/?#@]+(/[^@]*)?")
_FORM = "must be http://HOST or https://HOST, with the / and @ of a password as %2F and %40"
_REMEDY = "give the URL of a Prometheus, such as http://127.0.0.1:9090 of kubectl port-forward"

Device = tuple[str, str]
"""The UUID of a card and, for a MIG device, its instance; both are empty for a metric of pods."""
Samples = list[tuple[Name, Device, float]]


class PrometheusError(Exception):
    """A Prometheus has not answered a query. The text has the URL without user and password, the reason and the remedy.

    A malformed URL is not in the text, since any part of it can be the password.
    """


async def read_uses(url: str, seconds: int, now: int) -> dict[Name, PodUse]:
    """Return the use of the cards of each pod in the `seconds` before `now`, in Unix seconds.

    It is empty if no pod has a metric of `ACTIVITY`.

    Raises:
        PrometheusError: the URL is malformed, or a query is not answered.
    """
    server = _checked(url)
    uses: dict[Name, PodUse] = {}
    async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:

        async def ask(function: str, metric: str) -> Samples:
            window = f"{seconds}s:{_STEP_SECONDS}s" if function == "count_over_time" else f"{seconds}s"
            by, combine = (_OF_POD, "sum") if function == "rate" else (f"{_OF_POD}, UUID, GPU_I_ID", "max")
            return await _query(session, server, f"{combine} by ({by}) ({function}({metric}[{window}]))", now)

        watts = {device: value for _, device, value in await ask("max_over_time", _POWER)}
        for metric in ACTIVITY:
            known = {*uses}
            steps = {(pod, device): value for pod, device, value in await ask("count_over_time", metric)}
            for pod, device, value in await ask("max_over_time", metric):
                if pod in known:
                    continue
                # A gap of the metric of 10 minutes can be one of a scrape, or a busy card.
                is_known = steps.get((pod, device), 0) >= seconds // _STEP_SECONDS - 1
                cards = uses.setdefault(pod, PodUse()).cards
                # Two jobs can scrape one card.
                if device not in cards or cards[device].is_idle:
                    cards[device] = CardUse(value if is_known else math.nan, None if device[1] else watts.get(device))
        for pod, _, value in await ask("max_over_time", _MEMORY) if uses else ():
            if use := uses.get(pod):
                use.memory_mib = (use.memory_mib or 0) + value
        for pod, _, value in await ask("rate", _REQUESTS) if uses else ():
            if use := uses.get(pod):
                use.requests = value
    return uses


def _checked(url: str) -> URL:
    """Return `url`.

    Raises:
        PrometheusError: it is malformed.
    """
    with suppress(ValueError):
        if _URL.fullmatch(url) and (parsed := URL(url)).host:
            return parsed
    raise PrometheusError(f"--prometheus: {_FORM}; {_REMEDY}")


async def _query(session: aiohttp.ClientSession, url: URL, expression: str, now: int) -> Samples:
    """Return the samples of an instant query.

    Raises:
        PrometheusError: it is not answered.
    """
    # The client's errors do not have user and password either: it removes them from the URL first.
    shown, status = f"--prometheus {url.with_user(None)}", 0
    try:
        data = {"query": expression, "time": str(now)}
        async with session.post(url / "api/v1/query", data=data) as response:
            status, found = response.status, bytearray()
            async for part in response.content.iter_any():
                found += part
                if len(found) > _MOST_BYTES:
                    raise PrometheusError(f"{shown}: the answer has more than {_MOST_BYTES} bytes")
        answer: Any = orjson.loads(found)
        if answer["status"] != "success":
            raise PrometheusError(f"{shown}: {answer['error']}")
        return [_sample(each["metric"], float(each["value"][1])) for each in answer["data"]["result"]]
    except (aiohttp.ClientError, OSError) as error:
        raise PrometheusError(f"{shown}: {str(error) or type(error).__name__}; {_REMEDY}") from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise PrometheusError(f"{shown}: HTTP {status} is no answer to a query; {_REMEDY}") from error


def _sample(labels: dict[str, str], value: float) -> tuple[Name, Device, float]:
    prefix = "exported_" if labels.get("exported_pod") else ""
    pod = labels.get(f"{prefix}namespace", ""), labels.get(f"{prefix}pod", "")
    return pod, (labels.get("UUID", ""), labels.get("GPU_I_ID", "")), value
