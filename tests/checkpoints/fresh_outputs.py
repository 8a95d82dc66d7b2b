"""Runs in a process of its own: `python -m tests.checkpoints.fresh_outputs OUT PRESET...`.

Loads each preset with `from_preset` and writes what it computes on the recorded inputs.
"""

import pathlib
import sys

from tests.conftest import REFERENCE  # first: the same flags and hidden packages as the tests


def network(preset, recorded):
    """Both modes of a network: dict of `denoise_x`, `decode_x`, `decode_logits`."""
    import numpy as np
    from keras import ops

    import keras_elf

    backbone = keras_elf.ELFBackbone.from_preset(preset)
    outputs = {}
    for mode, gate in (("denoise", 0.0), ("decode", 1.0)):
        hidden = backbone.hidden_states(
            ops.convert_to_tensor(recorded["z"]),
            recorded["t"],
            self_condition=ops.convert_to_tensor(recorded["x_pred_prev"]),
            guidance_scale=recorded["self_cond_cfg_scale"],
            decode=np.full(len(recorded["t"]), gate, "float32"),
        )
        outputs[f"{mode}_x"] = backbone.denoising_head(hidden)
    return {**outputs, "decode_logits": backbone.unembedding(hidden)}


def encoder(preset, recorded):
    """The latents of a T5, before the model standardises them, under both masks."""
    from keras import ops

    import keras_elf

    encode = keras_elf.ELFGenerator.from_preset(preset).encoder
    ids = ops.convert_to_tensor(recorded["ids"].astype("int32"))
    return {
        f"out_{mask}": encode(ids, ops.convert_to_tensor(recorded[mask] > 0))
        for mask in ("mask2", "mask3")
    }


def main(out, *presets):
    import numpy as np
    from keras import ops

    found = {}
    for preset in presets:
        name = pathlib.Path(preset).name
        file = f"t5/{name}" if name.startswith("t5") else f"jax/{'forward'}"
        if name.startswith("torch"):
            file = "torch/checkpoint_forward"
        with np.load(REFERENCE / f"{file}.npz") as archive:
            recorded = dict(archive)
        made = (encoder if name.startswith("t5") else network)(preset, recorded)
        found.update({f"{name}/{k}": ops.convert_to_numpy(v) for k, v in made.items()})
    np.savez(out, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
