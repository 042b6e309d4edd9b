"""Figures as tables for the terminal and for docs/performance.md, and what became of the goals."""
import re

from measure import ratio
from servers import SERVERS

LABELS = {server.name: server.label for server in SERVERS}
FLOOR, BARE = "hyper-headers", "hyper"

# Per way to measure: heading, and how a row's figure is told.
COLUMNS = {
    "requests": [("CPU µs/request", lambda row: micros(row["cpu"])), ("requests/s", lambda row: f"{row['rate']:,.0f}"),
                 ("p50 ms", lambda row: f"{row['p50'] / 1000:.2f}"), ("p99 ms", lambda row: f"{row['p99'] / 1000:.2f}"),
                 ("RSS MiB", lambda row: f"{row['rss']:.0f}")],
    "fanout": [("CPU µs/delivery", lambda row: f"{row['cpu']:.1f}"), ("deliveries/s", lambda row: f"{row['rate']:,.0f}"),
               ("p50 ms", lambda row: f"{row['p50'] / 1000:.1f}"), ("p99 ms", lambda row: f"{row['p99'] / 1000:.1f}"),
               ("KiB a subscriber", lambda row: f"{row['kib']:.1f}")],
    "start": [("start ms", lambda row: f"{row['start']:.1f}"), ("idle RSS MiB", lambda row: f"{row['rss']:.1f}")],
    "stream": [("records", lambda row: f"{row['records']:,}"), ("MiB sent", lambda row: f"{row['mib']:.0f}"),
               ("s", lambda row: f"{row['seconds']:.1f}"), ("CPU µs/record", lambda row: f"{row['cpu']:.2f}"),
               ("RSS before, MiB", lambda row: f"{row['idle']:.0f}"), ("peak RSS, MiB", lambda row: f"{row['peak']:.0f}")],
    "nested": [(f"CPU µs per 1,000 parents, {levels}", lambda row, at=depth: f"{row[f'level{at}']:,.0f}")
               for depth, levels in [(1, "one level"), (2, "two"), (3, "three")]],
}
COLUMNS["waves"] = COLUMNS["requests"]
UNITS = {"cpu": "µs", "kib": "KiB", "rss": "MiB", "start": "ms", "rate": "/s"}


def told(name):
    """`trefoil at 1,000` as a person would say it."""
    server, _, size = name.partition(" at ")
    return LABELS.get(server, server) + (f", {size} records" if size else "")


def table(workload, rows):
    """As lines of cells, the heading first."""
    columns = COLUMNS[workload.way]
    bases = [(f"× {told(base)}", base) for base in (FLOOR, BARE) if base in rows]
    if workload.way == "fanout":
        bases = [("× raw epoll", "epoll")] if "epoll" in rows else []
    figure = "start" if workload.way == "start" else "cpu"
    lines = [["server", columns[0][0], *[heading for heading, _ in bases], *[heading for heading, _ in columns[1:]]]]
    for name, row in rows.items():
        times = [ratio(rows, figure, name, base) for _, base in bases]
        lines.append([told(name), columns[0][1](row), *[number(each) for each in times],
                      *[tell(row) for _, tell in columns[1:]]])
    if any(row.get("writes") is not None for row in rows.values()):
        lines[0].append("acknowledged, all stored")
        for line, row in zip(lines[1:], rows.values()):
            line.append("" if row.get("writes") is None else f"{row['writes']:,}")
    return lines


def number(value):
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def micros(value):
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def aligned(lines):
    widths = [max(len(cell) for cell in column) for column in zip(*lines)]
    return ["  ".join(cell.ljust(width) if at == 0 else cell.rjust(width)
                      for at, (cell, width) in enumerate(zip(line, widths))) for line in lines]


def markdown(lines):
    rule = ["---", *["--:"] * (len(lines[0]) - 1)]
    return ["| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]]]


def judged(workload, rows):
    """(goal in words, figure, reached) of each goal that this run can judge."""
    verdicts = []
    # Where stores of several sizes are compared, it is the largest that counts.
    ours = [name for name in rows if name.split(" at ")[0] == "trefoil"]
    if not ours:
        return verdicts
    for goal in workload.goals:
        value = ratio(rows, goal.figure, ours[-1], goal.against) if goal.against else rows[ours[-1]][goal.figure]
        if value is None:
            continue
        reached = value >= goal.limit if goal.at_least else value <= goal.limit
        sign = "≥" if goal.at_least else "≤"
        what = f"{sign} {goal.limit:g} " + (f"× {told(goal.against)}" if goal.against else UNITS[goal.figure])
        subject = {"rate": "requests/s", "kib": "a subscriber", "rss": "idle memory", "start": "start"}.get(goal.figure, "CPU")
        verdicts.append((f"{subject} {what}", f"{value:.2f}", reached))
    return verdicts


def show(workload, rows):
    print(f"\n{workload.name}: {workload.title}")
    for line in aligned(table(workload, rows)):
        print("  " + line)
    for goal, value, reached in judged(workload, rows):
        print(f"  goal {goal}: {value}, {'reached' if reached else 'NOT REACHED'}")


def summary(workloads, found):
    """Every workload in a row: processor time of each server, and the goals."""
    names = [server.name for server in SERVERS if any(server.name in rows for rows in found.values())]
    lines = [["workload", *[told(name) for name in names]]]
    for workload in workloads:
        rows = found.get(workload.name, {})
        if workload.way in ("requests", "waves", "fanout") and len(workload.sizes) == 1 and rows:
            lines.append([workload.title, *[micros(rows[name]["cpu"]) if name in rows else "" for name in names]])
    return lines


def goals(workloads, found):
    lines = [["workload", "goal", "measured", ""]]
    for workload in workloads:
        for goal, value, reached in judged(workload, found.get(workload.name, {})):
            lines.append([workload.title, goal, value, "reached" if reached else "not reached"])
    return lines


def sections(workloads, found, facts):
    """What stands between the marks of docs/performance.md."""
    details = []
    for workload in workloads:
        if workload.name in found:
            details += ["", f"**{workload.title}** (`{workload.name}`)", "", *markdown(table(workload, found[workload.name]))]
    return {
        "facts": [f"- {fact}" for fact in facts],
        "summary": markdown(summary(workloads, found)),
        "goals": markdown(goals(workloads, found)),
        "details": details[1:],
    }


def renewed(text, parts):
    """The page with what is between its marks replaced, and everything else as it was."""
    for name, lines in parts.items():
        pattern = re.compile(rf"(<!-- bench:{name} -->\n).*?(<!-- end -->)", re.DOTALL)
        inside = "\n" + "\n".join(lines) + "\n\n"
        text, times = pattern.subn(lambda marks: marks[1] + inside + marks[2], text)
        if times != 1:
            raise ValueError(f"docs/performance.md has no place for {name}")
    return text
