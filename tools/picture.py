"""Draw docs/placement.svg: the pods of `placement-webhook demo`, what is injected into them, and where they fit.

The pods and the nodes are those of the sample of the demo, the injected fields and the verdicts those of its audit log.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from textwrap import wrap
from xml.sax.saxutils import escape

from tools import DOCS, ROOT
from webhook.audit.record import AuditRecord, parse_line
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject, parse
from webhook.placement.reasons.cluster_warnings import NO_SIGN

DOMAIN, USAGE, PRODUCT, GPU = "maip.mxsf.io/", "maip.mxsf.io/node.usage", "nvidia.com/gpu.product", "nvidia.com/gpu"
POOLS = ("training", "inference", "hybrid")

# Widths and heights in pixels.
WIDTH = 900
POD, INJECTED, POOL = (14, 196), (232, 364), (636, 250)
TOP, LINE, GAP, MARGIN, NODE = 58, 17, 12, 10, 24
SQUARE = 10
# The longest text of a line in the column of the injected fields.
LETTERS = 57

FONTS = "Arial, Helvetica, 'Liberation Sans', sans-serif"
# Widths of the letters of these fonts in thousandths of the font size; the other letters have 556.
# Source: Adobe Core 14 AFM, Helvetica.afm
_WIDTHS = {
    letter: width
    for letters, width in (
        ("ijl", 222), (" ftI.,:;/![]", 278), ("r-()", 333), ("ckvsxyzJ", 500), ("=+", 584), ("ABEKPSVXY", 667),
        ("CDHNRUw", 722), ("GO", 778), ("mM", 833), ("W", 944), ("…", 1000),
    )
    for letter in letters
}  # fmt: skip
INK, GREY, PALE, RED = "#1f2328", "#59636e", "#d1d9e0", "#b42318"
PREDICTED = ("#1a62c5", "#a0460a", "#6b3fa0", "#0f766e")
"""One colour for each pod with a predicted node."""


@dataclass(frozen=True, slots=True)
class Row:
    """One pod of the demo: its manifest, its audit record, the lines of both cards and its colour."""

    pod: JsonObject
    record: AuditRecord
    asked: tuple[str, ...]
    injected: tuple[str, ...]
    verdict: tuple[str, ...]
    colour: str

    @property
    def name(self) -> str:
        """The name of the pod, or its prefix."""
        metadata = self.pod["metadata"]
        return str(metadata.get("name") or metadata["generateName"] + "…")

    @property
    def node(self) -> str | None:
        """The predicted node."""
        return self.record.placement.node if self.record.placement else None

    @property
    def height(self) -> int:
        """The height of both cards in pixels."""
        lines = max(1 + len(self.asked), len(self.injected) + len(self.verdict))
        return lines * LINE + 2 * MARGIN - 3


def files() -> Mapping[Path, str]:
    """Return the picture as SVG."""
    pods = [document.content for document in parse(_sample("pods.yaml"), "pods.yaml")]
    view = snapshot_from_documents(parse(_sample("cluster.yaml"), "cluster.yaml"))
    rows = list(_rows(pods, _records(len(pods))))
    nodes, places = _pools(view, rows)
    cards: list[str] = []
    y = TOP
    for row in rows:
        cards += _cards(row, y)
        if row.node:
            cards += _way(y + row.height / 2, places[row.node], row.colour)
        y += row.height + GAP
    legend = TOP + _pools_height(view) + LINE
    lines = [*_frame(max(y, legend + GAP)), *nodes, *cards, *_legend(legend), "</svg>"]
    return {DOCS / "placement.svg": "\n".join(lines) + "\n"}


def _sample(name: str) -> bytes:
    return resources.files("webhook.cli").joinpath("sample", name).read_bytes()


def _records(count: int) -> list[AuditRecord]:
    """Run the demo, and return the audit records of its pods."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "audit.jsonl"
        command = [sys.executable, "-m", "webhook", "demo", "--audit", str(log)]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        records = [parse_line(line) for line in log.read_bytes().splitlines()]
    assert len(records) == count
    return records


def _rows(pods: list[JsonObject], records: list[AuditRecord]) -> Iterator[Row]:
    colours = iter(PREDICTED)
    first: dict[str | None, tuple[str, list[str]]] = {}
    for pod, record in zip(pods, records, strict=True):
        injected = list(_injected([edit for rule in record.rules for edit in rule.edits]))
        name, before = first.setdefault(record.workload_type, (record.name, injected))
        if before is not injected and injected:
            others = [line for line in injected if line not in before]
            injected = [f"as into {name}{', but' if others else ''}", *others]
        node = record.placement.node if record.placement else None
        refused = record.outcome == "Denied" or (record.placement and record.placement.verdict == "Infeasible")
        colour = next(colours) if node else RED if refused else INK
        yield Row(pod, record, tuple(_asked(pod)), tuple(map(_cut, injected)), tuple(_verdict(record)), colour)


def _asked(pod: JsonObject) -> Iterator[str]:
    """Yield the annotations and the number of GPUs of a pod."""
    annotations = pod["metadata"]["annotations"]
    own = {key.removeprefix(DOMAIN): value for key, value in annotations.items() if key.startswith(DOMAIN)}
    for key, value in own.items():
        products = value.split(",")
        yield f"{key}: {products[0]}{', …' if len(products) > 1 else ''}"
    if not own:
        yield "no annotation of the webhook"
    if gpus := pod["spec"]["containers"][0].get("resources", {}).get("limits", {}).get(GPU):
        yield f"{gpus} GPU{'s' if gpus != '1' else ''}"


def _injected(edits: list[str]) -> Iterator[str]:
    """Yield the edits of a pod, with its tolerations in one line."""
    tolerated = []
    for edit in edits:
        if found := re.fullmatch(r"tolerate [^=]+=(.+):NoSchedule", edit):
            tolerated.append(found[1])
            continue
        short = re.sub(r"(maip\.mxsf\.io|nvidia\.com|kubernetes\.io)/", "", edit)
        yield re.sub(r"^(require|prefer) node ", r"\1 ", short)
    if tolerated:
        yield f"tolerate {', '.join(tolerated)}"


def _verdict(record: AuditRecord) -> Iterator[str]:
    if record.placement is None:
        yield record.outcome + (f": {record.error}" if record.outcome == "Bypassed" else "")
        if record.outcome == "Denied":
            yield from wrap((record.error or "").partition("]: ")[2], LETTERS)
        return
    yield record.placement.verdict + (f" on {record.placement.node}" if record.placement.node else "")
    yield from wrap(record.placement.message.partition(". Predicted")[0].rstrip("."), LETTERS)
    for warning in record.warnings:
        if NO_SIGN in warning:
            yield from wrap(f"Warning: {warning.partition('; ')[0]}", LETTERS)


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1].rstrip() + "…"


def _frame(height: int) -> Iterator[str]:
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="{FONTS}">'
    yield "<title>Pods of the demo, what the webhook injects, and the nodes that are predicted</title>"
    yield f'<rect width="{WIDTH}" height="{height}" rx="8" fill="white"/>'
    for (x, width), title, below in (
        (POD, "Pods", "with their annotations"),
        (INJECTED, "Injected, and the verdict", "by the policy, before the pod is stored"),
        (POOL, "Node pools", "with the GPUs of each node"),
    ):
        yield _text(x, 26, title, size=15, bold=True, most=width)
        yield _text(x, 44, below, colour=GREY, most=width)


def _legend(y: int) -> Iterator[str]:
    x = POOL[0] + MARGIN
    for label, fill, stroke, width in (
        ("in use", "#8c959f", "#8c959f", 62),
        ("free", "white", "#8c959f", 48),
        ("predicted", PREDICTED[0], PREDICTED[0], 0),
    ):
        yield _square(x, y - SQUARE, fill, stroke)
        yield _text(x + SQUARE + 5, y, label, colour=GREY)
        x += width + SQUARE + 5


def _cards(row: Row, y: int) -> Iterator[str]:
    """Yield the card of a pod and the card of what is injected into it."""
    for x, width in (POD, INJECTED):
        yield (
            f'<rect x="{x}" y="{y}" width="{width}" height="{row.height}" rx="6" fill="#f6f8fa"'
            f' stroke="{row.colour if row.node else PALE}"/>'
        )
    yield from _lines(POD, [(row.name, INK, True), *((line, GREY, False) for line in row.asked)], y)
    lines = [(line, INK, False) for line in row.injected]
    lines += [(line, row.colour, not place) for place, line in enumerate(row.verdict)]
    yield from _lines(INJECTED, lines, y)
    yield from _arrow(POD[0] + POD[1], INJECTED[0], y + row.height / 2, y + row.height / 2, GREY)


def _lines(column: tuple[int, int], lines: Iterable[tuple[str, str, bool]], y: int) -> Iterator[str]:
    x, width = column
    for place, (text, colour, bold) in enumerate(lines, start=1):
        top = y + MARGIN + place * LINE - 6
        yield _text(x + MARGIN, top, text, colour=colour, bold=bold, most=width - 2 * MARGIN)


def _pools_height(view: Snapshot) -> int:
    return sum(NODE * (len(_nodes_of(view, pool)) + 1) + GAP + 6 for pool in POOLS)


def _nodes_of(view: Snapshot, pool: str) -> list[int]:
    """Return the rows of the nodes of a pool, by name."""
    rows = [row for row, info in enumerate(view.nodes) if info.node.labels.get(USAGE) == pool]
    return sorted(rows, key=lambda row: view.nodes[row].node.name)


def _pools(view: Snapshot, rows: list[Row]) -> tuple[list[str], dict[str, float]]:
    """Return the boxes of the pools, and the height of the middle of each node."""
    x, width = POOL
    drawn: list[str] = []
    places: dict[str, float] = {}
    y = TOP
    for pool in POOLS:
        nodes = _nodes_of(view, pool)
        height = NODE * (len(nodes) + 1) + 6
        drawn.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="white" stroke="{PALE}"/>')
        drawn.append(_text(x + MARGIN, y + 18, f"node.usage: {pool}", bold=True))
        for place, row in enumerate(nodes, start=1):
            name, top = view.nodes[row].node.name, y + place * NODE
            places[name] = top + NODE / 2
            drawn += _node(view, row, [each for each in rows if each.node == name], top)
        y += height + GAP
    return drawn, places


def _node(view: Snapshot, row: int, predicted: list[Row], top: int) -> Iterator[str]:
    """Yield the line of a node: its name, and a square for each of its GPUs."""
    x, width = POOL
    name = view.nodes[row].node.name
    used, of = int(view.requested(GPU)[row]), int(view.allocatable(GPU)[row])
    colour = predicted[0].colour if predicted else INK
    if predicted:
        yield (
            f'<rect x="{x + 4}" y="{top + 2}" width="{width - 8}" height="{NODE - 4}" rx="4" fill="none"'
            f' stroke="{colour}"/>'
        )
    room = width - 2 * MARGIN - 8 * (SQUARE + 3) - GAP
    yield _text(x + MARGIN, top + 16, name, colour=colour, bold=bool(predicted), most=room)
    new = sum(int(each.pod["spec"]["containers"][0]["resources"]["limits"][GPU]) for each in predicted)
    for gpu in range(of):
        fill = "#8c959f" if gpu < used else colour if gpu < used + new else "white"
        left = x + width - MARGIN - 8 * (SQUARE + 3) + gpu * (SQUARE + 3)
        yield _square(left, top + (NODE - SQUARE) // 2, fill, "#8c959f" if fill == "white" else fill)


def _way(start: float, end: float, colour: str) -> Iterator[str]:
    """Yield the line from the card of a pod to its predicted node."""
    yield from _arrow(INJECTED[0] + INJECTED[1], POOL[0] + 4, start, end, colour)


def _arrow(left: float, right: float, start: float, end: float, colour: str) -> Iterator[str]:
    middle = (left + right) / 2
    yield (
        f'<path d="M{left:g} {start:g} C{middle:g} {start:g} {middle:g} {end:g} {right - 7:g} {end:g}"'
        f' fill="none" stroke="{colour}" stroke-width="1.5"/>'
    )
    yield f'<path d="M{right - 8:g} {end - 4:g} l8 4 l-8 4 z" fill="{colour}"/>'


def _square(x: float, y: float, fill: str, stroke: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{SQUARE}" height="{SQUARE}" rx="2" fill="{fill}" stroke="{stroke}"/>'


def _text(
    x: float, y: float, text: str, *, colour: str = INK, size: int = 12, bold: bool = False, most: float = WIDTH
) -> str:
    """Return a text that has the same width in any font: that of Helvetica, but at most `most` pixels."""
    weight = ' font-weight="bold"' if bold else ""
    # A bold letter is 6 % wider.
    width = sum(_WIDTHS.get(letter, 556) for letter in text) * size / 1000 * (1.06 if bold else 1)
    length = f' textLength="{min(width, most):.0f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}"{weight}{length}>{escape(text)}</text>'
