"""Counts of FLOPs against hand counts."""

import pytest

from benchmarks import flops
from benchmarks.sizes import Size

pytestmark = pytest.mark.backend_free

# Chosen so that products can be done by hand: SwiGLU's inner width is int(16 * 2 / 3) = 10.
SIZE = Size(1, 4, 2, 2, 10, length=3, batch=5, bottleneck_dim=1)


def test_a_block_is_its_four_dense_layers_and_two_products_of_attention():
    # 15 tokens with the prefix: 2 * 15 * (4 * 12 + 4 * 4 + 4 * 20 + 10 * 4) + 4 * 15 * 15 * 4
    assert flops.block(SIZE, 1, 15) == 5520 + 3600


def test_the_network_without_heads():
    latents = 2 * 3 * (4 * 2 + 2 * 1 + 1 * 4)
    embeddings = 2 * (2 * 256 * 4 + 2 * 4 * 4)
    assert flops.trunk(SIZE, 1) == latents + embeddings + 9120


def test_heads():
    assert flops.denoising_head(SIZE, 2) == 2 * 6 * 4 * 2
    assert flops.unembedding(SIZE, 2) == 2 * 6 * 4 * 2 + 2 * 6 * 2 * 10


def test_a_stratified_step_is_three_forwards_and_two_of_its_self_conditioned_rows():
    trunk, head = flops.trunk(SIZE, 1), flops.denoising_head(SIZE, 1)
    logits = flops.unembedding(SIZE, 1)
    passes = 3 * (5 * trunk + 4 * head + 1 * logits) + 2 * 2 * (trunk + head)
    assert flops.group_sizes(5) == (1, 2, 2)
    assert flops.loss_and_gradient(SIZE, "stratified") == passes


@pytest.mark.parametrize("composition", ["per_example", "per_step"])
def test_other_compositions_put_all_rows_through_everything(composition):
    trunk, head = flops.trunk(SIZE, 5), flops.denoising_head(SIZE, 5)
    logits = flops.unembedding(SIZE, 5)
    passes = 3 * (trunk + head + logits) + 2 * (trunk + head)
    assert flops.loss_and_gradient(SIZE, composition) == passes


def test_a_wide_vocabulary_approaches_the_published_ratio():
    """3.8 F against 5 F, F one forward pass, where heads cost nothing."""
    size = Size(12, 256, 4, 8, 8, length=64, batch=50)
    ratio = flops.loss_and_gradient(size) / flops.loss_and_gradient(size, "per_example")
    assert ratio == pytest.approx(3.8 / 5, rel=0.01)


def test_newton_schulz_works_on_the_smaller_side():
    # Five times: Gram matrix 2 * 3 * 3 * 7, its square 2 * 27, the product 2 * 3 * 3 * 7.
    assert flops.newton_schulz([(3, 7)]) == flops.newton_schulz([(7, 3)]) == 5 * 306


def test_guidance_doubles_the_steps_and_not_the_decoding():
    plain, guided = (flops.generation(SIZE, 4, guided=g) for g in (False, True))
    assert guided - flops.decode(SIZE) == 2 * (plain - flops.decode(SIZE))


def test_t5():
    config = {"num_layers": 2, "num_heads": 2, "latent_dim": 4, "intermediate_dim": 16}
    tokens = 2 * 3
    layer = 4 * 2 * tokens * 16 + 4 * 2 * 9 * 4 + 2 * 2 * tokens * 4 * 16
    assert flops.t5(config, 2, 3) == 2 * layer
