"""Draws grafana-dashboard.json from what a Prometheus answers to its queries, as a picture without Grafana.

Usage: draw_dashboard.py PROMETHEUS_URL MINUTES PICTURE.svg        (requires matplotlib)
"""

import json
import math
import re
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

INK, FAINT, PANEL = "#1f2933", "#9aa5b1", "#f7f9fb"
COLORS = ["#2f6fde", "#d9480f", "#2b8a3e", "#9c36b5", "#e8a400", "#0c8599", "#c2255c", "#5c7cfa", "#66a80f", "#868e96"]
STEPS = 100


def query(url, path, **parameters):
    address = f"{url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.load(answer)["data"]["result"]


def expression(target):
    """The query as Grafana sends it for all instances."""
    return target["expr"].replace("$instance", ".*").replace("$__rate_interval", "15s")


def legend(target, labels):
    return re.sub(r"{{\s*(\w+)\s*}}", lambda name: labels.get(name[1], ""), target["legendFormat"]).strip()


def with_unit(value, unit):
    if math.isnan(value):
        return "–"
    if unit == "percentunit":
        return f"{value:.0%}"
    if unit == "reqps":
        return f"{value:.3g}/s"
    if unit == "s":
        scales = [(1, "s"), (1e-3, "ms"), (1e-6, "µs")]
        scale, name = next((pair for pair in scales if abs(value) >= pair[0]), scales[-1])
        return f"{value / scale:.3g} {name}" if value else "0 s"
    return f"{value:.3g}"


def draw_stat(axes, panel, url, end):
    unit = panel["fieldConfig"]["defaults"]["unit"]
    found = query(url, "query", query=expression(panel["targets"][0]), time=end)
    text = with_unit(float(found[0]["value"][1]), unit) if found else "no data"
    axes.text(0.5, 0.42, text, ha="center", va="center", fontsize=17, color=COLORS[0], transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])


def draw_series(axes, panel, url, start, end):
    unit = panel["fieldConfig"]["defaults"]["unit"]
    drawn = 0
    for target in panel["targets"]:
        step = (end - start) / STEPS
        for series in query(url, "query_range", query=expression(target), start=start, end=end, step=step):
            times, values = zip(*((float(at) - start, float(value)) for at, value in series["values"]))
            label = legend(target, series["metric"])
            axes.plot([at / 60 for at in times], values, color=COLORS[drawn % len(COLORS)], linewidth=1.3, label=label)
            drawn += 1
    axes.set_xlim(0, (end - start) / 60)
    # The legend is above the lines.
    axes.set_ylim(0, max(axes.get_ylim()[1], 1e-6) * 1.35)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: with_unit(value, unit)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} min"))
    axes.tick_params(labelsize=7, colors=INK, length=2)
    axes.grid(color="#e4e7eb", linewidth=0.6)
    if drawn:
        axes.legend(fontsize=6.5, loc="upper left", frameon=True, framealpha=0.85, edgecolor="none", ncols=2)
    else:
        axes.text(0.5, 0.5, "no data", ha="center", va="center", fontsize=9, color=FAINT, transform=axes.transAxes)


def draw_table(axes, panel, url, end):
    lines = []
    for target in panel["targets"]:
        for series in query(url, "query", query=expression(target), time=end):
            labels = {key: value[:12] for key, value in series["metric"].items() if key not in ("__name__", "job")}
            lines.append("    ".join(f"{key}: {value}" for key, value in sorted(labels.items())))
    axes.text(0.01, 0.8, "\n".join(lines), va="top", fontsize=8, color=INK, transform=axes.transAxes, linespacing=1.8)
    axes.set_xticks([])
    axes.set_yticks([])


def main(url, minutes, picture):
    dashboard = json.loads((Path(__file__).parent / "grafana-dashboard.json").read_text(encoding="utf-8"))
    end = time.time()
    start = end - float(minutes) * 60
    panels = dashboard["panels"]
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    # Names of tools and policies are no formulas.
    plain = {"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "callgate", "font.family": "DejaVu Sans"}
    plt.rcParams.update(plain)
    figure = plt.figure(figsize=(12, rows * 0.29))
    for panel in panels:
        at = panel["gridPos"]
        left, width = at["x"] / 24 + 0.035, at["w"] / 24 - 0.05
        height = at["h"] / rows - 0.022
        axes = figure.add_axes((left, 1 - (at["y"] + at["h"]) / rows + 0.008, width, height), facecolor=PANEL)
        for spine in axes.spines.values():
            spine.set_color("#cbd2d9")
        axes.set_title(panel["title"], fontsize=8.5, color=INK, loc="left", pad=3, fontweight="bold")
        if panel["type"] == "stat":
            draw_stat(axes, panel, url, end)
        elif panel["type"] == "timeseries":
            draw_series(axes, panel, url, start, end)
        else:
            draw_table(axes, panel, url, end)
    figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
