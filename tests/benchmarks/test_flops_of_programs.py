"""Counts of FLOPs against what XLA counts in the real programs."""

import keras
import numpy as np
import pytest

from benchmarks import flops, sizes

SIZE = sizes.Size(2, 192, 3, 96, 512, length=48, batch=5, bottleneck_dim=32)
# XLA counts what is done element by element as well.
TOLERANCE = 0.03

if keras.backend.backend() != "jax":
    pytest.skip("XLA's own count is at hand on JAX", allow_module_level=True)


@pytest.fixture(scope="module")
def network():
    return sizes.backbone(SIZE)


def count(function, variables, *arguments):
    """FLOPs of the traced, not compiled, program."""
    import jax

    def pure(values, *arguments):
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            return function(*arguments)

    values = [v.value for v in variables]
    return jax.jit(pure).lower(values, *arguments).cost_analysis()["flops"]


def test_forward_pass(network):
    def forward(z, t):
        return network.denoising_head(network.hidden_states(z, t, z, guidance_scale=t))

    z = np.zeros((SIZE.batch, SIZE.length, SIZE.latent_dim), "float32")
    counted = count(forward, network.variables, z, np.float32(0.5))
    assert flops.forward(SIZE) == pytest.approx(counted, rel=TOLERANCE)


def test_decoding(network):
    def decode(z, t):
        hidden = network.hidden_states(z, t, z, guidance_scale=t, decode=1.0)
        return network.unembedding(hidden)

    z = np.zeros((SIZE.batch, SIZE.length, SIZE.latent_dim), "float32")
    counted = count(decode, network.variables, z, np.float32(1.0))
    assert flops.decode(SIZE) == pytest.approx(counted, rel=TOLERANCE)


@pytest.mark.parametrize(
    ("composition", "rematerialized"),
    [("stratified", False), ("stratified", True), ("per_example", False)],
)
def test_loss_and_gradient(network, monkeypatch, composition, rematerialized):
    import jax

    from keras_elf.objectives import ELFObjective

    monkeypatch.setattr(network, "rematerialize", rematerialized)
    objective = ELFObjective(composition=composition)
    shape = SIZE.batch, SIZE.length, SIZE.latent_dim
    draws = objective.draw(shape, keras.random.SeedGenerator(1))
    batch = {
        **sizes.batch(SIZE),
        "clean": np.zeros(shape, "float32"),
        "counts": np.ones(shape[:2], "float32"),
    }
    variables = network.trainable_variables

    def loss(values):
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            return objective(network, batch, draws)["loss"]

    lowered = jax.jit(jax.value_and_grad(loss)).lower([v.value for v in variables])
    counted = lowered.cost_analysis()["flops"]
    expected = flops.loss_and_gradient(SIZE, composition, rematerialized)
    # What is done element by element is done again as well.
    assert expected == pytest.approx(counted, rel=TOLERANCE * (1 + rematerialized))


def test_plain_newton_schulz_and_the_matrices_it_runs_on(network):
    from benchmarks.cases import muon

    shapes = flops.kernel_shapes(SIZE)
    matrices = [tuple(v.shape) for v in network.trainable_variables if len(v.shape) == 2]
    assert sorted(shapes) == sorted(matrices)
    arguments = [np.zeros(shape, "float32") for shape in shapes]
    counted = count(muon.functions()[muon.PLAIN], [], arguments)
    assert flops.newton_schulz(shapes) == pytest.approx(counted, rel=TOLERANCE)


def test_t5():
    from keras_elf.encoders import T5Encoder

    config = {**SIZE.t5(), "num_layers": 2}
    encoder = T5Encoder(**config)
    ids = sizes.batch(SIZE)["token_ids"]
    counted = count(encoder, encoder.variables, ids)
    assert flops.t5(config, SIZE.batch, SIZE.length) == pytest.approx(counted, rel=TOLERANCE)
