"""What a parsed lock file says, whatever its format is."""

from jail.hold import locks


def test_a_mapping_with_a_name_or_a_version_is_a_package_wherever_it_stands() -> None:
    found = locks.of_tree({"x": [{"name": "a", "version": "1", "hash": "h"}, {"b@2": {"integrity": "i"}}]})
    assert [*found.packages] == ["a", "b"]
    assert found.contents == {"a@1": {"hash=h"}, "b@2": {"integrity=i"}}


def test_what_lies_in_a_package_belongs_to_it() -> None:
    files = [{"file": "f", "hash": "1"}, {"url": "https://x.example/g", "hash": "2"}]
    found = locks.of_tree({"name": "a", "version": "1", "files": files})
    assert [*found.packages] == ["a"]
    assert found.contents.keys() == {"a@1", "a@1/f", "a@1/g"}


def test_a_place_is_a_source_by_its_key_or_by_its_form_and_what_names_files_in_a_package_is_none() -> None:
    found = locks.of_tree(
        {"path": "x", "other": "../y", "plain": "z", "bin": {"a": "./cli.js"}, "editable": "."}
    )
    assert [*found.sources] == ["x", "../y"]


def test_a_tree_of_any_depth_is_walked() -> None:
    tree: dict[str, object] = {"path": "/end"}
    for _ in range(100_000):
        tree = {"d": tree}
    assert [*locks.of_tree(tree).sources] == ["/end"]
    while tree:  # taken apart by a loop, too
        tree = tree.get("d")  # type: ignore[assignment]
        if not isinstance(tree, dict):
            break


def test_what_the_old_one_has_is_no_difference() -> None:
    found = locks.of_tree({"a": {"version": "1", "integrity": "i", "hasInstallScript": True}})
    assert not any(names for _, names in locks.differences(found, found))
    assert [len(names) for _, names in locks.differences(locks.nothing(), found)] == [0, 1, 0, 1]
