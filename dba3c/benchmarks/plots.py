"""The results of the benchmarks as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def pyplot() -> Any:
    """Matplotlib for files, without a screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def scaling(result: dict[str, Any], file: Path) -> None:
    """Data points/s and efficiency against the number of ranks, and against the hidden units if those were measured."""
    from matplotlib.ticker import PercentFormatter, ScalarFormatter

    plt = pyplot()
    panels = 3 if result["hidden"] else 2
    figure, (paces, efficiencies, *rest) = plt.subplots(1, panels, figsize=(5 * panels, 4), layout="constrained")
    for axes in rest:
        hidden_units(result["hidden"], axes)
    counts = sorted({row["ranks"] for row in result["rows"]})
    ideal = [count * result["base"]["points_per_second"] for count in counts]
    paces.plot(counts, ideal, ":", color="gray", label="ideal")
    for kind, marker in (("weak", "o"), ("strong", "s")):
        rows = [row for row in result["rows"] if row["scaling"] == kind]
        x = [row["ranks"] for row in rows]
        paces.plot(x, [row["points_per_second"] for row in rows], marker=marker, label=kind)
        efficiencies.plot(x, [row["efficiency"] for row in rows], marker=marker, label=kind)
    paces.set(xscale="log", yscale="log", ylabel="data points/s", title=result["machine"]["cpu"])
    efficiencies.set(xscale="log", ylim=(0, 1.1), ylabel="efficiency against the fastest rank alone")
    efficiencies.yaxis.set_major_formatter(PercentFormatter(1.0))
    for axes in (paces, efficiencies):
        axes.set_xlabel("ranks")
        axes.set_xticks(counts, minor=False)
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    paces.set_yticks(ideal, [f"{pace:,.0f}" for pace in ideal])
    paces.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def hidden_units(rows: list[dict[str, Any]], axes: Any) -> None:
    """Data points/s of all ranks against the size of the hidden layer."""
    units = [row["hidden"] for row in rows]
    axes.plot(units, [row["points_per_second"] for row in rows], marker="o")
    axes.set(xscale="log", xlabel="hidden units", ylabel=f"data points/s of {rows[0]['ranks']} ranks")
    axes.set_ylim(bottom=0)
    axes.set_xticks(units, [str(count) for count in units])
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def prediction(result: dict[str, Any], file: Path) -> None:
    """Predicted efficiency against the number of nodes, for each network."""
    from matplotlib.ticker import PercentFormatter

    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name in dict.fromkeys(row["network"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["network"] == name]
        axes.plot([row["nodes"] for row in rows], [row["efficiency"] for row in rows], marker="o", label=name)
    axes.plot([64], [0.63], "kx", label="the paper, 64 nodes")
    nodes = sorted({row["nodes"] for row in result["rows"]})
    axes.set(xscale="log", ylim=(0, 1.05), xlabel=f"nodes of {result['cores_per_node']} cores", ylabel="efficiency")
    axes.set_xticks(nodes, [str(count) for count in nodes])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(alpha=0.3)
    axes.legend()
    axes.set_title(f"preset {result['measured']['preset']}, predicted from one node ({result['machine']['cpu']})")
    figure.savefig(file, dpi=120)
    plt.close(figure)
