"""The built page that the package ships is the one that its source makes, and speaks the API's language."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

import matrix_coder
from matrix_coder import __version__
from matrix_coder.web import shapes

PACKAGE = Path(matrix_coder.__file__).parent
DIST = PACKAGE / "dashboard" / "dist"
SOURCE = Path(__file__).resolve().parents[2] / "web-ui"
INTERFACE = re.compile(r"^export interface (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (\w+): (.+);$", re.MULTILINE)


def source_hash() -> str:
    """The hash of the page's sources, as its build makes it."""
    digest = hashlib.sha256()
    files = [p for p in (SOURCE / "src").rglob("*") if p.suffix in (".ts", ".tsx", ".css")]
    for name, path in sorted((p.relative_to(SOURCE / "src").as_posix(), p) for p in files):
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@pytest.mark.parametrize("name", ["index.js", "style.css"])
def test_built_page_when_compared_with_its_source_then_up_to_date(name: str) -> None:
    """The committed files were built from the sources that stand beside them: `npm run build` in web-ui."""
    first = (DIST / name).read_text(encoding="utf-8").splitlines()[0]
    assert f"sha256:{source_hash()}" in first


def test_build_when_node_and_its_packages_are_there_then_it_makes_the_same_files(tmp_path: Path) -> None:
    """Where the build's tools are installed, a build gives the committed files byte for byte."""
    node = shutil.which("node")
    if node is None or not (SOURCE / "node_modules" / "esbuild").is_dir():
        assert source_hash() in (DIST / "index.js").read_text(encoding="utf-8")[:200]
        return
    copy = tmp_path / "web-ui"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("node_modules"))
    (copy / "node_modules").symlink_to(SOURCE / "node_modules")
    built = tmp_path / "src" / "matrix_coder" / "dashboard" / "dist"
    built.mkdir(parents=True)
    done = subprocess.run([node, "build.mjs"], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("index.js", "style.css"):
        assert (built / name).read_bytes() == (DIST / name).read_bytes(), name


def test_manifest_when_read_then_it_names_this_version_and_files_that_exist() -> None:
    """The host's manifest agrees with the package: name, version, script, style and API."""
    manifest = json.loads((PACKAGE / "dashboard" / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["name"], manifest["version"]) == ("matrix_coder", __version__)
    for key in ("entry", "css", "api"):
        assert (PACKAGE / "dashboard" / manifest[key]).is_file()


def test_page_sources_when_searched_then_nothing_takes_text_for_markup() -> None:
    """No way from a text to markup or code is in the page's sources."""
    text = "\n".join(p.read_text(encoding="utf-8") for p in sorted((SOURCE / "src").rglob("*.ts*")))
    assert "useEvents" in text
    for way in ("dangerouslySetInnerHTML", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in text


def test_lock_file_when_searched_then_it_names_no_registry() -> None:
    """Packages are pinned by version and content, wherever they are fetched from."""
    text = (SOURCE / "package-lock.json").read_text(encoding="utf-8")
    assert '"integrity"' in text
    assert "://" not in re.sub(r'"url": "[^"]*"', "", text)
    assert '"resolved"' not in text


PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def told(annotation: Any) -> str:
    """A Python type as TypeScript writes it."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is None:
        return PLAIN.get(annotation) or str(annotation.__name__)
    if origin is Literal:
        return " | ".join(f'"{a}"' for a in args)
    parts = [told(a) for a in args]
    if origin is list:
        return f"{parts[0]}[]"
    if origin is dict:
        return f"Record<string, {parts[1]}>"
    return f"[{', '.join(parts)}]" if origin is tuple else " | ".join(dict.fromkeys(parts))


def answers() -> Iterator[tuple[str, dict[str, str]]]:
    """The shapes that the API answers with: name, and field by field."""
    for name, shape in vars(shapes).items():
        if isinstance(shape, type) and issubclass(shape, shapes.Shape) and shape is not shapes.Shape:
            yield name, {field: told(info.annotation) for field, info in shape.model_fields.items()}


def test_page_types_when_compared_with_the_api_then_the_same() -> None:
    """Every shape of the API is declared in the page's types with the same fields of the same types."""
    text = (SOURCE / "src" / "types.ts").read_text(encoding="utf-8")
    declared = {name: dict(FIELD.findall(body)) for name, body in INTERFACE.findall(text)}
    for name, fields in answers():
        assert {f: sorted(t.split(" | ")) for f, t in declared[name].items()} == {
            f: sorted(t.split(" | ")) for f, t in fields.items()
        }, name
    assert len(list(answers())) > 20
