"""PyTorch knows every weight of every layer, and what is trained is what was meant."""

import inspect
import warnings

import keras
import numpy as np
import pytest

import keras_elf.layers as layers
from keras_elf.encoders import LearnedTable, T5Encoder, TransformerEncoder
from keras_elf.encoders.latent_encoder import LatentEncoder
from keras_elf.models import ELFGenerator
from keras_elf.training.pretraining import MaskedTokenModel
from tests.models import small

WIDTH = 16


class Outer(keras.layers.Layer):
    """Somebody's own layer, which keeps parts of ours in a list and is built by itself."""

    def __init__(self, *parts):
        super().__init__()
        self.first = parts[0]
        self.built = True


def encoder(**kwargs):
    return TransformerEncoder(small.VOCABULARY_SIZE, WIDTH, depth=2, num_heads=2, **kwargs)


def t5():
    made = T5Encoder(
        vocabulary_size=50, latent_dim=WIDTH, num_layers=2, num_heads=2, intermediate_dim=24,
        key_value_dim=8,
    )  # fmt: skip
    made.unfreeze()
    return made


def generator(tied=False):
    own = encoder()
    return ELFGenerator(
        small.backbone(depth=2, tied_to=own if tied else None), own, sequence_length=small.LENGTH
    )


def with_lora():
    made = generator()
    made.backbone.enable_lora(2)
    return made


MODELS = {
    "TransformerEncoder": encoder,
    "LearnedTable": lambda: LearnedTable(20, WIDTH),
    "T5Encoder": t5,
    "ELFBackbone with a label": lambda: small.backbone(
        context_signals=[layers.TimeSignal(), layers.ModeSignal(), layers.LabelSignal(3)]
    ),
    "LatentEncoder": lambda: LatentEncoder(encoder()),
    "MaskedTokenModel": lambda: MaskedTokenModel(encoder()),
    "ELFBackbone": lambda: small.backbone(depth=3),
    "ELFGenerator": generator,
    "tied ELFGenerator": lambda: generator(tied=True),
    "LoRA": with_lora,
}
LAYERS = {
    "BottleneckTextProj": lambda: layers.BottleneckTextProj(WIDTH, bottleneck_dim=4),
    "ContextPrefix": lambda: layers.ContextPrefix(WIDTH),
    "DenoisingHead": lambda: layers.DenoisingHead(WIDTH),
    "ELFAttention": lambda: layers.ELFAttention(WIDTH, num_heads=2),
    "ELFBlock": lambda: layers.ELFBlock(WIDTH, num_heads=2),
    "SelfConditioningProj": lambda: layers.SelfConditioningProj(WIDTH),
    "SwiGLU": lambda: layers.SwiGLU(WIDTH, 24),
    "TiedUnembedding": lambda: layers.TiedUnembedding(20, embedding_dim=WIDTH),
    "TimestepEmbedding": lambda: layers.TimestepEmbedding(WIDTH),
}


def built(name):
    if name in MODELS:
        return MODELS[name]()
    layer = LAYERS[name]()
    if not layer.built:
        layer.build((None, WIDTH) if name == "TimestepEmbedding" else (None, None, WIDTH))
    return layer


def test_every_public_layer_is_looked_at():
    public = {n for n in layers.__all__ if issubclass(getattr(layers, n), keras.layers.Layer)}
    # The weights of signals are looked at inside of a backbone.
    signals = {n for n in public if issubclass(getattr(layers, n), layers.ContextSignal)}
    without_weights = {"RotaryEmbedding"} | signals
    assert public - without_weights <= set(LAYERS)
    assert all(inspect.isclass(getattr(layers, name)) for name in LAYERS)


@pytest.mark.skipif(small.BACKEND != "torch", reason="PyTorch alone has parameters of its own")
@pytest.mark.parametrize("name", [*LAYERS, *MODELS])
def test_pytorch_knows_and_clears_every_weight(name):
    made = built(name)
    assert made.trainable_variables
    # On its own, and inside of a layer that Keras did not build.
    for outer in (made, Outer(made)) if isinstance(made, keras.layers.Layer) else (made,):
        known = {id(parameter) for _, parameter in outer.named_parameters()}
        missing = [v.path for v in made.trainable_variables if id(v.value) not in known]
        assert not missing
        for variable in made.trainable_variables:
            variable.value.grad = variable.value.detach() * 0 + 1.0
        outer.zero_grad()
        assert all(v.value.grad is None or not v.value.grad.any() for v in made.variables)


@pytest.mark.skipif(small.BACKEND != "torch", reason="PyTorch alone adds up gradients")
def test_gradients_do_not_add_up_over_the_steps():
    made = generator()
    made.encoder.unfreeze()
    made.compile(optimizer=keras.optimizers.SGD(0.0))
    weight = made.encoder.blocks[0].trainable_variables[0]
    norms = []
    for _ in range(3):
        made.seed_generator.state.assign([1, 2])
        made.train_on_batch(small.rows(small.BATCH))
        norms.append(float(weight.value.grad.norm()))
    assert norms[0] > 0
    np.testing.assert_allclose(norms, norms[0], rtol=1e-5)


def test_training_an_encoder_that_nobody_unfroze_is_said_once():
    rows = small.rows(small.BATCH)
    made = generator()
    with pytest.warns(UserWarning, match="'.*' is not frozen.*`encoder.freeze\\(\\)`"):
        made.train_on_batch(rows)
    silent = [made, generator(), small.generator("learned"), small.generator("transformer")]
    silent[1].encoder.unfreeze()
    for model in silent:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*is not frozen")
            model.train_on_batch(rows)
