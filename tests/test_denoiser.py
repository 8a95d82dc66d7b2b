"""The contract of a network: what it needs, what is said where something is missing."""

import inspect
import re

import keras
import numpy as np
import pytest
from keras import ops

import keras_elf
from keras_elf import denoiser, testing
from tests.models import small


def documented_network():
    """The class in the docstring of `Denoiser`, as a user would copy it."""
    text = re.search(r"```python\n(.*?)```", inspect.getdoc(keras_elf.Denoiser), re.DOTALL)[1]
    names = {"keras": keras, "keras_elf": keras_elf}
    exec(compile(text, "docstring", "exec"), names)
    return names["MyNetwork"]


class Network(keras_elf.Denoiser, keras.Model):
    """Two layers, made in the constructor and built at the first call."""

    def __init__(self, vocabulary_size=20, latent_dim=4, width=6, head_width=None):
        super().__init__()
        self.vocabulary_size, self.latent_dim = vocabulary_size, latent_dim
        self.inner = keras.layers.Dense(width, activation="gelu")
        self.denoising_head = keras.layers.Dense(head_width or latent_dim)
        self.unembedding = keras.layers.Dense(vocabulary_size)

    def hidden_states(
        self,
        z,
        t,
        *,
        self_condition=None,
        guidance_scale=None,
        decode=0.0,
        attention_mask=None,
        training=False,
    ):
        given = self.context(z, t, decode)
        return self.inner(ops.concatenate([z, self_condition, given], axis=-1))


def test_the_documented_network_keeps_the_contract():
    network = documented_network()(vocabulary_size=9, latent_dim=4)
    testing.check_denoiser(network)
    assert network.variables and not denoiser.takes_guidance_scale(network)
    assert denoiser.signals(network) == {}


def test_context_takes_numbers_and_rows():
    z = np.zeros((2, 3, 4), "float32")
    given = ops.convert_to_numpy(keras_elf.Denoiser.context(z, 0.5, np.float32([1, 2])))
    assert given.shape == (2, 3, 2)
    np.testing.assert_array_equal(given[1, :, 1], 2)
    np.testing.assert_array_equal(given[..., 0], 0.5)


@pytest.mark.parametrize("name", ["hidden_states", "denoising_head", "unembedding", "latent_dim"])
def test_what_is_missing_is_named(name):
    network = Network()
    setattr(network, name, None)
    with pytest.raises(ValueError, match=rf"Network lacks \['{name}'\]"):
        denoiser.check_names(network)


def test_arguments_that_are_missing_are_named():
    class Deaf(Network):
        def hidden_states(self, z, t, *, self_condition=None, training=False):
            return z

    with pytest.raises(ValueError, match=r"Deaf must take.*'guidance_scale', 'decode', 'att"):
        denoiser.check_names(Deaf())

    class Labelled(Network):
        signals = {"label": 3}

    with pytest.raises(ValueError, match=r"Labelled must take the arguments \['signals'\]"):
        denoiser.check_names(Labelled())


def test_shapes_that_do_not_fit_name_both_sides():
    with pytest.raises(ValueError, match=r"`denoising_head`.*latent_dim.*\(2, 3, 4\).*\(2, 3, 5\)"):
        denoiser.check_shapes(Network(head_width=5))

    class Shorter(Network):
        def hidden_states(self, z, t, **options):
            return super().hidden_states(z, t, **options)[:, 1:]

    with pytest.raises(ValueError, match=r"`hidden_states` of Shorter.*\(2, 2, 6\)"):
        denoiser.check_shapes(Shorter())


def test_what_is_no_layer_is_refused():
    class Bare(keras_elf.Denoiser):
        latent_dim, vocabulary_size = 4, 9
        denoising_head = unembedding = abs

    with pytest.raises(
        ValueError, match="network must be a keras.Layer or keras.Model, such as ELFBackbone.*Bare"
    ):
        denoiser.check_names(Bare())
    with pytest.raises(ValueError, match="network must be a keras.Layer.*'elf_b'"):
        denoiser.check_names("elf_b")


def test_a_network_of_ones_own_trains_and_writes():
    """Through the very doors that ELFBackbone goes through."""
    network = Network(vocabulary_size=small.VOCABULARY_SIZE, latent_dim=small.LATENT_DIM)
    model = keras_elf.ELFGenerator(
        network, small.encoder(), small.preprocessor(), num_steps=2, seed=0
    )
    before = small.values(network.variables)
    model.compile(optimizer=small.muon())
    history = model.fit(small.texts(12), batch_size=6, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    after = small.values(network.variables)
    assert all(np.abs(a - b).max() > 0 for a, b in zip(before, after, strict=True))
    texts = model.generate(num_samples=2, seed=0, self_cond_guidance_scale=2.0, verbose=False)
    assert len(texts) == 2 and all(isinstance(text, str) for text in texts)
    assert model.generate(num_samples=2, seed=0, verbose=False) == model.generate(
        num_samples=2, seed=0, batch_size=1, verbose=False
    )
