"""Draws the processor time per request of every server as bars, in colours that follow the reader's light or dark."""
import math
from html import escape

from report import LABELS, micros

WIDTH, LEFT, RIGHT, BAR, GAP = 880, 300, 110, 13, 3
# One hue for Trefoil, one for the floors, greys for the peers: told apart by lightness too.
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 } .value { font-size: 11px } .quiet { fill: #59636e; font-size: 11px }
  .line { stroke: #d1d9e0 } .floor { fill: #8c959f } .trefoil { fill: #1a7f37 } .peer { fill: #c3cad1 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .quiet { fill: #9198a1 } .line { stroke: #3d444d }
    .floor { fill: #656c76 } .trefoil { fill: #3fb950 } .peer { fill: #3d444d }
  }
"""


def drawn(workloads, found):
    """One group of bars a workload, on a logarithmic scale that all share."""
    groups = [(workload, found[workload.name]) for workload in workloads
              if workload.way in ("requests", "waves", "fanout") and len(workload.sizes) == 1 and workload.name in found]
    costs = [row["cpu"] for _, rows in groups for row in rows.values()]
    lowest, highest = 10 ** math.floor(math.log10(min(costs))), 10 ** math.ceil(math.log10(max(costs)))

    def x(cost):
        share = math.log(max(cost, lowest) / lowest) / math.log(highest / lowest)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    marks, y = [], 52
    for workload, rows in groups:
        marks.append(f'<text class="title" x="12" y="{y + 11}">{escape(workload.title)}</text>')
        y += 20
        for name, row in rows.items():
            sort = "trefoil" if name == "trefoil" else "floor" if name in ("hyper", "hyper-headers", "epoll") else "peer"
            marks.append(f'<text class="value" x="{LEFT - 8}" y="{y + 10}" text-anchor="end">{escape(LABELS[name])}</text>')
            marks.append(f'<rect class="{sort}" x="{LEFT}" y="{y}" width="{max(x(row["cpu"]) - LEFT, 1):.1f}" height="{BAR}" rx="2"/>')
            marks.append(f'<text class="value" x="{x(row["cpu"]) + 6:.1f}" y="{y + 10}">{micros(row["cpu"])} µs</text>')
            y += BAR + GAP
        y += 14
    lines = []
    cost = lowest
    while cost <= highest:
        lines.append(f'<line class="line" x1="{x(cost):.1f}" x2="{x(cost):.1f}" y1="40" y2="{y}"/>')
        lines.append(f'<text class="quiet" x="{x(cost):.1f}" y="34" text-anchor="middle">{cost:,} µs</text>')
        cost *= 10
    heading = "Processor time of the server per request (per delivery for fan-out); shorter is better; each line is ten times the one before"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 8}" width="{WIDTH}" height="{y + 8}" role="img" '
        f'aria-label="{escape(heading)}">', f"<style>{STYLE}</style>",
        f'<text class="quiet" x="12" y="16">{escape(heading)}</text>', *lines, *marks, "</svg>", ""])
