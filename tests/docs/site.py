"""Hooks of mkdocs (`make site`): the files outside of docs/, the navigation of docs/README.md, GitHub's anchors."""

import re
from typing import Any

from mkdocs.structure.files import File, Files

from tests.docs.markdown import ROOT, anchor_of

_PAGES = (
    "README.md",
    "README.zh-CN.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
)
_FOLDERS = ("docs", "deploy", "examples")
_ITEM = re.compile(r"- \[(.+?)\]\((.+?)\)")


def on_config(config: Any) -> Any:
    """Set the navigation in the order of docs/README.md, and let headings have the anchors of GitHub."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = lambda heading, _: anchor_of(heading)
    config.nav = [{"Home": "README.md"}, {"Documentation": "docs/README.md"}]
    for line in (ROOT / "docs" / "README.md").read_text().splitlines():
        if line.startswith("## "):
            config.nav.append({line.removeprefix("## "): []})
        elif item := _ITEM.match(line):
            title, link = item.groups()
            path = (ROOT / "docs" / link).resolve().relative_to(ROOT).as_posix()
            next(iter(config.nav[-1].values())).append({title: path})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Replace the files of docs/ by those of the repository, so that links between them resolve."""
    of_theme = [file for file in files if file.src_dir != config.docs_dir]
    paths = [ROOT / name for name in _PAGES]
    paths += [path for folder in _FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    own = [File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)) for path in paths]
    return Files([*of_theme, *own])
