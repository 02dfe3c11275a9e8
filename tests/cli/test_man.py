"""`jail man` prints what tests/cli/test_roff.py looks at; here only that it is the page of the whole command."""

from click.testing import CliRunner

from jail.cli.group import group
from jail.cli.roff import page


def test_it_prints_the_page_of_all_commands() -> None:
    found = CliRunner().invoke(group, ["man"], catch_exceptions=False)
    assert found.exit_code == 0
    assert found.output == page(group, "jail")
