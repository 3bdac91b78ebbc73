"""A plain model of a disk that loses its power: only what was put on it in time is sure to be there afterwards."""

import os
import random
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Moment:
    """One moment: all that processes see, and what of it is on the disk.

    Attributes:
        tree: path of a folder -> name -> inode.
        seen: inode of a file -> its contents; `kept`: what of them is on the disk.
        names: inode of a folder -> name -> inode, as they are on the disk.
        done: so much was reported to the user as done.
    """

    tree: dict[str, dict[str, int]]
    seen: dict[int, bytes]
    kept: dict[int, bytes]
    names: dict[int, dict[str, int]]
    done: int


@dataclass
class LosingDisk:
    """The folder `root`, watched through `os.fsync`: every call is a moment at which the power may go, just before."""

    root: Path
    moments: list[Moment] = field(default_factory=list)
    done: int = 0
    _kept: dict[int, bytes] = field(default_factory=dict)
    _names: dict[int, dict[str, int]] = field(default_factory=dict)
    _held: list[int] = field(default_factory=list)

    def fsync(self, handle: int) -> None:
        """In place of `os.fsync`."""
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if not path.is_relative_to(self.root):
            return
        self.look()
        self._held.append(os.dup(handle))  # or another file would get its inode
        inode = os.fstat(handle).st_ino
        if path.is_dir():
            self._names[inode] = {each.name: each.stat().st_ino for each in path.iterdir()}
        else:
            self._kept[inode] = path.read_bytes()

    def look(self) -> None:
        """Note a moment."""
        tree, seen = {}, {}
        for folder, _, files in os.walk(self.root):
            tree[folder] = {name: os.stat(os.path.join(folder, name)).st_ino for name in os.listdir(folder)}
            seen |= {tree[folder][name]: Path(folder, name).read_bytes() for name in files}
        self.moments.append(Moment(tree, seen, {**self._kept}, {**self._names}, self.done))

    def close(self) -> None:
        """Let go of the files."""
        for handle in self._held:
            os.close(handle)


def after_the_cut(root: Path, moment: Moment, target: Path, chance: random.Random) -> None:
    """Write to `target` what may be left of `root`."""
    _write_folder(str(root), os.stat(root).st_ino, moment, target, chance)


def _write_folder(folder: str, inode: int, moment: Moment, target: Path, chance: random.Random) -> None:
    target.mkdir()
    now, kept = moment.tree.get(folder, {}), moment.names.get(inode, {})
    for name in sorted(now.keys() | kept.keys()):
        there = chance.choice([now.get(name), kept.get(name)])  # the same, or a change that is on the disk or not
        if there is None:
            continue
        if os.path.join(folder, name) in moment.tree:
            _write_folder(os.path.join(folder, name), there, moment, target / name, chance)
        else:
            (target / name).write_bytes(_content(moment.seen.get(there), moment.kept.get(there), chance))


def _content(now: bytes | None, kept: bytes | None, chance: random.Random) -> bytes:
    whole = now if now is not None else kept or b""
    if whole == kept:
        return whole
    return chance.choice([whole, kept or b"", whole[: len(whole) // 2], bytes(len(whole))])
