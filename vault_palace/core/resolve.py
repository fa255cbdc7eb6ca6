"""Where a link leads: Obsidian's own rule over all files of the vault, and the shortest text that does.

Aliases never resolve a link. Ties between paths of one length go by path order, because Obsidian's order of
loading cannot be known from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from vault_palace.core.names import EXTENSION, key


def link_key(link_path: str) -> str:
    """What a link and the file it may mean share: the folded last segment without `.md`.

    A rename can change the meaning only of links with the key of the old or the new name.
    """
    return key(link_path.rpartition("/")[2]).removesuffix(EXTENSION)


class Resolver:
    """All files of a vault by name; `add` and `remove` keep it in step."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        # Most names are unique, and a hundred thousand lists of one path would be dear.
        self._names: dict[str, str | list[str]] = {}
        self._paths: set[str] = set()
        for path in paths:
            self.add(path)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, path: str) -> None:
        if path in self._paths:
            return
        self._paths.add(path)
        name = key(path.rpartition("/")[2])
        same = self._names.get(name)
        if same is None:
            self._names[name] = path
        elif isinstance(same, str):
            self._names[name] = [same, path]
        else:
            same.append(path)

    def remove(self, path: str) -> None:
        if path not in self._paths:
            return
        self._paths.discard(path)
        name = key(path.rpartition("/")[2])
        same = self._names[name]
        if isinstance(same, str):
            del self._names[name]
        else:
            same.remove(path)
            if len(same) == 1:
                self._names[name] = same[0]

    def with_files(self, paths: Iterable[str]) -> Resolver:
        """A resolver for the vault as it would be with these files besides."""
        other = self.after({})
        for path in paths:
            other.add(path)
        return other

    def after(self, moves: Mapping[str, str]) -> Resolver:
        """A resolver for the vault as it will be once each old path of *moves* has its new one."""
        other = Resolver()
        other._paths = set(self._paths)
        other._names = {
            name: same if isinstance(same, str) else list(same) for name, same in self._names.items()
        }
        for old in moves:
            other.remove(old)
        for new in moves.values():
            other.add(new)
        return other

    def candidates(self, name: str) -> list[str]:
        """The files that a link with this last segment may mean, in path order."""
        return sorted(self._named(key(name))[0])

    def _named(self, name: str) -> tuple[list[str], str]:
        """The candidates of a folded name, and the extension that was added to find them."""
        for extension in ("", EXTENSION) if "." in name else (EXTENSION,):
            same = self._names.get(name + extension)
            if same is not None:
                return [same] if isinstance(same, str) else same, extension
        return [], ""

    def resolve(self, link_path: str, source: str) -> str | None:
        """The file that *link_path* means in the note *source*, or None.

        The steps are those of Obsidian's `getFirstLinkpathDest`: the file name decides which files come
        into question, a full path wins over an ending, an ending needs no folder boundary, and among
        several the source's own folder and then the shortest path win.
        """
        if not link_path:
            return source
        link = key(link_path)
        found, extension = self._named(link.rpartition("/")[2])
        if not found:
            return None
        if "/" not in link and len(found) == 1:
            return found[0]
        folder = key(source.rpartition("/")[0])
        if link.startswith(("./", "../")):
            where = _join(folder, link + extension)
            return min((path for path in found if key(path) == where), default=None)
        exact = link.removeprefix("/") + extension
        spelled = link_path.removeprefix("/") + extension
        same = [path for path in found if key(path) == exact]
        if same or link.startswith("/"):
            return min(same, key=lambda path: (path != spelled, path), default=None)
        ending = [path for path in found if key(path).endswith(exact)]
        return min(ending, key=lambda path: _rank(path, folder, spelled), default=None)


def _rank(path: str, folder: str, spelled: str) -> tuple[bool, int, bool, str]:
    """Obsidian's order; then the one spelled as the link is, for files that differ in nothing but case."""
    return not key(path).startswith(folder), len(path), not path.endswith(spelled), path


def _join(folder: str, relative: str) -> str | None:
    """A relative path seen from *folder*, or None when it climbs out of the vault."""
    parts = folder.split("/") if folder else []
    for part in relative.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def link_to(path: str, after: Resolver, source: str) -> str:
    """The shortest link text by which *source* means *path*, as Obsidian writes it.

    The bare name where it is unique, else the full path; `.md` only where another file has the name
    without it. A name with `#`, `^`, `[`, `]` or `|` in it cannot be linked: see `names.linkable`.
    """
    short = path.removesuffix(EXTENSION)
    name = short.rpartition("/")[2]
    if len(after.candidates(name)) == 1 and after.resolve(name, source) == path:
        return name
    for text in (short, path, f"/{short}", f"/{path}"):
        if after.resolve(text, source) == path:
            return text
    return path
