"""The generated files are current."""

from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from tools import DOCS
from tools.__main__ import GENERATORS

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.slow
@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: str(generator.__name__))
def test_files_are_current(generator: ModuleType) -> None:
    found = generator.files()

    assert {path: path.read_text() for path in found} == found, "run `make docs`"


def test_the_texts_of_the_picture_stay_inside_their_boxes_with_any_font() -> None:
    picture = ET.parse(DOCS / "placement.svg").getroot()
    boxes = [
        {key: float(each.get(key, 0)) for key in ("x", "y", "width", "height")} for each in picture.iter(f"{_SVG}rect")
    ]
    outside = []
    for text in picture.iter(f"{_SVG}text"):
        # A viewer fits the text to this width.
        left, top, width = float(text.get("x", 0)), float(text.get("y", 0)), float(text.get("textLength", "inf"))
        around = [
            box["x"] + box["width"]
            for box in boxes
            if box["x"] <= left <= box["x"] + box["width"] and box["y"] <= top <= box["y"] + box["height"]
        ]
        if text.get("lengthAdjust") != "spacingAndGlyphs" or left + width > min(around):
            outside.append(text.text)

    assert len(boxes) > 10
    assert outside == []
