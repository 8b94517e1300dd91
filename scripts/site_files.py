"""Hook of MkDocs: pages link to files beside `docs/` (scenes, modules), and the site gets copies of these."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
#: A link from a page in `docs/`, or in a folder in it, to a file beside `docs/`.
_BESIDE = (re.compile(r"\]\(\.\./((?!\.\.)[\w./-]+)\)"), re.compile(r"\]\(\.\./\.\./([\w./-]+)\)"))


def _beside(page: File) -> re.Pattern[str]:
    return _BESIDE[page.src_uri.count("/")]


def on_files(files: Files, config: Any) -> Files:
    """Add the files that pages link to."""
    linked = {path for page in files.documentation_pages() for path in _beside(page).findall(page.content_string)}
    for path in sorted(linked):
        if (ROOT / path).is_file():
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to the copies, and those of a copy to the pages."""
    if page.file.generated_by:
        return markdown.replace("](docs/", "](")
    return _beside(page.file).sub(r"](" + "../" * page.file.src_uri.count("/") + r"\1)", markdown)
