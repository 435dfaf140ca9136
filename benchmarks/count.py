"""Counts what has to be read: code (lines without docstrings, comments and blanks), files, tests and words of Markdown.

    python benchmarks/count.py [FOLDER ...]

With folders it counts their code alone. The core is mmgen without contrib, with cli. There is no limit: a saving that
makes code harder to read is none.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("mmgen", "cli", "data_recipes")
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def code_lines(text: str) -> int:
    """Return the number of lines with code; strings that stand alone, which document, are none."""
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documentation |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - documentation)


def sources(folder: str, without: str = "") -> list[str]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return [path.read_text(encoding="utf-8") for path in paths if not without or without not in path.parts]


def main() -> None:
    texts = [text for folder in sys.argv[1:] or FLOORS for text in sources(folder)]
    if sys.argv[1:]:
        print(f"code lines\t{sum(map(code_lines, texts)):,}\nfiles\t{len(texts)}")
        return
    core = [*sources("mmgen", without="contrib"), *sources("cli")]
    beside = [*sources("mmgen/contrib"), *sources("data_recipes")]
    for name, part in (("core", core), ("contrib and data_recipes", beside), ("all", texts)):
        print(f"code lines, {name}\t{sum(map(code_lines, part)):,}\t{len(part)} files")
    checks = sum(len(re.findall(r"^ *def _?check_\w+", text, re.M)) for text in texts)
    print(f"check_* functions\t{checks}")
    print(f"lines of tests\t{sum(len(text.splitlines()) for text in sources('tests')):,}")
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in listed.split()]
    print(f"words of Markdown\t{sum(len(page.split()) for page in pages):,}")


if __name__ == "__main__":
    main()
