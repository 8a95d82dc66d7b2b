"""Figures as rows of text, for the terminal and for Markdown."""

COLUMNS = (
    "what",
    "first call",
    "median",
    "min..max",
    "time / first row",
    "FLOPs / first row",
    "tokens/s",
    "GFLOP",
    "of matmul rate",
    "peak memory",
    "in a call",
)


def table(figures):
    """Names of columns, and a row of strings for each figure, without columns that are empty."""
    rows = [_row(figure) for figure in figures]
    used = [i for i in range(len(COLUMNS)) if any(row[i] for row in rows)]
    return [COLUMNS[i] for i in used], [[row[i] for i in used] for row in rows]


def _row(figure):
    time = figure["time_s"]
    ratio, share = figure.get("ratio"), figure.get("matmul_share")
    return [
        figure["what"],
        seconds(figure.get("first_s")),
        seconds(time["median"]),
        f"{seconds(time['min'])}..{seconds(time['max'])}" if time["n"] > 1 else "",
        _ratio(ratio),
        f"{figure['flops_ratio']:.2f}" if "flops_ratio" in figure else "",
        f"{figure['tokens_per_s']:,.0f}" if "tokens_per_s" in figure else "",
        f"{figure['flops'] / 1e9:,.1f}" if "flops" in figure else "",
        f"{share:.0%}" if share else "",
        size(figure.get("peak_bytes")),
        size(figure.get("call_bytes")),
    ]


def notes(figures):
    """Lines for what has no column of its own."""
    lines = []
    if any("difference" in f for f in figures):
        lines.append("FLOPs of the plain iteration, whichever way it is computed.")
    for f in figures:
        head = f"{f['case']}, {f['what']}:"
        if f.get("difference"):
            lines.append(f"{head} differs from the plain one by {f['difference']:.1e} of its top")
        if "muon_share" in f:
            parts = (f"{s['share']:.1%} at {s['tokens'] // 1024}k" for s in f["muon_share"])
            lines.append(
                f"Newton-Schulz takes of a step with as many tokens: {', '.join(parts)} "
                f"(measured at {f['tokens']:,}, loss and gradient in proportion elsewhere)"
            )
        if f.get("share_of_step", 1.0) != 1.0:
            lines.append(f"{head} {f['share_of_step']:.2%} of the time of a training step")
        if "same_tokens" in f:
            lines.append(f"{head} {f['same_tokens']:.2%} of {f['tokens']:,} tokens as in float32")
        if "peak_over_weights" in f:
            lines.append(f"{head} peak {f['peak_over_weights']:.2f} x the weights")
    return lines


def seconds(value):
    """A time with three digits, in the unit that suits it."""
    if value is None:
        return ""
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s" if value < 100 else f"{value:.0f} s"


def size(value):
    """A number of bytes in MB or GB."""
    if value is None:
        return ""
    return f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.0f} MB"


def _ratio(ratio):
    if ratio is None or ratio["median"] == ratio["min"] == ratio["max"] == 1.0:
        return ""
    return f"{ratio['median']:.2f} ({ratio['min']:.2f}..{ratio['max']:.2f})"
