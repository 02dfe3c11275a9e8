"""The table as Markdown, for the README, and as JSON, for programs."""

import json

from rounds import Row


def markdown(rows: list[Row]) -> str:
    """One line a measure and candidate; each unit is said once, at the number."""
    lines = ["| measure | of | median | quartiles | ratio |", "| --- | --- | ---: | ---: | ---: |"]
    previous = ""
    for row in rows:
        measure = row.measure if row.measure != previous else ""
        previous = row.measure
        quartiles = f"{row.low:.1f}-{row.high:.1f}"
        lines.append(
            f"| {measure} | {row.candidate} | {row.median:.1f} {row.unit} | {quartiles} | {row.ratio:.2f} |"
        )
    return "\n".join(lines)


def as_json(rows: list[Row]) -> str:
    """A list of objects with the fields of Row."""
    return json.dumps([row._asdict() for row in rows], indent=1)
