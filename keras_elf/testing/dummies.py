"""Tiny parts that are real: for tests of one's own layer, sampler, objective or callback.

All have random weights, and a forward pass takes milliseconds. Keras and keras_hub are loaded by
the functions that need them, so that the grammar and the numbers come without.
"""

import numpy as np

from keras_elf import checks
from keras_elf.testing.grammar import TemplateGrammar

LATENT_DIM = 16
LENGTH = 16


def dummy_texts(num=64, seed=0):
    """`num` distinct sentences of `TemplateGrammar`, list of str."""
    return TemplateGrammar().distinct_sentences(num, seed)


def dummy_tokenizer(texts=None, model_type="word", vocabulary_size=None):
    """A small `keras_hub.models.T5Tokenizer` trained on `texts`.

    Args:
        texts: list of str. Defaults to 300 sentences of `TemplateGrammar`, in which all its
            words occur.
        model_type: as in `keras_elf.data.train_sentencepiece`. Defaults to `"word"`: a
            token is a word.
        vocabulary_size: int. Defaults to as many pieces as the texts have, at most 512.

    Returns:
        `keras_hub.models.T5Tokenizer`.
    """
    from keras_elf.data import train_sentencepiece
    from keras_elf.keras_hub_quietly import keras_hub

    texts = dummy_texts(300) if texts is None else list(texts)
    size = 512 if vocabulary_size is None else vocabulary_size
    try:
        proto = train_sentencepiece(texts, size, model_type=model_type)
    except ValueError as error:
        largest = getattr(error, "largest_size", None)
        if vocabulary_size is not None or largest is None:
            raise
        proto = train_sentencepiece(texts, largest, model_type=model_type)
    return keras_hub.models.T5Tokenizer(proto=proto)


def dummy_preprocessor(tokenizer=None, sequence_length=LENGTH, **kwargs):
    """An `ELFPreprocessor` with rows of 16 tokens, padded with the end token.

    Args:
        tokenizer: a tokenizer. Defaults to `dummy_tokenizer()`.
        sequence_length: int. Defaults to `16`.
        **kwargs: further arguments of `ELFPreprocessor`.
    """
    from keras_elf.models import ELFPreprocessor

    tokenizer = dummy_tokenizer() if tokenizer is None else tokenizer
    return ELFPreprocessor(tokenizer, sequence_length, **{"pad_with": "end", **kwargs})


def dummy_encoder(vocabulary_size=64, latent_dim=LATENT_DIM, depth=1, **kwargs):
    """A frozen `TransformerEncoder` of one block and latent width 16, not trained.

    Args:
        vocabulary_size, latent_dim, depth: ints. Default to `64`, `16`, `1`.
        **kwargs: further arguments of `TransformerEncoder`.
    """
    from keras_elf.encoders import TransformerEncoder

    kwargs.setdefault("num_heads", 2)
    encoder = TransformerEncoder(vocabulary_size, latent_dim, depth, **kwargs)
    encoder.freeze()
    return encoder


def dummy_backbone(vocabulary_size=64, latent_dim=LATENT_DIM, enlivened=True, **kwargs):
    """An `ELFBackbone` of two blocks of width 32.

    Args:
        vocabulary_size, latent_dim: ints. Default to `64`, `16`.
        enlivened: bool. Whether the two heads get random weights. As built they are zero,
            every prediction is zero with them, and a test on such a network sees nothing.
            Defaults to `True`.
        **kwargs: further arguments of `ELFBackbone`.
    """
    from keras_elf.models import ELFBackbone

    sizes = {"depth": 2, "hidden_size": 32, "num_heads": 2, "bottleneck_dim": 8}
    network = ELFBackbone(
        vocabulary_size=vocabulary_size, latent_dim=latent_dim, **{**sizes, **kwargs}
    )
    return enliven(network) if enlivened else network


def dummy_generator(preprocessor="dummy", network=None, encoder=None, seed=1, **kwargs):
    """An `ELFGenerator` of the parts above, ready for `fit` and `generate`.

    Two calls with the same arguments give the same weights; the global random state of
    Keras is set for that.

    Args:
        preprocessor: `ELFPreprocessor`, or `None` for a model on token ids below 64 in rows
            of 16. Defaults to `dummy_preprocessor()`.
        network: the generator's `backbone`. Defaults to `dummy_backbone` of the
            preprocessor's vocabulary.
        encoder: a `TextEncoder`. Defaults to `dummy_encoder` of the same vocabulary.
        seed: int. Of weights and training draws. Defaults to `1`.
        **kwargs: further arguments of `ELFGenerator`; `num_steps` is `3` unless given.
    """
    import keras

    from keras_elf.models import ELFGenerator

    keras.utils.set_random_seed(checks.integer("seed", seed, minimum=0, maximum=2**31 - 1))
    preprocessor = dummy_preprocessor() if preprocessor == "dummy" else preprocessor
    size = 64 if preprocessor is None else preprocessor.vocabulary_size
    settings = {"num_steps": 3, "seed": seed}
    if preprocessor is None:
        settings["sequence_length"] = LENGTH
    encoder = dummy_encoder(size) if encoder is None else encoder
    network = dummy_backbone(size, encoder.latent_dim) if network is None else network
    return ELFGenerator(network, encoder, preprocessor, **{**settings, **kwargs})


def enliven(network, scale=0.3, seed=5):
    """Add random numbers to the heads of a network, in place.

    Args:
        network: anything with `denoising_head` and `unembedding`, both layers.
        scale: float. Standard deviation of the numbers. Defaults to `0.3`.
        seed: int. Defaults to `5`.

    Returns:
        `network`.
    """
    rng = np.random.default_rng(seed)
    for head in (network.denoising_head, network.unembedding):
        for variable in head.trainable_variables:
            variable.assign_add(scale * rng.standard_normal(variable.shape).astype("float32"))
    return network
