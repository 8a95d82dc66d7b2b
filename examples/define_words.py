"""A conditional ELF: from a word to its definition, and whether it looks at the word at all.

    KERAS_BACKEND=jax python examples/define_words.py --steps 2000

Trains tokenizer, encoder and network on WordNet's entries, a word as the condition and its
definition as the target, then writes definitions of words that were held out: with their own word,
with another word in its place, and before training. BLEU and ROUGE against WordNet's definitions
tell whether the condition is used: compare the rows of the table it prints. Needs
`pip install "keras-elf[eval]"`, no network; 2,000 steps of 64 rows on two cores are a matter of
minutes where they are compiled. Grammar stays rough.
"""

import argparse
import os
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import keras_hub
import numpy as np

import keras_elf
from keras_elf.evaluation import bleu, rouge

VOCABULARY, LENGTH, CONDITION, LATENT = 2048, 32, 8, 128


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--encoder-steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--held-out", type=int, default=256)
    parser.add_argument("--output", default="build/define_words")
    options = parser.parse_args(arguments)
    keras.utils.set_random_seed(0)
    if keras.backend.backend() == "torch":
        import torch

        torch.set_flush_denormal(True)
    start = time.time()

    words, definitions = keras_elf.data.wordnet_definitions()
    order = np.random.default_rng(0).permutation(len(words))
    pairs = [(words[i], definitions[i]) for i in order]
    held_out, pairs = pairs[: options.held_out], pairs[options.held_out :]
    texts = [text for pair in pairs for text in pair]
    preprocessor = keras_elf.ELFPreprocessor(
        keras_hub.models.T5Tokenizer(proto=keras_elf.data.train_sentencepiece(texts, VOCABULARY)),
        sequence_length=LENGTH,
        condition_length=CONDITION,
        # The model has to learn where a definition ends.
        pad_with="end",
    )
    rows = preprocessor({"condition": [w for w, _ in pairs], "target": [d for _, d in pairs]})
    encoder = keras_elf.encoders.TransformerEncoder(VOCABULARY, LATENT, depth=2, num_heads=4)
    first = {name: array[: options.encoder_steps * options.batch] for name, array in rows.items()}
    statistics = keras_elf.encoders.pretrain(encoder, first, batch_size=options.batch, verbose=0)
    elf = keras_elf.ELFGenerator(
        keras_elf.ELFBackbone(
            vocabulary_size=VOCABULARY,
            latent_dim=LATENT,
            depth=4,
            hidden_size=128,
            num_heads=4,
            bottleneck_dim=64,
        ),
        encoder,
        preprocessor,
        latent_mean=statistics["latent_mean"],
        latent_std=statistics["latent_std"],
        label_drop_probability=0.1,
        objective=keras_elf.objectives.ELFObjective(decode_noise_scale=1.0),
        sampler=keras_elf.samplers.ODESampler(),
        num_steps=16,
        self_cond_guidance_scale=1.0,
        seed=0,
    )
    print(f"{len(pairs):,} pairs, {elf.backbone.count_params():,} parameters")
    schedule = keras_elf.optimizers.WarmupSchedule(
        1e-2,
        options.steps // 20,
        "linear",
        total_steps=max(2, options.steps),
        decay_steps=max(1, options.steps // 3),
    )
    elf.compile(optimizer=keras_elf.optimizers.Muon(schedule, ema_momentum=0.99))
    report = {"before training": scores(elf, held_out)}
    batches = keras_elf.data.TokenBatches(rows, batch_size=options.batch)
    each = min(options.steps, len(batches))
    epochs = max(1, round(options.steps / each))
    history = elf.fit(batches, steps_per_epoch=each, epochs=epochs, shuffle=False, verbose=2)
    report["trained"] = scores(elf, held_out)
    report["trained, no guidance"] = scores(elf, held_out, guidance_scale=1.0)
    report["trained, another word"] = scores(elf, held_out, shuffled=True)
    elf.save_to_preset(options.output)

    losses = history.history["loss"]
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {time.time() - start:.0f} s")
    for name, (b, r, _) in report.items():
        print(f"{name:24} BLEU {b:5.2f}  ROUGE-1 {r['rouge1']:5.2f}  ROUGE-L {r['rougeL']:5.2f}")
    for (word, definition), text in list(zip(held_out, report["trained"][2], strict=True))[:8]:
        print(f"{word}: {text}  [{definition}]")
    return report


def scores(elf, held_out, guidance_scale=2.0, shuffled=False):
    """BLEU, ROUGE and texts for the held-out words, or for each the word next to it."""
    words = [word for word, _ in held_out]
    if shuffled:
        words = words[1:] + words[:1]
    texts = elf.generate(words, guidance_scale=guidance_scale, seed=0, batch_size=64, verbose=False)
    references = [definition for _, definition in held_out]
    return bleu(texts, references), rouge(texts, references), texts


if __name__ == "__main__":
    main()
