"""The commands of the documents: their code blocks, in order, as a reader would copy them."""

import html
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "documents"


@dataclass(frozen=True)
class Block:
    document: str
    line: int  # of the document
    text: str

    def __str__(self):
        return f"{self.document}:{self.line}"


def fenced(text):
    """Markdown: between lines of three backticks."""
    lines = text.splitlines()
    start = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number + 1
        else:
            yield start + 1, "\n".join(lines[start:number])
            start = None


def preformatted(text):
    """HTML: the text in <pre>, where <br/> ends a line."""
    for found in re.finditer(r"<pre[^>]*>(.*?)</pre>", text, re.DOTALL):
        inner = re.sub(r"<[^>]+>", "", found.group(1).replace("<br/>", "\n"))
        yield text.count("\n", 0, found.start()) + 1, html.unescape(inner).strip()


def pasted(text):
    """Plain text: paragraphs that are a command or one of its options."""
    number = 1
    for paragraph in re.split(r"(?<=\n)\n+", text):
        if re.match(r"\$ |mpirun |--hostfile ", paragraph):
            yield number, paragraph.strip()
        number = text.count("\n", 0, text.index(paragraph) + len(paragraph)) + 2


def blocks_of(name):
    """Every command block of a document."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    reader = preformatted if "<pre" in text else fenced if "```" in text else pasted
    return [Block(name, line, block) for line, block in reader(text)]


def documents():
    return sorted(path.name for path in FOLDER.glob("*.md") if path.name != "README.md")
