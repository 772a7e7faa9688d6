"""The plot of `simulate`: the cards allocated over time, a line for each policy and profile, as SVG."""

import statistics
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from webhook.analysis.simulation.outcome import Outcome
from webhook.cli.commands.simulate.text import configurations, profile_name
from webhook.documents.text import printable

_LEFT, _TOP, _WIDTH, _HEIGHT, _ROW = 60, 30, 640, 280, 18
# Colours that people with colour deficiencies distinguish. Source: Okabe and Ito, Color Universal Design, 2008
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def svg(outcomes: Sequence[Outcome]) -> str:
    """Return the plot; each line is the mean of the seeds of a configuration."""
    found = [*configurations(outcomes)]
    span = max(each.series[-1].seconds - each.series[0].seconds for each in outcomes) or 1
    lines = [*_axes(span)]
    for number, runs in enumerate(found):
        colour = _COLOURS[number % len(_COLOURS)]
        # Lines of more configurations than colours are dashed.
        dash = f' stroke-dasharray="{4 * (number // len(_COLOURS))}"' if number >= len(_COLOURS) else ""
        points = " ".join(f"{x},{y}" for x, y in _points(runs, span))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>')
        y = _TOP + _HEIGHT + 50 + number * _ROW
        lines.append(
            f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + 24}" y2="{y}" stroke="{colour}" stroke-width="3"{dash}/>'
        )
        name = f"{runs[0].policy}, {profile_name(runs[0])}: {statistics.fmean(each.allocated for each in runs):.2f} %"
        lines.append(_text(_LEFT + 32, y + 4, name))
    width, height = _LEFT + _WIDTH + 30, _TOP + _HEIGHT + 60 + len(found) * _ROW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *lines, "</svg>", ""])


def _points(runs: Sequence[Outcome], span: float) -> Iterator[tuple[float, float]]:
    """Yield the mean of the samples of the same number, since the seeds end at different times."""
    for samples in zip(*(each.series for each in runs), strict=False):
        seconds = statistics.fmean(
            sample.seconds - each.series[0].seconds for sample, each in zip(samples, runs, strict=True)
        )
        percent = statistics.fmean(sample.allocated for sample in samples)
        yield round(_LEFT + _WIDTH * seconds / span, 1), _y(percent)


def _axes(span: float) -> Iterator[str]:
    yield _text(_LEFT, _TOP - 12, "cards allocated, %")
    for percent in range(0, 101, 20):
        y = _y(percent)
        yield f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _WIDTH}" y2="{y}" stroke="#ddd"/>'
        yield _text(_LEFT - 34, y + 4, str(percent))
    size, unit = next(
        ((size, unit) for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")) if span >= 2 * size), (1, "s")
    )
    for step in range(5):
        x = _LEFT + _WIDTH * step / 4
        yield _text(x - 12, _TOP + _HEIGHT + 18, f"{span / size * step / 4:.3g} {unit}")


def _y(percent: float) -> float:
    return round(_TOP + _HEIGHT * (1 - percent / 100), 1)


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="12">{escape(printable(text))}</text>'
