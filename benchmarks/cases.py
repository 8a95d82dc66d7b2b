"""What is measured. Each case gives functions to time in turns, and the tokens of one call."""

import keras
import numpy as np

import keras_elf

SIZES = {
    "tiny": {"depth": 2, "hidden_size": 64, "num_heads": 2, "latent": 32, "vocabulary": 256,
             "length": 32, "batch": 16},
    "nano": {"depth": 6, "hidden_size": 256, "num_heads": 4, "latent": 128, "vocabulary": 2048,
             "length": 64, "batch": 32},
    "elf_b_slice": {"depth": 12, "hidden_size": 768, "num_heads": 12, "latent": 512,
                    "vocabulary": 32100, "length": 128, "batch": 8},
}  # fmt: skip


def model(size, composition="stratified"):
    """A generator of a named size with a Gaussian table for an encoder."""
    s = SIZES[size]
    elf = keras_elf.ELFGenerator(
        keras_elf.ELFBackbone(
            vocabulary_size=s["vocabulary"],
            latent_dim=s["latent"],
            depth=s["depth"],
            hidden_size=s["hidden_size"],
            num_heads=s["num_heads"],
        ),
        keras_elf.encoders.GaussianTable(s["vocabulary"], s["latent"]),
        objective=keras_elf.objectives.ELFObjective(composition=composition),
        sequence_length=s["length"],
        seed=0,
    )
    elf.compile(optimizer=keras_elf.optimizers.Muon(1e-3))
    return elf


def train_step(size):
    """Whole training steps: stratified against per-example batches."""
    s = SIZES[size]
    ids = np.random.default_rng(0).integers(0, s["vocabulary"], (s["batch"], s["length"]))
    batch = {
        "token_ids": ids.astype("int32"),
        "is_cond": np.zeros(ids.shape, "bool"),
        "is_valid": np.ones(ids.shape, "bool"),
    }
    functions = {}
    for composition in ("per_example", "stratified"):
        elf = model(size, composition)
        functions[composition] = lambda elf=elf: elf.train_on_batch(batch)
    return functions, s["batch"] * s["length"]


def generation(size, num_steps=8):
    """A whole generation of `num_steps` steps against single compiled forward passes."""
    s = SIZES[size]
    elf = model(size)
    samples = {"num_samples": s["batch"], "seed": 0, "verbose": False}
    z = np.zeros((s["batch"], s["length"], s["latent"]), "float32")
    forward = keras_elf.models.compiled(
        lambda z: elf.backbone.denoising_head(
            elf.backbone.hidden_states(z, 0.5, z, guidance_scale=3.0)
        ),
        elf.backbone.variables,
    )
    return {
        f"{num_steps + 1} forwards": lambda: [forward(z) for _ in range(num_steps + 1)],
        f"generate, {num_steps} steps": lambda: elf.generate(num_steps=num_steps, **samples),
    }, s["batch"] * s["length"]


def muon(size):
    """One Muon update of the backbone against one plain Adam update."""
    functions = {}
    for name, optimizer in (
        ("adam", keras.optimizers.Adam(1e-3)),
        ("muon", keras_elf.optimizers.Muon(1e-3)),
    ):
        variables = model(size).backbone.trainable_variables
        optimizer.build(variables)
        gradients = [keras.ops.ones(v.shape) * 1e-3 for v in variables]

        def update(optimizer=optimizer, gradients=gradients, variables=variables):
            optimizer.apply(gradients, variables)
            return variables[0].value

        functions[name] = update
    return functions, SIZES[size]["batch"] * SIZES[size]["length"]


CASES = {"train_step": train_step, "generation": generation, "muon": muon}
