"""Comparing canonical paths by component: `/src/repo-evil` is not beneath `/src/repo`."""

from jail.light import Collection


def beneath(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it; both without `.`, `..`, doubled and closing slashes."""
    return path == folder or path.startswith(folder if folder == "/" else f"{folder}/")


def overlaps(one: str, other: str) -> bool:
    """Whether one of the two holds the other."""
    return beneath(one, other) or beneath(other, one)


def deepest(path: str, folders: Collection[str]) -> str:
    """The deepest of `folders` that holds the absolute `path`, "" when none does."""
    # Upwards from the path, not through the folders: a plan asks this of each of fifty against each.
    here = path
    while here not in folders:
        if here in ("/", ""):
            return ""
        here = here[: here.rfind("/")] or "/"
    return here


def between(path: str, folder: str) -> list[str]:
    """The folders strictly between `folder` and `path`, outermost first."""
    names = path[len(folder) :].strip("/").split("/")[:-1]
    start = "" if folder == "/" else folder
    return ["/".join([start, *names[: count + 1]]) for count in range(len(names))]
