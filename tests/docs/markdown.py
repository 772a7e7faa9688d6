"""Read the documents of the project: code blocks, links, headings, tables, code spans."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
OWN = ("README.md", "README.zh-CN.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
OPERATIONS = ROOT / "docs" / "operations.md"
MONITORING = ROOT / "docs" / "monitoring.md"
DOCUMENTS = [
    *(ROOT / name for name in OWN),
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / folder / "README.md" for folder in ("deploy", "examples")),
]
# The README in Chinese has the code blocks of README.md (`test_translation.py`).
DOCUMENTS_TO_RUN = [each for each in DOCUMENTS if each.name != "README.zh-CN.md"]

ELLIPSIS = "…"
_FILE_NAME = re.compile(r"# ([\w.-]+\.yaml)")
_FENCE = re.compile(r"^```(\w*)$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def name_of(document: Path) -> str:
    """Return the path of the document in the repository."""
    return document.relative_to(ROOT).as_posix()


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced code block; `place` is the place of its first line, `README.md:12`."""

    language: str
    lines: tuple[str, ...]
    place: str

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def line(self) -> int:
        return int(self.place.rpartition(":")[2])


def blocks(document: Path, *languages: str) -> list[Block]:
    """Return the code blocks of the document, of `languages` only if given."""
    found: list[Block] = []
    language: str | None = None
    lines: list[str] = []
    for number, line in enumerate(document.read_text().splitlines(), start=1):
        fence = _FENCE.match(line)
        if language is None and fence:
            language, lines = fence.group(1), []
        elif language is not None and line == "```":
            found.append(Block(language, tuple(lines), f"{name_of(document)}:{number - len(lines)}"))
            language = None
        elif language is not None:
            lines.append(line)
    assert language is None, f"{name_of(document)}: a block has no end"
    return [block for block in found if not languages or block.language in languages]


def blocks_under(document: Path, heading: str, *languages: str) -> list[Block]:
    """Return the code blocks between this heading and the next one, of `languages` only if given."""
    lines = document.read_text().splitlines()
    # Comments in code blocks look like headings.
    code = {block.line + index for block in blocks(document) for index in range(len(block.lines))}
    headings = [number for number, line in enumerate(lines, start=1) if re.match(r"#+ ", line) and number not in code]
    (begin,) = [number for number in headings if lines[number - 1].lstrip("#").strip() == heading]
    end = min((number for number in headings if number > begin), default=len(lines) + 1)
    return [block for block in blocks(document, *languages) if begin < block.line < end]


@dataclass
class Step:
    """A command after `$ `, and the lines shown below it."""

    command: str
    shown: list[str]


def steps(block: Block) -> list[Step]:
    """Return the commands of the block that are shown with their output."""
    found: list[Step] = []
    for line in block.lines:
        if line.startswith("$ "):
            found.append(Step(line.removeprefix("$ "), []))
        elif found and not found[-1].shown and found[-1].command.endswith("\\"):
            found[-1].command += f"\n{line}"
        elif found:
            found[-1].shown.append(line)
    return found


def write_named_files(document: Path, folder: Path) -> None:
    """Write the YAML blocks of the document whose first line names a file (`# train.yaml`)."""
    for block in blocks(document, "yaml"):
        if named := _FILE_NAME.fullmatch(block.lines[0]):
            (folder / named.group(1)).write_text(block.text)


def printed_as_shown(printed: str, shown: list[str]) -> bool:
    """Return whether the output matches line by line, apart from the width of gaps between columns."""
    pattern = "".join(
        "(?:.*\n)*?" if line.strip() == ELLIPSIS else re.escape(_one_space(line)).replace(ELLIPSIS, ".*") + "\n"
        for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{_one_space(line)}\n" for line in printed.splitlines())) is not None


def _one_space(line: str) -> str:
    return re.sub(r"(?<=\S)\s+", " ", line).rstrip()


def prose(document: Path) -> list[str]:
    """Return the lines outside of code blocks."""
    inside = False
    lines: list[str] = []
    for line in document.read_text().splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            lines.append(line)
    return lines


def links(document: Path) -> list[str]:
    """Return the targets of the links of the document."""
    return [target for line in prose(document) for target in _LINK.findall(_SPAN.sub("", line) or line)]


def spans(document: Path) -> list[str]:
    """Return the code spans outside of code blocks."""
    return [span for line in prose(document) for span in _SPAN.findall(line)]


def anchors(document: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of the document."""
    return {anchor_of(line.lstrip("#").strip()) for line in prose(document) if line.startswith("#")}


def anchor_of(heading: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def rows(document: Path, heading: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the first table under the heading, without its header."""
    lines = iter(document.read_text().splitlines())
    assert any(line.lstrip("#").strip() == heading for line in lines if line.startswith("#")), heading
    table: list[str] = []
    for line in lines:
        if line.startswith("|"):
            table.append(line)
        elif table:
            break
    assert len(table) > 2, f"{name_of(document)}: no table under {heading}"
    for line in table[2:]:
        yield tuple(cell.strip() for cell in line.strip("|").split("|"))


def span_of(cell: str) -> str | None:
    """Return the code span of the cell, if the cell has nothing else."""
    found = re.fullmatch(r"`([^`]+)`", cell)
    return found.group(1) if found else None


def spans_of(cell: str) -> list[str]:
    """Return the code spans of the cell."""
    return _SPAN.findall(cell)
