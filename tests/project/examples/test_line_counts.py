"""The table of both styles has the lines that are there, and a flow is shorter than its twin."""

import ast
import io
import re
import tokenize

import pytest

from mainspring.sources import syntax_tree
from tests.support.paths import ROOT

FOLDER = ROOT / "examples/both_styles"
ROW = re.compile(r"^\| \[[^\]]+\]\((\w+)_flow\.py\).*? \| (\d+) \| \[(\d+)\]\(\1\.py\) \|", re.MULTILINE)
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}

rows = ROW.findall((FOLDER / "README.md").read_text())


def lines_of_code(text: str) -> int:
    """Count the lines that hold code: neither blank ones nor comments nor docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {line for t in tokens if t.type not in SILENT for line in range(t.start[0], t.end[0] + 1)}
    for node in ast.walk(syntax_tree(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())) as said, *_]:
                    lines -= {*range(said.lineno, (said.end_lineno or 0) + 1)}
                case _:
                    pass
    return len(lines)


def test_all_pairs_stand_in_the_table() -> None:
    assert sorted(row[0] for row in rows) == sorted(path.stem[:-5] for path in FOLDER.glob("*_flow.py"))


@pytest.mark.parametrize(("name", "flow", "other"), rows, ids=[row[0] for row in rows])
def test_the_lines_of_both_styles_are_those_of_the_table(name: str, flow: str, other: str) -> None:
    counted = [lines_of_code((FOLDER / f"{name}{style}.py").read_text()) for style in ("_flow", "")]

    assert counted == [int(flow), int(other)]
    assert counted[0] < counted[1]


def test_comments_docstrings_and_blank_lines_do_not_count() -> None:
    text = '"""A."""\n\n# b\nx = 1  # c\n\ndef f():\n    """D."""\n    return """\n1\n"""\n'

    assert lines_of_code(text) == 5
