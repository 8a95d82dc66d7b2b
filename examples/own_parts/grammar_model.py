"""What the examples beside this file share: a text encoder, a small model, a score.

Each example trains or samples on sentences of `keras_elf.testing.TemplateGrammar` and counts how
many of those it writes are grammatical. The text encoder is trained once, the default model where
an example needs one; both are kept in the directory given by `--directory`.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras

import keras_elf
from keras_elf.encoders import TransformerEncoder, pretrain
from keras_elf.testing import TemplateGrammar, dummy_preprocessor, dummy_tokenizer

GRAMMAR = TemplateGrammar()
SENTENCES, NUM_SAMPLES = GRAMMAR.sentences(3000, seed=0), 100


def default_network(vocabulary_size, latent_dim, **settings):
    """The library's transformer, small."""
    sizes = {"depth": 2, "hidden_size": 96, "num_heads": 4, "bottleneck_dim": latent_dim}
    return keras_elf.ELFBackbone(vocabulary_size, latent_dim, **sizes, **settings)


def new_model(directory, network=default_network, quick=False, **settings):
    """An untrained `ELFGenerator`.

    Args:
        directory: where the text encoder is, or is to be kept.
        network: callable `(vocabulary_size, latent_dim) -> network`.
        quick: bool. Whether a new text encoder is trained for a few steps only.
        **settings: further arguments of `ELFGenerator`.
    """
    path = pathlib.Path(directory) / "text_encoder"
    if not path.exists():
        # A piece is a word, a row a sentence; the end token fills a row up.
        preprocessor = dummy_preprocessor(dummy_tokenizer(SENTENCES), sequence_length=14)
        encoder = TransformerEncoder(preprocessor.vocabulary_size, 64, depth=1)
        texts, epochs = (SENTENCES[:320], 1) if quick else (SENTENCES, 8)
        # The masked loss alone: latents that keep the part of speech and blur the word are easier
        # for a network this small. With the default weight a GRU of this size writes 80 %.
        found = pretrain(encoder, preprocessor(texts), epochs, verbose=2, unmasked_weight=0.0)
        scale = {name: found[name] for name in ("latent_mean", "latent_std")}
        untrained = default_network(encoder.vocabulary_size, encoder.latent_dim)
        keras_elf.ELFGenerator(untrained, encoder, preprocessor, **scale).save_to_preset(path)
    known = keras_elf.ELFGenerator.from_preset(path)
    given = {
        "encoder": known.encoder,
        "latent_mean": known.latent_encoder.latent_mean,
        "latent_std": known.latent_encoder.latent_std,
    }
    own = network(known.backbone.vocabulary_size, known.encoder.latent_dim)
    return keras_elf.ELFGenerator(
        own, preprocessor=known.preprocessor, seed=0, **{**given, **settings}
    )


def train(elf, texts=SENTENCES, epochs=8, quick=False):
    """`compile()` and `fit`, all their settings left to the library; `quick` is six steps."""
    elf.compile()
    return elf.fit(
        texts,
        batch_size=64,
        verbose=2,
        **({"steps_per_epoch": 3, "epochs": 2} if quick else {"epochs": epochs}),
    )


def default_model(directory, quick=False):
    """Path of the preset of the default model, trained when it is first asked for."""
    path = pathlib.Path(directory) / "default"
    if not path.exists():
        elf = new_model(directory, quick=quick)
        train(elf, quick=quick)
        elf.save_to_preset(path)
    return path


def share(elf, **options):
    """Share of grammatical sentences among those that `elf` writes; `options` of `generate`."""
    return GRAMMAR.grammatical_share(elf.generate(num_samples=NUM_SAMPLES, seed=1, **options))


def run(main, file):
    """`main` from the command line, then its model in a fresh process that imports `file`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", default="build/own_parts", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="a few steps, to see that it runs")
    options = parser.parse_args()
    keras.utils.set_random_seed(0)
    start, file = time.process_time(), pathlib.Path(file)
    preset = str((options.directory / file.stem).resolve())
    main(options.directory, options.quick).save_to_preset(preset)
    print(f"{time.process_time() - start:.0f} s of CPU; saved to {preset}")
    code = f"""import {file.stem}, keras_elf
elf = keras_elf.ELFGenerator.from_preset({preset!r})
print(*elf.generate(num_samples=3, seed=1), sep="\\n")"""
    subprocess.run([sys.executable, "-c", code], cwd=file.parent, check=True)
