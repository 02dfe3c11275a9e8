"""Comparing canonical paths by component: `/src/repo-evil` is not beneath `/src/repo`."""

from jail.light import Iterable


def beneath(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it; both without `.`, `..`, doubled and closing slashes."""
    return path == folder or path.startswith(folder if folder == "/" else f"{folder}/")


def overlaps(one: str, other: str) -> bool:
    """Whether one of the two holds the other."""
    return beneath(one, other) or beneath(other, one)


def deepest(path: str, folders: Iterable[str]) -> str:
    """The deepest of `folders` that holds `path`, "" when none does."""
    return max((folder for folder in folders if beneath(path, folder)), key=len, default="")


def between(path: str, folder: str) -> list[str]:
    """The folders strictly between `folder` and `path`, outermost first."""
    names = path[len(folder) :].strip("/").split("/")[:-1]
    start = "" if folder == "/" else folder
    return ["/".join([start, *names[: count + 1]]) for count in range(len(names))]
