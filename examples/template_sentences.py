"""From nothing to grammatical sentences in minutes, with every setting left to the library.

    KERAS_BACKEND=torch python examples/template_sentences.py

Trains a tokenizer of whole words, a text encoder and a network on 3,000 sentences of a small
grammar, then counts by the grammar's own parser how many written sentences are right, and how many
of them the training set does not hold. `compile()` chooses rates and averages by the length of the
run. Beside it stands the accuracy of reading clean latents of held-out sentences: a latent space
that cannot be read back writes nothing.

Measured with 400 texts of one seed each; "read back" is the share of the tokens of held-out
sentences:

| | grammatical | read back | seconds of one core |
| --- | --- | --- | --- |
| PyTorch, seed 0 | 97.0 % | 94.7 % | 297 |
| JAX, seed 1 | 92.0 % | 98.7 % | 203 |
| JAX, seed 2 | 97.5 % | 93.5 % | 210 |
| TensorFlow, seed 2 | 94.0 % | 95.8 % | 238 |

From seed to seed the encoder's latents hold more of the single word or more of its place in the
sentence. The first are read back better, the second are easier to write; `unmasked_weight` of
`pretrain` moves the balance. With `0.0` 99 % were grammatical, but the encoder then keeps the part
of speech and blurs which noun it was.
"""

import argparse
import os
import time

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras

import keras_elf
from keras_elf.encoders import TransformerEncoder, pretrain
from keras_elf.testing import TemplateGrammar, dummy_tokenizer

LENGTH, LATENT = 14, 64


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=3000)
    parser.add_argument("--encoder-epochs", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0, help="of everything but the sentences")
    options = parser.parse_args(arguments)
    keras.utils.set_random_seed(options.seed)
    if keras.backend.backend() == "torch":
        import torch

        torch.set_flush_denormal(True)
    start = time.process_time()

    grammar = TemplateGrammar()
    train, held_out = grammar.split(options.sentences, 200, seed=0)
    # A piece is a whole word, a row is a whole sentence, and the end token fills the row up.
    tokenizer = dummy_tokenizer(train)
    preprocessor = keras_elf.ELFPreprocessor(tokenizer, LENGTH, pad_with="end")
    size = tokenizer.vocabulary_size()
    encoder = TransformerEncoder(size, LATENT, depth=3)
    statistics = pretrain(
        encoder,
        dict(preprocessor(train)),
        epochs=options.encoder_epochs,
        seed=options.seed,
        verbose=2,
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
        seed=options.seed,
    )
    elf.compile()
    elf.fit(train, epochs=options.epochs, verbose=2)

    texts = elf.generate(num_samples=options.samples, seed=1)
    new = [text for text in texts if text not in set(train)]
    share, share_new = grammar.grammatical_share(texts), grammar.grammatical_share(new or texts)
    read = elf.reconstruct(held_out, return_accuracy=True)
    print(*texts[:8], sep="\n")
    print(f"grammatical: {share:.1%} of {len(texts)}; of {len(new)} new ones {share_new:.1%}")
    print(f"tokens read back from clean latents: {read:.1%}")
    print(f"{time.process_time() - start:.0f} s of one core, compilation included")
    return {"grammatical": share, "grammatical and new": share_new, "read back": read}


if __name__ == "__main__":
    main()
