"""The record of one evaluation: figures, and all that they depend on."""

import dataclasses
import json

# In the order of the table: name, digits, unit.
FIGURES = {
    "generative_perplexity": (2, ""),
    "unigram_entropy": (3, "nats"),
    "bleu": (2, ""),
    "rouge1": (2, ""),
    "rouge2": (2, ""),
    "rougeL": (2, ""),
    "exact_match": (4, "of all texts"),
    "distinct_1": (4, ""),
    "distinct_2": (4, ""),
    "distinct_3": (4, ""),
    "repeated_4grams": (4, "of a text's"),
    "looping_texts": (4, "of all texts"),
    "different_texts": (4, "of all texts"),
    "copied_texts": (4, "of all texts"),
    "new_4grams": (4, "of a text's"),
    "openings_distance": (4, "0 as the corpus"),
    "unscored_texts": (4, "of all texts"),
    "word_entropy": (3, "nats"),
    "mean_tokens": (1, "judge's tokens"),
    "mean_words": (1, "words and marks"),
}
_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class GenerationReport:
    """Figures of generated texts with what they depend on; made by `evaluate_generation`.

    Attributes:
        num_samples: int. Texts evaluated.
        figures: dict of str to float; a figure that was not asked for is missing.
        flags: tuple of str. Signs of collapsed text; empty if there are none.
        settings: dict. How the texts were sampled: sampler, steps, guidance, length, seed,
            dtype, forward passes of the network for each text.
        judge: dict with the judge's name, dtype, context and vocabulary, or `None`.
        environment: dict. Backend, and versions of what took part.
        seconds: dict. Wall-clock seconds of `"generation"` (compilation included) and
            `"evaluation"`.
        published: dict. The published figures nearest to these settings, or `None`.
        differences: tuple of str. How the protocol differs from the published one.
    """

    num_samples: int
    figures: dict
    flags: tuple = ()
    settings: dict = dataclasses.field(default_factory=dict)
    judge: dict | None = None
    environment: dict = dataclasses.field(default_factory=dict)
    seconds: dict = dataclasses.field(default_factory=dict)
    published: dict | None = None
    differences: tuple = ()

    @property
    def collapsed(self):
        """Whether anything was flagged."""
        return bool(self.flags)

    def to_json(self):
        """The report as JSON, str; `from_json` reads it back equal."""
        fields = {"format": _FORMAT, **dataclasses.asdict(self)}
        return json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text):
        """The report that `to_json` wrote.

        Args:
            text: str.

        Raises:
            ValueError: for anything else.
        """
        try:
            fields = json.loads(text)
        except (TypeError, ValueError) as error:
            raise ValueError(f"`text` must be JSON from `to_json`: {error}") from error
        known = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(fields, dict) or fields.pop("format", None) != _FORMAT:
            raise ValueError(f"`text` must be a report in format {_FORMAT}. Received: {text:.80}")
        unknown, missing = sorted(set(fields) - known), {"num_samples", "figures"} - set(fields)
        if unknown or missing:
            raise ValueError(
                f"`text` is not a report. Unknown fields {unknown}, missing "
                f"fields {sorted(missing)}"
            )
        for name in ("flags", "differences"):
            fields[name] = tuple(fields.get(name, ()))
        return cls(**fields)

    def table(self):
        """A `rich.table.Table` for people: `rich.print(report.table())`."""
        from rich.table import Table
        from rich.text import Text

        published = self.published or {}
        table = Table(title=f"{self.num_samples} generated texts", show_lines=False)
        table.add_column("figure")
        table.add_column("value", justify="right")
        if published:
            table.add_column("published", justify="right")
        table.add_column("")
        for name, (digits, unit) in FIGURES.items():
            value, other = self.figures.get(name), published.get(name)
            if value is None and other is None:
                continue
            cells = [name.replace("_", " "), "-" if value is None else f"{value:.{digits}f}"]
            if published:
                cells.append("" if other is None else f"{other:g}")
            table.add_row(*cells, unit)
        table.add_section()
        for name, value in self._circumstances():
            table.add_row(name, Text(str(value)), *([""] if published else []), "")
        notes = [f"! {flag}" for flag in self.flags]
        if published:
            notes += [f"Published: {published.get('data', '')}"]
            notes += [f"Differs: {difference}" for difference in self.differences]
        table.caption = Text("\n".join(notes)) if notes else None
        table.caption_justify = "left"
        return table

    def _circumstances(self):
        """Pairs of what the figures depend on, flattened for the table."""
        for source in (self.settings, self.environment):
            for name, value in source.items():
                if isinstance(value, dict):
                    value = ", ".join(f"{key}={entry}" for key, entry in value.items())
                yield name.replace("_", " "), value
        if self.judge is not None:
            yield "judge", f"{self.judge['name']}, {self.judge['dtype']}"
        for name, value in self.seconds.items():
            yield f"{name} time", f"{value:.1f} s"
