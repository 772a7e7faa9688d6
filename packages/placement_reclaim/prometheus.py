"""Read the use of cards from a Prometheus that scrapes NVIDIA's dcgm-exporter."""

import asyncio
import re
from contextlib import suppress

import aiohttp
import click
import orjson
from yarl import URL

from placement_reclaim.classes.pods import PodUse
from placement_reclaim.cluster import Name
from webhook.cli.output.terminal import echo
from webhook.documents.field import InvalidInput, invalid
from webhook.watch.api_errors import TooLargeError, read_body

# Of the first metric that a pod has. That of the engine is also that of MIG devices, and has a right of its own.
# Source: https://github.com/NVIDIA/dcgm-exporter, etc/dcp-metrics-included.csv
_ACTIVITY = ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL")
_POWER, _MEMORY = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED"
# Source: https://docs.vllm.ai/en/latest/usage/metrics.html, and Triton's docs/user_guide/metrics.md
_REQUESTS = '{__name__=~"vllm:request_success_total|nv_inference_request_success"}'
# Without honorLabels, `pod` is the exporter's own pod.
_OF_POD = "namespace, pod, exported_namespace, exported_pod"
_STEP_SECONDS = 300
_TIMEOUT, _MOST_BYTES, _LONGEST_ERROR = aiohttp.ClientTimeout(total=60), 64 * 2**20, 300
# A password with a / or an @ of its own would be read as a part of the host or the path, which errors show.
_URL = re.compile(r"https?://([^/?#]*@)?[^/?#@]+(/[^@]*)?")
_FORM = "must be http://HOST or https://HOST, with the / and @ of a password as %2F and %40"
_REMEDY = "give the URL of a Prometheus, such as http://127.0.0.1:9090 of kubectl port-forward"
_Card = tuple[Name, tuple[str, str]]
"""A pod, and the UUID of a card of it and, for a MIG device, its instance; both are empty for a metric of pods."""


def read_uses(url: str, seconds: int, now: int) -> dict[Name, PodUse]:
    """Return the use of the cards of each pod in the `seconds` before `now`, in Unix seconds.

    It is empty, which is printed, if no pod has a metric of the activity of cards.

    Raises:
        InvalidInput, click.ClickException: the URL is malformed, a query is not answered. Neither shows the password.
    """
    server = URL()
    with suppress(ValueError):
        server = URL(url if _URL.fullmatch(url) else "")
    if not server.host:
        # Any part of a malformed URL can be the password.
        raise InvalidInput([invalid("--prometheus", "(not shown)", f"{_FORM}; {_REMEDY}")])
    uses = asyncio.run(_read_uses(server, seconds, now))
    if not uses:
        echo(f"idle cards are not known: Prometheus has no {' and no '.join(_ACTIVITY)}", err=True)
    return uses


async def _read_uses(server: URL, seconds: int, now: int) -> dict[Name, PodUse]:
    uses: dict[Name, PodUse] = {}
    async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:

        async def ask(function: str, metric: str) -> dict[_Card, float]:
            window = f"{seconds}s:{_STEP_SECONDS}s" if function == "count_over_time" else f"{seconds}s"
            by, combine = (_OF_POD, "sum") if function == "rate" else (f"{_OF_POD}, UUID, GPU_I_ID", "max")
            expression = f"{combine} by ({by}) ({function}({metric}[{window}]))"
            return await _query(session, server, {"query": expression, "time": str(now)})

        watts = {device: value for (_, device), value in (await ask("max_over_time", _POWER)).items()}
        for metric in _ACTIVITY:
            known, steps = {*uses}, await ask("count_over_time", metric)
            for (pod, device), value in (await ask("max_over_time", metric)).items():
                if pod not in known:
                    # A gap of the metric of 10 minutes can be one of a scrape, or a busy card.
                    is_known = steps.get((pod, device), 0) >= seconds // _STEP_SECONDS - 1
                    # The metric of a MIG device is the power of the whole card.
                    own_watts = 0 if device[1] else watts.get(device, 0)
                    uses.setdefault(pod, PodUse()).add_card(value if is_known else None, own_watts)
        for (pod, _), value in (await ask("max_over_time", _MEMORY)).items():
            if pod in uses:
                uses[pod].memory_mib += value
        for (pod, _), value in (await ask("rate", _REQUESTS)).items():
            if pod in uses:
                uses[pod].requests = value
    return uses


async def _query(session: aiohttp.ClientSession, server: URL, query: dict[str, str]) -> dict[_Card, float]:
    """Return the value of each card of each pod, the highest one if several jobs scrape it."""
    # The client's errors do not have user and password either: it removes them from the URL first.
    shown, status, found = f"--prometheus {server.with_user(None)}", 0, dict[_Card, float]()
    try:
        async with session.post(server / "api/v1/query", data=query) as response:
            status = response.status
            answer = orjson.loads(await read_body(response, _MOST_BYTES))
        if answer["status"] != "success":
            raise click.ClickException(f"{shown}: {answer['error'][:_LONGEST_ERROR]}")
        for each in answer["data"]["result"]:
            card, value = _card_of(each["metric"]), float(each["value"][1])
            found[card] = max(value, found.get(card, value))
    except (aiohttp.ClientError, OSError, TooLargeError) as error:
        raise click.ClickException(f"{shown}: {str(error) or type(error).__name__}; {_REMEDY}") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise click.ClickException(f"{shown}: HTTP {status} is no answer to a query; {_REMEDY}") from error
    return found


def _card_of(labels: dict[str, str]) -> _Card:
    prefix = "exported_" if labels.get("exported_pod") else ""
    namespace, pod, card, instance = (
        str(labels.get(key, "")) for key in (f"{prefix}namespace", f"{prefix}pod", "UUID", "GPU_I_ID")
    )
    return (namespace, pod), (card, instance)
