"""The table and the picture of a scaling measurement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table


def table(result: dict[str, Any]) -> Table:
    base = result["base"]
    title = (
        f"efficiency against the fastest rank alone: {base['games_per_rank']} games, {base['points_per_second']:,.0f}/s"
    )
    columns = (
        "scaling",
        "ranks",
        "hosts",
        "games per rank",
        "batch",
        "data points/s",
        "efficiency",
        "updates/s",
        "waiting",
    )
    rows = Table(*columns, title=title)
    for row in result["rows"]:
        rows.add_row(
            row["scaling"],
            str(row["ranks"]),
            str(row["hosts"]),
            str(row["games_per_rank"]),
            str(row["effective_batch"]),
            f"{row['points_per_second']:,.0f}",
            f"{row['efficiency']:.0%}",
            f"{row['updates_per_second']:.1f}",
            f"{row['wait_share']:.0%}",
        )
    return rows


def transports(result: dict[str, Any]) -> str:
    times = [f"{name} {value:.2f} ms" for name, value in result["allreduce_milliseconds"].items()]
    return f"one all-reduce over all ranks: {', '.join(times)}"


def plot(result: dict[str, Any], file: Path) -> None:
    """Data points/s and efficiency against the number of ranks."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import PercentFormatter, ScalarFormatter

    figure, (paces, efficiencies) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
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
