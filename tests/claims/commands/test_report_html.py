"""`report.html`: one file, nothing fetched, every name escaped; read by a parser as a browser would."""

import base64
import json
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from add.commands.cli import cli
from add.commands.report import write_report
from add.io.runfolder import RunFolder

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;{{7*7}}\x00\u202e`|*"
VOID = {"meta", "link", "img", "br", "hr", "input", "line", "circle"}


class Page(HTMLParser):
    """Tags, attributes and text; raises where tags do not close."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def page(run):
    write_report(run, draw=False)
    return Page((run.path / "report.html").read_text(encoding="utf-8"))


def result(name):
    """A result all of whose names are `name`."""
    bars = {
        "contains": [name],
        "weak": [{"text": name}],
        "tied": [{"a": name, "b": name, "correlation": 0.99}],
        "correlation": {"labels": [name, "b"], "matrix": [[1.0, -0.5], [-0.5, None]]},
        "residuals": {name: {"coordinates": 30, "effective": 3.2, "white": False, "per_marker": {name: 4.0}}},
    }
    entry = {"value": 2.0, "unit": name, "start": 1.0, "standard_error": 0.1, "lower": None, "upper": 3.0,
             "interval_lower": 1.8, "interval_upper": 2.2, "errors": {"noise": 0.05}, "at_bound": True}  # fmt: skip
    fit = {"rms": 0.001, "unit": name, "samples": 10, "per_marker": {name: {"rms": 0.001, "samples": 10}}}
    return {
        "command": name, "status": name, "message": name, "scene": name, "parameters": {name: entry, "b": entry},
        "phases": [{"name": name, "evaluations": 1, "status": name, "start": 1, "end": 0.5, "success": False}],
        "experiments": {name: {"use": "validate", "fit": fit}}, "checks": {name: {"passed": False, "value": name}},
        "objective": {"start": 1.0, "end": 0.5}, "evaluations": 3, "seconds": 2.0, "uncertainty": bars,
    }  # fmt: skip


def test_names_are_text(tmp_path):
    """No name becomes a tag, an attribute or a control character, and none is rendered as a template."""
    run = RunFolder(tmp_path / "run")
    run.write_json("versions.json", {EVIL: EVIL})
    run.write_json("result.json", result(EVIL))
    found = page(run)
    assert "script" not in found.tags
    assert not any(name.startswith("on") for _, name, _ in found.attributes)
    text = "".join(found.text)
    assert text.count("<script>alert(1)</script>") >= 10
    assert "{{7*7}}" in text and "49" not in text
    assert "\x00" not in text and "\u202e" not in text


def test_nothing_is_fetched(tmp_path):
    """Pictures are data, the policy forbids everything else."""
    run = RunFolder(tmp_path / "run")
    run.write_json("result.json", result("take"))
    pixel = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    (run.path / "markers.png").write_bytes(pixel)
    found = page(run)
    assert not {"script", "link", "iframe", "object", "a"} & set(found.tags)
    sources = [value for _, name, value in found.attributes if name in ("src", "href", "srcset", "data", "action")]
    assert sources == ["data:image/png;base64," + base64.b64encode(pixel).decode()]
    policy = dict((name, value) for tag, name, value in found.attributes if tag == "meta")
    assert policy["content"] and "url(" not in (run.path / "report.html").read_text()
    text = "".join(found.text)
    parts = ["2.00 ± 0.10", "1.8 … 2.2", "noise alone", "30 coordinates count for 3.2", "predicted", "Figure 1."]
    for part in [*parts, "did not converge", "doi:10.1145/3414685.3417766", "-0.50"]:
        assert part in text, part


@pytest.mark.parametrize("content", [{}, {"parameters": {f"p[{k}]": {"value": k, "unit": "m"} for k in range(40)}}])
def test_little(tmp_path, content):
    """An empty result, and a long array, which is one row."""
    run = RunFolder(tmp_path / "run")
    run.write_json("result.json", content)
    text = "".join(page(run).text)
    assert "How to cite" in text
    assert ("p, 40 numbers" in text) is bool(content)


def test_beside_the_report_of_a_fit(tmp_path):
    """`add optimize` writes both, --force removes both."""
    scene = {
        "schema": "add-scene/1",
        "name": "throw",
        "time": {"dt": 0.01, "duration": 0.05},
        "bodies": {"p": {"type": "particles", "mesh": {"points": [[0, 0, 0]]}, "mass": 1.0, "velocity": [1, 0, 0]}},
        "markers": {"m": {"body": "p", "nodes": [0]}},
        "objective": [{"type": "point", "marker": "m", "target": [0.1, 0, 0], "axes": "x", "time": "end"}],
        "parameters": [{"path": "bodies.p.velocity", "components": [0]}],
    }
    (tmp_path / "scene.json").write_text(json.dumps(scene))
    folder = tmp_path / "run"
    asked = CliRunner().invoke(cli, ["optimize", str(tmp_path / "scene.json"), "-o", str(folder)])
    assert asked.exit_code == 0 and "report.html" in asked.output
    found = Page((folder / "report.html").read_text())
    assert found.tags.count("img") >= 2
    RunFolder(folder, overwrite=True).clear()
    assert not (folder / "report.html").exists()
