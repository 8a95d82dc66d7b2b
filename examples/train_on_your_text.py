"""Train an ELF on your own text file, one example a line, and let it write.

    KERAS_BACKEND=jax python examples/train_on_your_text.py my_text.txt --output my_elf

Tokenizer, text encoder (masked-token objective) and ELF are all trained from scratch. It
needs no network. decode_loss starts near ln(vocabulary) nats a token; a few hundred steps
give words of the source, not sentences.
"""

import argparse
import os
import pathlib

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras_hub

import keras_elf

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("text", type=pathlib.Path)
parser.add_argument("--output", default="my_elf")
parser.add_argument("--vocabulary", type=int, default=1024)
parser.add_argument("--length", type=int, default=32, help="tokens of a sequence")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--epochs", type=int, default=10)
options = parser.parse_args()

lines = [line for line in options.text.read_text(encoding="utf-8").splitlines() if line.strip()]
proto = keras_elf.data.train_sentencepiece(lines, options.vocabulary)
preprocessor = keras_elf.ELFPreprocessor(
    keras_hub.models.T5Tokenizer(proto=proto), sequence_length=options.length
)
rows = preprocessor(lines)

encoder = keras_elf.encoders.TransformerEncoder(options.vocabulary, latent_dim=64, depth=2)
statistics = keras_elf.encoders.pretrain(encoder, rows, epochs=2, batch_size=options.batch)

elf = keras_elf.ELFGenerator(
    keras_elf.ELFBackbone(
        vocabulary_size=options.vocabulary, latent_dim=64, depth=4, hidden_size=128, num_heads=4
    ),
    encoder,
    preprocessor,
    latent_mean=statistics["latent_mean"],
    latent_std=statistics["latent_std"],
)
steps = options.epochs * (len(lines) // options.batch)
schedule = keras_elf.optimizers.WarmupSchedule(
    1e-2, steps // 20, "linear", total_steps=max(steps, 2), decay_steps=max(1, steps // 3)
)
elf.compile(optimizer=keras_elf.optimizers.Muon(schedule, ema_momentum=0.99))
elf.fit(rows, batch_size=options.batch, epochs=options.epochs)
elf.save_to_preset(options.output)
for text in elf.generate(num_samples=4, num_steps=32, seed=0):
    print("-", text)
