"""The tree as a whole: what no single file can promise."""

import ast
import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import click
import grimp
import pytest

from bench.__main__ import bench_group
from kgs_core.cli.main import cli

ROOT = Path(__file__).parents[1]
FOLDERS = ("bench", "kgs_core", "kgs_dagster", "ops", "tests")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))
MAX_LINES = 320
MAX_FILES = 20
ROOMS = {"kgs_core": "tests/core", "bench": "tests/bench"}


def pins(path):
    """name==version of every requirement, once per marker."""
    return set(re.findall(r"^([a-z0-9.-]+==[^ ;]+)", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.name)
def test_requirements_hold_pins_and_hashes_and_no_address(path):
    """An address would send everybody's machine to one registry, and break on machines that have another."""
    for line in path.read_text().splitlines():
        assert re.fullmatch(r"[a-z0-9.-]+==\S+( ; [^\\]+)? \\| {4}--hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_what_tests_run_with_is_what_users_run_with():
    names = {"run.txt", "k8s.txt", "dev.txt", "java.txt", "docs.txt", "bench-peer.txt", "neighbours.txt"}
    assert {path.name for path in REQUIREMENTS} == names
    assert pins(ROOT / "requirements/run.txt") | pins(ROOT / "requirements/k8s.txt") <= pins(
        ROOT / "requirements/dev.txt"
    )


def test_no_source_file_is_too_long_to_read():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in SOURCES}
    assert not {name for name, lines in lengths.items() if lines > MAX_LINES}


def test_no_module_imports_itself_by_way_of_others():
    """The walls between rooms are import-linter's; this is about the modules within one."""
    graph = grimp.build_graph("bench", "kgs_core", "kgs_dagster", cache_dir=None)
    TopologicalSorter({each: graph.find_modules_directly_imported_by(each) for each in graph.modules}).prepare()


def test_no_folder_imports_itself_by_way_of_others():
    """But for the packages at the top, whose modules (errors, model) all rooms share."""
    graph = grimp.build_graph("kgs_core", cache_dir=None)

    def folder(module):
        own = module.count(".") < 2 and not graph.find_children(module)
        return module if own or graph.find_children(module) else module.rpartition(".")[0]

    ways = {(folder(a), folder(b)) for a in graph.modules for b in graph.find_modules_directly_imported_by(a)}
    imported = {}
    for a, b in ways:
        if a != b and "kgs_core" not in (a, b):
            imported.setdefault(a, set()).add(b)
    assert len(imported) > 40
    TopologicalSorter(imported).prepare()


def test_no_folder_is_too_large_to_look_over():
    sizes = Counter(path.parent for path in SOURCES if {ROOT / "kgs_core", ROOT / "kgs_dagster"} & set(path.parents))
    assert {str(folder): size for folder, size in sizes.items() if size > MAX_FILES} == {}


def test_tests_lie_where_what_they_test_lies():
    for house, tests in ROOMS.items():
        rooms = {path.parent.relative_to(ROOT / house) for path in SOURCES if ROOT / house in path.parents}
        assert {path.parent.relative_to(ROOT / tests) for path in SOURCES if ROOT / tests in path.parents} <= rooms


def code_of(page):
    """What a page shows as code: blocks, indented lines, and words between backticks, these joined over line ends."""
    text = page.read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for text in (*blocks, *re.findall(r"^ {4}.*$", prose, re.MULTILINE)) for line in text.splitlines()]
    return [*lines, *(" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose))]


def missing_of_command(command, words):
    """What of `kgs ...` there is not: a command, or an option of it."""
    context = click.Context(command)
    while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        name = words.pop(0)
        if (found := command.get_command(context, name)) is None:
            return [name]
        command = found
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
    return sorted({word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)} - known)


def missing_files(page, names):
    """Files that a page names, and that are not there."""
    text = page.read_text()
    sources = re.findall(r"[\w/]*\w\.py\b", text)
    links = re.findall(r"\]\(([^)\s:#]+)(?:#[^)]*)?\)", text)
    paths = re.findall(r"(?<![\w./-])(?:docs|ops|k8s|requirements|tests)/[\w./-]*\w", "\n".join(code_of(page)))
    missing = {each for each in links if not (page.parent / each).exists()}
    missing |= {each for each in paths if not each.endswith(".py") and not (ROOT / each).exists()}
    return missing | {each for each in sources if not any(f"/{name}".endswith(f"/{each}") for name in names)}


def missing_anchors(page):
    """Headings that a page links to, here or on another page, and that are not there."""
    for target, anchor in re.findall(r"\]\(([^)\s:#]*)#([^)\s]+)\)", page.read_text()):
        text = (page.parent / target if target else page).read_text()
        titles = re.findall(
            r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
        )
        if anchor not in {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}:
            yield f"{target}#{anchor}"


def missing_commands(page, targets):
    """Targets of `make`, commands and options that a page names, and that are not there."""
    for code in code_of(page):
        made = re.findall(r"(?:^|[;&] )make ([a-z0-9-]+)", code)
        yield from (f"make {target}" for target in made if target not in targets)
        for line in re.findall(r"(?:^|[|;&] |/)kgs ([a-z][^|;&#>]*)", code):
            yield from (f"kgs {line}: {found}" for found in missing_of_command(cli, re.split(r"[\s\[\]]+", line)))
        for line in re.findall(r"python -m bench ([a-z][^|;&#>]*)", code):
            yield from (
                f"bench {line}: {found}" for found in missing_of_command(bench_group, re.split(r"[\s\[\]]+", line))
            )


def test_what_documents_name_is_there():
    names = [str(path.relative_to(ROOT)) for path in SOURCES]
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [*ROOT.glob("*.md"), ROOT / "k8s/README.md", *(ROOT / "docs").rglob("*.md")]
    missing = {
        f"{page.name}: {found}"
        for page in pages
        for found in (*missing_files(page, names), *missing_anchors(page), *missing_commands(page, targets))
        if page.name != "CHANGELOG.md" or not found.startswith(("kgs ", "bench ", "make "))  # names what went, too
    }
    own = {"tables.md: shop_rows.py", "dagster.md: defs/tables.py", "dagster.md: defs/reports.py"}  # the reader's
    assert missing == {*own, "CONTRIBUTING.md: tests/core/ROOM"}


def test_every_page_has_a_place_on_the_site():
    """But for decisions, which others link to. `make docs` builds it."""
    listed = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} == {name for name in listed if "/" not in name}
    assert not {name for name in listed if not (ROOT / "docs" / name).exists()}


def used_names(folders):
    """Names that product code calls or passes on, those among them that a hook names in a text (`module:function`)."""
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                    yield name
                case ast.Constant(value=str(text)):
                    yield text.rpartition(":")[2]


def test_functions_on_the_ways_of_a_reading_and_of_a_record_are_where_the_tables_say_and_are_called():
    used = set(used_names(["kgs_core", "kgs_dagster"]))
    rows = re.findall(r"^\| [\d, a-k]+ \| (.*?) \| (.*?) \|", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    ways = [(re.findall(r"`([\w/]+\.py)`", files), re.findall(r"`([\w.]+)`", names)) for files, names in rows]
    ways = [(files, names) for files, names in ways if files]
    assert len(ways) > 60
    missing = []
    for files, names in ways:
        paths = [ROOT / file if file.startswith("kgs_dagster") else ROOT / "kgs_core" / file for file in files]
        text = "".join(path.read_text() for path in paths)
        parts = [part for name in names for part in name.split(".")]
        missing += [f"{files}: {part}" for part in parts if not re.search(rf"(def|class) {part}\b", text)]
        missing += [f"{part} is called by nobody" for part in parts if part not in used]
    assert missing == []


def test_no_module_hides_under_a_name_that_says_nothing():
    names = {"utils.py", "helpers.py", "common.py", "base.py", "manager.py"}
    assert [str(path) for path in SOURCES if path.name in names] == []


def test_a_class_has_a_name_of_its_own():
    """A reader who searches for a name finds one meaning."""
    files = {}
    for path in SOURCES:
        if (name := str(path.relative_to(ROOT))).startswith("tests/"):
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name, []).append(name)
    assert len(files) > 300
    assert {name: found for name, found in files.items() if len(found) > 1} == {}


def test_make_help_lists_every_target():
    text = (ROOT / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE).group(1).split())
    explained = set(re.findall(r"^([a-z0-9-]+):.*## ", text, re.MULTILINE))
    assert phony - explained == {"dev", "s3-server", "toxiproxy", "neighbours", "postgres"}
    assert explained <= phony


def test_nothing_asks_a_store_in_a_way_that_stops_every_thread():
    """`DeltaTable.is_deltatable` holds Python's lock until the store answers: heartbeats and sensors would stop."""
    call = re.compile(r"\.is_deltatable\(")
    assert [str(path) for path in SOURCES if call.search(path.read_text())] == []
