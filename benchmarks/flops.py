"""Floating-point operations, counted from shapes.

Matrix products alone are counted, at two operations for each multiplication and addition: the
arithmetic that a machine's matmul rate bounds. What is done element by element is left out.
"""

ITERATION_STEPS = 5
PREFIX = 12
TIME_FEATURES = 256


def dense(rows, inputs, outputs):
    """A dense layer on `rows` vectors."""
    return 2 * rows * inputs * outputs


def block(size, rows, length, width=None):
    """One transformer block on `rows` sequences of `length` tokens, prefix included."""
    width = width or size.hidden_size
    inner = int(width * 4 * 2 / 3)
    tokens = rows * length
    return (
        dense(tokens, width, 3 * width)
        + dense(tokens, width, width)
        + dense(tokens, width, 2 * inner)
        + dense(tokens, inner, width)
        + 4 * rows * length**2 * width  # scores, and weights times values
    )


def trunk(size, rows, prefix=PREFIX, conditioned_numbers=2):
    """The network up to its hidden states.

    Args:
        size: `benchmarks.sizes.Size`.
        rows: int. Sequences.
        prefix: int. Context tokens before the text. Defaults to 12.
        conditioned_numbers: int. Numbers a row that are embedded (time, guidance scale).
    """
    tokens, width, latent = rows * size.length, size.hidden_size, size.latent_dim
    embedding = dense(rows, TIME_FEATURES, width) + dense(rows, width, width)
    return (
        dense(tokens, 2 * latent, latent)
        + dense(tokens, latent, size.bottleneck_dim)
        + dense(tokens, size.bottleneck_dim, width)
        + conditioned_numbers * embedding
        + size.depth * block(size, rows, size.length + prefix)
    )


def denoising_head(size, rows):
    """The head that predicts clean latents."""
    return dense(rows * size.length, size.hidden_size, size.latent_dim)


def unembedding(size, rows):
    """The head that gives logits."""
    tokens = rows * size.length
    return dense(tokens, size.hidden_size, size.latent_dim) + dense(
        tokens, size.latent_dim, size.vocabulary_size
    )


def forward(size, rows=None):
    """One forward pass in denoise mode."""
    rows = size.batch if rows is None else rows
    return trunk(size, rows) + denoising_head(size, rows)


def decode(size, rows=None):
    """One forward pass in decode mode."""
    rows = size.batch if rows is None else rows
    return trunk(size, rows) + unembedding(size, rows)


def generation(size, num_steps, guided=False):
    """A whole generation of the batch: N steps and the decoding at the end."""
    return num_steps * forward(size, size.batch * (2 if guided else 1)) + decode(size)


def group_sizes(rows, decode_share=0.2, self_conditioned_share=0.4):
    """Rows that decode, that use self-conditioning, and the others, in a stratified batch."""
    decode_rows = min(max(round(decode_share * rows), 1), rows - 2)
    both = round((decode_share + self_conditioned_share) * rows)
    both = min(max(both, decode_rows + 1), rows - 1)
    return decode_rows, both - decode_rows, rows - both


def loss_and_gradient(size, composition="stratified", rematerialized=False):
    """Forward passes and backward pass of a training step; a backward pass counts twice.

    Stratified: both passes without gradient on the self-conditioned rows, each head on its own
    rows. Otherwise, and for a batch too small to be stratified: everything on all rows. Blocks
    that are rematerialized run forward once more.
    """
    rows = size.batch
    if composition == "stratified" and rows >= 3:
        decode_rows, guided, plain = group_sizes(rows)
    else:
        decode_rows, guided, plain = rows, rows, 0
    heads = unembedding(size, decode_rows) + denoising_head(size, guided + plain)
    again = size.depth * block(size, rows, size.length + PREFIX) if rematerialized else 0
    return 3 * (trunk(size, rows) + heads) + 2 * forward(size, guided) + again


def kernel_shapes(size):
    """Shapes of all matrices of the network, those that Muon orthogonalises."""
    width, latent = size.hidden_size, size.latent_dim
    inner = int(width * 4 * 2 / 3)
    embedder = [(TIME_FEATURES, width), (width, width)]
    block_shapes = [(width, 3 * width), (width, width), (width, 2 * inner), (inner, width)]
    return [
        (2 * latent, latent),
        (latent, size.bottleneck_dim),
        (size.bottleneck_dim, width),
        *embedder,
        *embedder,
        *size.depth * block_shapes,
        (width, latent),
        (width, latent),
        (latent, size.vocabulary_size),
    ]


def newton_schulz(shapes, steps=ITERATION_STEPS):
    """The plain iteration: in each step the Gram matrix, its square, and their product."""
    total = 0
    for shape in shapes:
        small, large = sorted(shape)
        total += steps * (4 * small**2 * large + 2 * small**3)
    return total


def train_step(size, composition="stratified"):
    """Loss, gradient and Muon. An encoder that is a table costs none."""
    return loss_and_gradient(size, composition) + newton_schulz(kernel_shapes(size))


def t5(config, rows, length):
    """The encoder of T5 without gated activation."""
    tokens, width = rows * length, config["latent_dim"]
    inner = config.get("key_value_dim", width // config["num_heads"]) * config["num_heads"]
    layer = 4 * dense(tokens, width, inner) + 4 * rows * length**2 * inner
    layer += 2 * dense(tokens, width, config["intermediate_dim"])
    return config["num_layers"] * layer


def transformer_encoder(size, rows, length, depth=4):
    """An encoder of ELF's own blocks as wide as the latents."""
    return depth * block(size, rows, length, width=size.latent_dim)
