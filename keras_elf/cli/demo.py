"""`make demo`: tokenizer, encoder and a nano ELF on the verses in the box, in minutes.

    KERAS_BACKEND=jax python -m keras_elf.cli.demo --output build/demo

Everything is real, only small: the same layers, objective, optimizer and sampler as the
published models, on 2 cores, without network.
"""

import os
import time

from keras_elf.cli.backend import prepare
from keras_elf.cli.parser import Parser, whole

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

VOCABULARY, LENGTH, LATENT, BATCH = 1024, 32, 128, 32


def main(arguments=None):
    """Run the demonstration; returns 0."""
    options = _parser().parse_args(arguments)
    from rich.console import Console

    import keras_elf
    from keras_elf.keras_hub_quietly import keras_hub

    console, start = Console(), time.time()
    prepare(seed=0)
    keras_elf.models  # noqa: B018  (loads what the steps below use, before the clock matters)

    _heading(console, start, "1. A tokenizer for the King James verses")
    verses = keras_elf.data.king_james_verses()
    proto = keras_elf.data.train_sentencepiece(verses, VOCABULARY)
    preprocessor = keras_elf.ELFPreprocessor(
        keras_hub.models.T5Tokenizer(proto=proto), sequence_length=LENGTH
    )
    rows = _short_rows(keras_elf, preprocessor, verses)
    held_out = {name: array[:256] for name, array in rows.items()}
    rows = {name: array[256:] for name, array in rows.items()}
    console.print(
        f"{len(verses):,} verses, {VOCABULARY} pieces; {len(rows['token_ids']):,} verses of up "
        f"to {LENGTH} tokens to train on, {len(held_out['token_ids'])} held out"
    )

    _heading(console, start, "2. A text encoder from scratch (masked tokens), then frozen")
    encoder = keras_elf.encoders.TransformerEncoder(VOCABULARY, LATENT, depth=2, num_heads=4)
    report = keras_elf.encoders.pretrain(
        encoder, _first(rows, options.encoder_steps * BATCH), batch_size=BATCH
    )

    _heading(console, start, "3. A nano ELF in its latent space")
    elf = keras_elf.ELFGenerator(
        keras_elf.ELFBackbone(
            vocabulary_size=VOCABULARY,
            latent_dim=LATENT,
            depth=4,
            hidden_size=128,
            num_heads=4,
            bottleneck_dim=48,
        ),
        encoder,
        preprocessor,
        latent_mean=report["latent_mean"],
        latent_std=report["latent_std"],
        seed=0,
    )
    console.print(f"{elf.backbone.count_params():,} parameters")
    steps = options.steps
    # Rates and averages by the length of the run.
    elf.compile()
    settings = {"num_samples": options.samples, "seed": options.seed, "num_steps": 32}
    before = elf.evaluate(held_out, batch_size=BATCH, return_dict=True, verbose=0)
    text_before = elf.generate(**settings)
    batches = keras_elf.data.TokenBatches(rows, batch_size=BATCH)
    elf.fit(
        batches,
        steps_per_epoch=min(steps, 100),
        epochs=max(1, steps // 100),
        shuffle=False,
    )
    after = elf.evaluate(held_out, batch_size=BATCH, return_dict=True, verbose=0)

    _heading(console, start, f"4. Saved to {options.output}, loaded again")
    elf.save_to_preset(options.output)
    loaded = keras_elf.ELFGenerator.from_preset(options.output)
    text_after = loaded.generate(**settings)

    _heading(console, start, "5. What it learned")
    console.print(_table(before, after, text_before, text_after))
    console.print(_EPILOGUE.format(output=options.output), markup=False)
    return 0


def _parser():
    parser = Parser(
        prog="keras-elf demo",
        description="Train a small ELF on the bundled verses and let it write.",
    )
    parser.add_argument("--output", default="build/demo/elf_nano_kjv", help="preset directory")
    parser.add_argument("--steps", type=whole(1), default=300, help="training steps of the ELF")
    parser.add_argument("--encoder-steps", type=whole(1), default=200, help="of the encoder")
    parser.add_argument("--samples", type=whole(1), default=4, help="texts to write")
    parser.add_argument("--seed", type=whole(0), default=0, help="seed of the texts")
    return parser


def _short_rows(keras_elf, preprocessor, verses):
    """Rows of the verses that fit whole, so that every one ends with its end token."""
    ids = keras_elf.data.to_token_ids("verses", verses, preprocessor.tokenizer)
    kept = [row for row in ids if len(row) < LENGTH]
    return preprocessor(kept)


def _first(rows, count):
    return {name: array[:count] for name, array in rows.items()}


def _heading(console, start, text):
    console.rule(f"[bold]{text}[/] [dim]({time.time() - start:.0f} s)[/]", align="left")


def _table(before, after, text_before, text_after):
    from rich.table import Table

    table = Table("", "before training", "after training", show_lines=True)
    for name, unit in (("decode_loss", "nats a token"), ("denoise_loss", "squared velocity")):
        label = f"{name}\n({unit}, held out)"
        table.add_row(label, f"{before[name]:.3f}", f"{after[name]:.3f}")
    for number, (old, new) in enumerate(zip(text_before, text_after, strict=True), 1):
        table.add_row(f"sample {number}", old, new)
    return table


_EPILOGUE = """\
Minutes of training on two cores give rough text: the words of the source, little grammar.
Both losses are still falling. To go on:

  python -m keras_elf.cli.demo --steps 4000 --encoder-steps 2000     trains ten times longer

  import keras_elf
  elf = keras_elf.ELFGenerator.from_preset("{output}")
  print(elf.generate(num_samples=2, num_steps=64, seed=1))
"""


if __name__ == "__main__":
    raise SystemExit(main())
