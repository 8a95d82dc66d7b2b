r"""Sample text from an exported ELF with numpy, onnxruntime and sentencepiece alone.

    python examples/sample_with_onnxruntime.py elf.onnx \
        --tokenizer my_elf/assets/tokenizer/vocabulary.spm

The file comes from `keras_elf.export.export_denoiser(elf, "elf.onnx")` and carries its own
sampling settings; the tokenizer is the one in the model's preset. Neither Keras nor a
training framework is needed, and the same seed gives the texts that `elf.generate` gives.

Runs on any CPU. A tiny model takes a second. N steps are N + 1 forward passes a sample; one
of ELF-B (105M parameters, 1024 tokens) is about 0.25 TFLOP, a second or more on a few cores.
Expect the text of the model: of a network with random weights, noise.
"""

import argparse
import json

import numpy as np
import onnxruntime
import sentencepiece


class Network:
    """The exported file: `network(z, self_condition, t, w, gate, "x" or "logits")`."""

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        metadata = self.session.get_modelmeta().custom_metadata_map
        self.settings = json.loads(metadata["keras_elf"])
        self.inputs = {value.name for value in self.session.get_inputs()}
        # Steps ask for "x" only: without this the logits would be computed all the same.
        self.options = onnxruntime.RunOptions()
        self.options.only_execute_path_to_fetches = True

    def __call__(self, z, self_condition, t, w, gate, output):
        rows = np.ones(len(z), "float32")
        feed = {"z": z, "self_condition": self_condition}
        feed |= {"t": t * rows, "w": w * rows, "gate": gate * rows}
        feed = {name: value for name, value in feed.items() if name in self.inputs}
        return self.session.run([output], feed, self.options)[0]


def normals(seed, row, stream, shape):
    """Standard normals that depend on the three numbers alone, as keras_elf draws them."""
    bits = np.random.Philox(
        key=np.array([seed, row], "uint64"), counter=np.array([0, 0, 0, stream], "uint64")
    )
    return np.random.Generator(bits).standard_normal(shape, "float32")


def time_grid(num_steps, seed, schedule="logit_normal", time_mean=-1.5, time_std=0.8):
    """The times from 0 to 1 that the sampler visits."""
    if schedule == "uniform":
        return np.linspace(0, 1, num_steps + 1, dtype="float32")
    drawn = normals(seed, 2**64 - 1, num_steps, num_steps - 1)
    inner = 1 / (1 + np.exp(-(np.float32(time_mean) + np.float32(time_std) * drawn)))
    return np.concatenate([[0], np.sort(inner), [1]]).astype("float32")


def predict(network, z, self_condition, t, w):
    """Clean latents, guided on self-conditioning inside the network or by two passes."""
    x = network(z, self_condition, t, w, 0.0, "x")
    if "w" in network.inputs or w == 1:
        return x
    plain = network(z, np.zeros_like(z), t, w, 0.0, "x")
    return plain + np.float32(w) * (x - plain)


def sample(network, num_samples=1, num_steps=None, sampler=None, gamma=None, w=None, seed=0):
    """Token ids `(num_samples, length)`; what is `None` is as the file says."""
    settings = network.settings
    defaults = settings["sampling"] or {}
    sampler = sampler or defaults.get("sampler", "ode")
    num_steps = num_steps or defaults.get("num_steps", 32)
    gamma = defaults.get("gamma", 1.0) if gamma is None else gamma
    w = defaults.get("self_cond_guidance_scale", 3.0) if w is None else w
    if sampler not in ("ode", "sde"):
        raise ValueError(f"`sampler` must be 'ode' or 'sde'. Received: {sampler!r}")
    names = ("schedule", "time_mean", "time_std")
    grid = time_grid(num_steps, seed, **{k: defaults[k] for k in names if k in defaults})
    shape = settings["length"], settings["latent_dim"]

    def noise(stream):
        return np.stack([normals(seed, row, stream, shape) for row in range(num_samples)])

    scale = np.float32(settings["noise_scale"])
    z = scale * noise(0)
    x = np.zeros_like(z)
    for i, (t, t_next) in enumerate(zip(grid[:-1], grid[1:], strict=True)):
        if sampler == "sde" and i < num_steps - 1:  # the last step adds no noise
            keep = np.clip(1 - np.float32(gamma) * (t_next - t), 0, 1)
            z = keep * z + (1 - keep) * scale * noise(i + 1)
            t = keep * t
        x = predict(network, z, x, t, w)
        velocity = (x - z) / max(1 - t, np.float32(settings["min_time_gap"]))
        z = z + (t_next - t) * velocity
    return network(z, np.zeros_like(z), 1.0, w, 1.0, "logits").argmax(-1)


def decode(ids, tokenizer, settings):
    """Text of one row: up to the first end token, without padding."""
    text = []
    for token in ids.tolist():
        if token == settings["end_token_id"]:
            break
        if token != settings["pad_token_id"] and token < tokenizer.get_piece_size():
            text.append(token)
    return tokenizer.decode(text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--tokenizer", required=True, help="a SentencePiece model")
    parser.add_argument("--num-samples", type=int, default=1)
    parser.add_argument("--num-steps", type=int)
    parser.add_argument("--sampler", choices=("ode", "sde"))
    parser.add_argument("--gamma", type=float, help="amount of fresh noise of the SDE")
    parser.add_argument("--w", type=float, help="guidance on self-conditioning")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    network = Network(options.model)
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=options.tokenizer)
    rows = sample(
        network,
        options.num_samples,
        options.num_steps,
        options.sampler,
        options.gamma,
        options.w,
        options.seed,
    )
    for ids in rows:
        print(decode(ids, tokenizer, network.settings))


if __name__ == "__main__":
    main()
