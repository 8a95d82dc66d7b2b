"""Runs in a process of its own: `python -m tests.models.fresh_process ACTION PATH...`.

Prints one line of JSON, or writes an npz, for the test that started it.
"""

import json
import sys

import tests.conftest  # noqa: F401  the same flags and hidden packages as the tests


def _loaded_keras(path):
    import keras

    import keras_elf.models  # noqa: F401  registers the classes; `import keras_elf` is lazy

    return keras.saving.load_model(path)


def _loaded_preset(path):
    import keras_elf

    return keras_elf.ELFGenerator.from_preset(path)


def token_ids(model):
    """Ids that the caller compares with its own."""
    return model.generate(num_samples=3, seed=0, verbose=False, return_token_ids=True).tolist()


def numbers(model):
    """Hidden states and both heads on fixed inputs, as NumPy."""
    import numpy as np
    from keras import ops

    rng = np.random.default_rng(0)
    backbone = model.backbone
    z, previous = rng.standard_normal((2, 3, 12, backbone.latent_dim)).astype("float32")
    t = np.array([0.1, 0.5, 1.0], "float32")
    decode = np.array([0.0, 0.0, 1.0], "float32")
    scale = np.array([1.0, 2.0, 3.0], "float32")
    hidden = backbone.hidden_states(
        *(ops.convert_to_tensor(x) for x in (z, t)), previous, scale, decode
    )
    ids = rng.integers(0, backbone.vocabulary_size, (3, 12)).astype("int32")
    clean = model.latent_encoder.encode(
        ops.convert_to_tensor(ids), np.arange(12) < np.full((3, 12), 2), np.ones((3, 12), "bool")
    )
    outputs = {
        "hidden": hidden,
        "x_pred": backbone.denoising_head(hidden),
        "logits": backbone.unembedding(hidden),
        "clean": clean,
    }
    return {k: np.array(ops.convert_to_numpy(v)) for k, v in outputs.items()}


def main(action, *paths):
    if action == "generate":
        keras_file, preset = paths
        # The Keras file first: nothing else has loaded the classes by then.
        found = {"keras": token_ids(_loaded_keras(keras_file))}
        print(json.dumps({**found, "preset": token_ids(_loaded_preset(preset))}))
    else:
        import numpy as np

        preset, out = paths
        np.savez(out, **numbers(_loaded_preset(preset)))


if __name__ == "__main__":
    main(*sys.argv[1:])
