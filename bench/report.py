"""Prints result files as tables: medians with their spread, and factors against a baseline."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

Row = dict[str, object]


def table(paths: list[str], baseline: str | None) -> str:
    """Return medians (least to greatest) for each target, and factors against `baseline`."""
    rows = [row for path in paths for row in json.loads(Path(path).read_text())["rows"]]
    targets = list(dict.fromkeys(row["target"] for row in rows))
    base = baseline if baseline in targets else targets[0]
    others = [target for target in targets if target != base]
    lines: list[str] = []
    for name in dict.fromkeys(row["scenario"] for row in rows):
        lines += scenario_lines(
            name, [row for row in rows if row["scenario"] == name], base, others
        )
    return "\n".join(lines)


def scenario_lines(name: str, rows: list[Row], base: str, others: list[str]) -> list[str]:
    heading = " | ".join(["metric", base, *(f"{target} | factor" for target in others)])
    lines = ["", f"### {name}", "", f"| {heading} |", "|---" * (2 + 2 * len(others)) + "|"]
    for key in dict.fromkeys(key for row in rows for key in row["metrics"]):
        values = {target: measured(rows, target, key) for target in [base, *others]}
        cells = [cell(values[base])]
        for target in others:
            cells += [cell(values[target]), factor(key, values[base], values[target])]
        lines.append(f"| {key} | " + " | ".join(cells) + " |")
    lines += [
        f"\n{row['target']} #{row['repeat'] + 1} failed: {row['error']}"
        for row in rows
        if row["error"]
    ]
    return lines


def measured(rows: list[Row], target: str, key: str) -> list[float]:
    found = (row["metrics"].get(key) for row in rows if row["target"] == target)
    return [value for value in found if isinstance(value, int | float)]


def cell(values: list[float]) -> str:
    if not values:
        return ""
    text = shown(statistics.median(values))
    if min(values) != max(values):
        text += f" ({shown(min(values))} to {shown(max(values))})"
    return text


def factor(key: str, base: list[float], other: list[float]) -> str:
    """Return whether more is better: for rates and shares it is, otherwise less is."""
    if not base or not other:
        return ""
    a, b = statistics.median(base), statistics.median(other)
    if not a or not b:
        return ""
    return f"{b / a if key.endswith(('_per_s', '_percent')) else a / b:.2f}x"


def shown(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 10 else f"{value:,.1f}".removesuffix(".0")
