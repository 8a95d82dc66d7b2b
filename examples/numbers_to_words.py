"""Conditional generation with one right answer each: digits in, the number in words out.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python examples/numbers_to_words.py

Trains on 6,000 pairs such as "1 2 0 4" and "one thousand two hundred four", and prints how many of
200 held-out numbers are written exactly. Beside it stands the same share against another number's
words: near 0 %, or the model would not look at its condition. What conditional tasks set otherwise
than unconditional text is in `conditional_settings()`; rates and averages are chosen by the length
of the run.

Measured on PyTorch, 8 epochs of 93 steps: 98.5 % exact, 0.0 % with another number's condition,
99.8 % of the tokens of held-out words read back; 310 s of one core.
"""

import argparse
import os
import time

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras

import keras_elf
from keras_elf.data import train_sentencepiece
from keras_elf.encoders import TransformerEncoder, pretrain
from keras_elf.evaluation import exact_match
from keras_elf.keras_hub_quietly import keras_hub
from keras_elf.models import conditional_settings
from keras_elf.testing import split_number_pairs

# Four digits, six words and the end token, and one to spare.
CONDITION, LENGTH, LATENT = 4, 12, 64


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=6000)
    parser.add_argument("--encoder-epochs", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args(arguments)
    keras.utils.set_random_seed(0)
    if keras.backend.backend() == "torch":
        import torch

        torch.set_flush_denormal(True)
    start = time.time()

    train, held_out = split_number_pairs(options.pairs, 200, seed=0)
    proto = train_sentencepiece(train["condition"] + train["target"], model_type="auto")
    tokenizer = keras_hub.models.T5Tokenizer(proto=proto)
    size = tokenizer.vocabulary_size()
    preprocessor = keras_elf.ELFPreprocessor(
        tokenizer, LENGTH, condition_length=CONDITION, pad_with="end"
    )
    encoder = TransformerEncoder(size, LATENT, depth=2)
    statistics = pretrain(
        encoder,
        dict(preprocessor(train)),
        epochs=options.encoder_epochs,
        verbose=2,
        # Every digit counts here, and no word can be told from its neighbours.
        unmasked_weight=0.3,
    )
    backbone = keras_elf.ELFBackbone(
        vocabulary_size=size,
        latent_dim=LATENT,
        depth=4,
        hidden_size=128,
        num_heads=4,
        bottleneck_dim=LATENT,
    )
    elf = keras_elf.ELFGenerator(
        backbone,
        encoder,
        preprocessor,
        latent_mean=statistics["latent_mean"],
        latent_std=statistics["latent_std"],
        seed=0,
        **conditional_settings(),
    )
    elf.compile()
    elf.fit(train, epochs=options.epochs, batch_size=64, verbose=2)

    conditions, right = held_out["condition"], held_out["target"]
    texts = elf.generate(conditions, seed=1, verbose=False)
    for condition, text, words in list(zip(conditions, texts, right, strict=True))[:8]:
        print(f"{condition:>8} -> {text}" + ("" if text == words else f"  (right: {words})"))
    # Each text beside the words of the number after its own.
    other = right[1:] + right[:1]
    print(f"exact match: {exact_match(texts, right):.1%} of {len(texts)} held-out numbers")
    print(f"with another number's condition: {exact_match(texts, other):.1%}")
    print(f"tokens read back: {elf.reconstruct(held_out, return_accuracy=True):.1%}")
    print(f"{time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
