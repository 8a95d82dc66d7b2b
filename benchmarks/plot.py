"""Pictures of the figures. Matplotlib is imported only when one is asked for."""

import importlib.util


def require_matplotlib():
    """Exit with what to do where matplotlib is missing, before anything is measured."""
    if importlib.util.find_spec("matplotlib") is None:
        raise SystemExit("--plot needs matplotlib: python -m pip install matplotlib")


def draw(records, path):
    """Draw ratios, shares of the matmul rate and, where measured, scaling.

    Args:
        records: list of records, one a backend.
        path: where the picture goes; its ending chooses the format.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    scaling = [r for r in records if any(f["case"] == "scaling" for f in r["figures"])]
    others = [(r, f) for r in records for f in r["figures"] if f["case"] != "scaling"]
    ratios = [(r, f) for r, f in others if _compared(f)]
    shares = [(r, f) for r, f in others if f.get("matmul_share")]
    panels = [bool(ratios), bool(shares), bool(scaling)]
    rows = max(len(ratios), len(shares), 8)
    figure = Figure(figsize=(6.5 * max(sum(panels), 1), 1 + 0.32 * rows), layout="constrained")
    axes = iter(figure.subplots(1, max(sum(panels), 1), squeeze=False)[0])
    if ratios:
        _bars(next(axes), ratios, "ratio", "time over that of the first of its case")
    if shares:
        _bars(next(axes), shares, "matmul_share", "share of the measured matmul rate")
    if scaling:
        _scaling(next(axes), scaling)
    names = sorted({f"{r['size']} on {r['backend']}" for r in records})
    machine = records[0]["machine"]
    figure.suptitle(f"{', '.join(names)}; {machine['gpu'] or machine['cpu']}")
    figure.savefig(path, dpi=150)


def _compared(figure):
    return figure.get("ratio", {}).get("to", figure["what"]) != figure["what"]


def _bars(axes, pairs, key, title):
    labels = [f"{f['case']}: {f['what']} ({r['backend']}, {f.get('dtype', '')})" for r, f in pairs]
    values, errors = [], []
    for _, figure in pairs:
        value = figure[key]
        if isinstance(value, dict):
            errors.append((value["median"] - value["min"], value["max"] - value["median"]))
            value = value["median"]
        values.append(value)
    bars = list(zip(*errors, strict=True)) if errors else None
    axes.barh(range(len(values)), values, xerr=bars, color="tab:blue", ecolor="black")
    axes.set_yticks(range(len(values)), labels, fontsize=7)
    axes.invert_yaxis()
    axes.axvline(1.0, color="gray", linewidth=0.8)
    axes.set_xlabel(title)


def _scaling(axes, records):
    for record in records:
        lines = {}
        for figure in record["figures"]:
            if figure["case"] == "scaling":
                key = figure["work"], figure["axis"]
                lines.setdefault(key, []).append((figure["flops"], figure["time_s"]["median"]))
        for (work, axis), points in lines.items():
            x, y = zip(*sorted(points), strict=True)
            axes.plot(x, y, marker="o", label=f"{work}, {axis} ({record['backend']})")
    axes.set(xscale="log", yscale="log", xlabel="FLOPs", ylabel="seconds")
    axes.legend(fontsize=7)
