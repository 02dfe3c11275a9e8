"""The JSON Schema of a policy file, for editors that complete and check TOML.

Rule: made from the models and words of shape, so that it cannot say something else than the parser; what a
schema cannot say (paths that contradict each other, names that would leak a secret) `jail policy check` does.
"""

from collections.abc import Sequence
from typing import Any, Final

from jail.policy.limits import BOUNDS
from jail.policy.shape import SHAPES, File, Path
from jail.policy.value import DELIVERIES, LOSSES, TERMINAL, TOOLCHAINS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_VOCABULARIES: Final[dict[Path, Sequence[str]]] = {
    ("toolchains", "use"): tuple(TOOLCHAINS),
    ("terminal", "allow"): tuple(TERMINAL),
    ("hold", "deliver"): tuple(DELIVERIES),
    ("accept", "losses"): tuple(LOSSES),
    ("without", "toolchains"): tuple(TOOLCHAINS),
    ("without", "terminal"): tuple(TERMINAL),
    ("without", "deliver"): tuple(DELIVERIES),
    ("without", "losses"): tuple(LOSSES),
}
"""Arrays that take names of a table."""


def schema(levels: Sequence[str], parts: Sequence[str]) -> dict[str, Any]:
    """The schema of every kind of policy file; `levels` and `parts` are the shipped names."""
    made = _inlined(File.model_json_schema(by_alias=True))
    for path, shape in SHAPES.items():
        key = _at(made, path)
        key["description"] = shape.about
        if path in _VOCABULARIES:
            key["items"] = {"enum": list(_VOCABULARIES[path])}
            key["uniqueItems"] = True
    for name, bound in BOUNDS.items():
        for form in _numbers(_at(made, ("limits", name))):
            form["minimum"], form["maximum"] = int(bound.least), int(bound.most)
    _at(made, ("base",))["enum"] = list(levels)
    _at(made, ("parts",))["items"] = {"enum": list(parts)}
    about = "What a run of jail may do: a policy, the person's own file, or a project's `.jail.toml`."
    return {"$schema": DIALECT, **made, "title": "policy of jail", "description": about}


def _inlined(made: dict[str, Any]) -> dict[str, Any]:
    """The schema of pydantic with each table where it is used, without titles, which repeat the keys."""
    tables = made.pop("$defs", {})

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return plain(tables[value["$ref"].rpartition("/")[2]])
        return {key: plain(one) for key, one in value.items() if key not in ("title", "default")}

    found: dict[str, Any] = plain(made)
    return found


def _at(made: dict[str, Any], path: Path) -> dict[str, Any]:
    for key in path:
        made = made["properties"][key]
    return made


def _numbers(key: dict[str, Any]) -> list[dict[str, Any]]:
    return [form for form in key.get("anyOf", [key]) if form.get("type") == "integer"]
