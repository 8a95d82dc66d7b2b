"""What training and sampling ask of an objective, and an objective of a network."""

ATTRIBUTES = ("report_names", "prediction", "noise_scale", "min_time_gap")


def check_parts(objective):
    """Raise `ValueError` for an object that cannot serve as a generator's objective.

    An objective has `draw(shape, seed)`, `__call__(network, batch, draws, training=True)`,
    `report_names` (the names of its report besides `loss`), and, which sampling reads,
    `prediction`, `noise_scale` and `min_time_gap`. See `ELFObjective` for what they mean.
    """
    missing = [name for name in ATTRIBUTES if not hasattr(objective, name)]
    missing += [] if callable(getattr(objective, "draw", None)) else ["draw"]
    missing += [] if callable(objective) else ["__call__"]
    if isinstance(objective, (type, str)) or missing:
        raise ValueError(
            "`objective` must be an ELFObjective, or an object with `draw`, `__call__` and "
            f"{', '.join(f'`{name}`' for name in ATTRIBUTES)}. Received: {objective!r:.200}"
            + (f", which lacks {missing}" if missing else "")
        )
    names = list(objective.report_names)
    if "loss" in names or len(set(names)) != len(names):
        raise ValueError(
            "`objective.report_names` must be different names, without 'loss', which every "
            f"objective reports. Received: {names}"
        )


def check_report(objective, report):
    """Raise `ValueError` where a report holds other names than `report_names` says."""
    declared = {"loss", *objective.report_names}
    if set(report) != declared:
        raise ValueError(
            "An objective must report 'loss' and its `report_names`, no more and no less. "
            f"Missing: {sorted(declared - set(report))}, not declared: "
            f"{sorted(set(report) - declared)}"
        )
