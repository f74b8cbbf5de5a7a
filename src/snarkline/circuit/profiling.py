"""Where the constraints of a circuit come from: a tree of gadget paths."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from snarkline.r1cs.structured import StructuredR1CS
from snarkline.r1cs.template import Template

TOP = "(top level)"


@dataclass
class Profile:
    """A gadget path with what is recorded in it, the paths below included. `instances` are of templates."""

    name: str
    constraints: int = 0
    entries: int = 0
    instances: int = 0
    children: dict[str, Profile] = field(default_factory=dict)

    def add(self, path: str, constraints: int, entries: int, instances: int = 0) -> None:
        """Counts for a path below this one."""
        node = self
        for name in path.split("/") if path else [TOP]:
            node.constraints += constraints
            node.entries += entries
            node = node.children.setdefault(name, Profile(name))
        node.constraints += constraints
        node.entries += entries
        node.instances += instances

    def ordered(self) -> list[Profile]:
        """The paths directly below, the largest first. What is all in no path has none below."""
        if list(self.children) == [TOP]:
            return []
        return sorted(self.children.values(), key=lambda child: (-child.constraints, child.name))

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Profile]]:
        """This path and all below it, with their depths."""
        yield depth, self
        for child in self.ordered():
            yield from child.walk(depth + 1)

    def to_dict(self) -> dict[str, Any]:
        """The tree as JSON has it."""
        own = {"name": self.name, "constraints": self.constraints, "entries": self.entries, "instances": self.instances}
        return own | {"children": [child.to_dict() for child in self.ordered()]}


def profile(r1cs: StructuredR1CS, name: str = "circuit") -> Profile:
    """The constraints and non-zero entries of a circuit by gadget path."""
    root = Profile(name)
    pieces = [list(_by_path(template)) for template in r1cs.templates]
    for run in r1cs.runs:
        template = r1cs.template_of(run)
        prefix = [part for part in (run.path, template.name) if part]
        for path, constraints, entries in pieces[run.template]:
            full = "/".join([*prefix, path] if path else prefix)
            root.add(full, run.count * constraints, run.count * entries)
        if template.name and template.n_rows:
            node = root
            for part in "/".join(prefix).split("/"):
                node = node.children[part]
            node.instances += run.count
    return root


def profile_of_rows(paths: Iterable[tuple[str, int]], name: str) -> Profile:
    """The same from constraints one by one: the path of each, and its entries."""
    root = Profile(name)
    for path, entries in paths:
        root.add(path, 1, entries)
    return root


def _by_path(template: Template) -> Iterator[tuple[str, int, int]]:
    """The stretches of rows with one path: path, rows, entries."""
    starts = [0, *(row for row, _ in template.paths), template.n_rows]
    names = ["", *(path for _, path in template.paths)]
    entries = (template.a.row_start + template.b.row_start + template.c.row_start).astype(np.int64)
    for start, stop, name in zip(starts[:-1], starts[1:], names, strict=True):
        if stop > start:
            yield name, stop - start, int(entries[stop] - entries[start])


def to_html(root: Profile) -> str:
    """A page with the tree as a flame graph; it needs nothing from elsewhere."""
    page = files("snarkline.circuit").joinpath("profile.html").read_text()
    # "</" in a name would end the script.
    data = json.dumps(root.to_dict()).replace("</", "<\\/")
    return page.replace("{{title}}", html.escape(root.name)).replace("{{data}}", data)
