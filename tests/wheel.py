"""kgs as a wheel: built from a copy of the source, and installed into an environment of its own. No network."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SOURCE = (
    "kgs_core",
    "kgs_dagster",
    "ops",
    "pyproject.toml",
    "LICENSE",
    "kgs.example.yaml",
    "dagster.yaml",
    "workspace.yaml",
)
RELEASED = "2593f176"
"""The commit of version 0.1.0."""
_BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def build_wheel(folder: Path, commit: str = "") -> Path:
    """The wheel of this tree or of an earlier commit, built in `folder`: a build leaves folders in the source."""
    if commit:
        tree = subprocess.run(["git", "archive", commit, *_SOURCE], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x"], cwd=folder, input=tree, check=True)
    for name in () if commit else _SOURCE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    command = [sys.executable, "-P", "-c", _BUILD, "dist"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    (built,) = (folder / "dist").glob("*.whl")
    return built


def install(wheel: Path, folder: Path) -> None:
    """An environment in `folder` that has kgs from the wheel, and everything else from this one."""
    venv.create(folder / "venv", symlinks=True, with_pip=False)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder / "venv/bin/python")]
    arguments = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*command, *arguments], check=True, capture_output=True, timeout=300)
    # Borrowed folders' own .pth files are not followed: the source, which stands in one of them, is not on the path
    (site,) = (folder / "venv/lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text("\n".join(entry for entry in sys.path if entry.endswith("site-packages")))


def environ() -> dict[str, str]:
    """What a stranger's environment has: nothing that leads back to the source.

    Where modules lie compiled it keeps: pip compiles a stranger's libraries, and not those that are borrowed here.
    """
    ours = {name for name in os.environ if name.startswith(("PYTHON", "KGS_", "DAGSTER"))} - {"PYTHONPYCACHEPREFIX"}
    return {name: value for name, value in os.environ.items() if name not in ours}


def kgs(folder: Path, *arguments: str, timeout_s: float = 300) -> "subprocess.CompletedProcess[str]":
    """`kgs` of that environment, in that folder."""
    return subprocess.run(
        [folder / "venv/bin/kgs", *arguments],
        cwd=folder,
        env=environ(),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
