"""Reads the directory that `transformers` writes for a T5: config.json and safetensors."""

import json
import pathlib

from keras_elf.encoders.t5_weights import is_encoder_key

# `gelu_new` is the tanh form, with which T5 1.1 was trained.
_ACTIVATIONS = {
    "relu": "relu",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu": "gelu_exact",
}
_INTEGERS = {
    "vocab_size": "vocabulary_size",
    "num_layers": "num_layers",
    "num_heads": "num_heads",
    "d_model": "latent_dim",
    "d_ff": "intermediate_dim",
    "d_kv": "key_value_dim",
}


def read_config(directory):
    """Constructor arguments of `T5Encoder` from the config.json in `directory`.

    Args:
        directory: str or path. Holds config.json as `transformers` writes it.

    Returns:
        dict of arguments.

    Raises:
        FileNotFoundError: if the directory or the file is not there.
        ValueError: if the file is not JSON, is not of a T5, or of a T5 of another kind
            than is implemented here.
    """
    directory = pathlib.Path(directory).expanduser()
    if not directory.is_dir():
        raise FileNotFoundError(f"There is no directory {str(directory)!r}.")
    path = directory / "config.json"
    config = _read_json(path)
    if config.get("model_type") != "t5":
        hint = " It looks like a keras-hub preset: use `from_preset`." * ("class_name" in config)
        raise ValueError(
            f"{path} must have model_type 't5'. Received: {config.get('model_type')!r}.{hint}"
        )
    missing = sorted(set(_INTEGERS) - set(config))
    if missing:
        raise ValueError(f"{path} lacks {missing}.")
    for key, only in (
        ("relative_attention_num_buckets", 32),
        ("relative_attention_max_distance", 128),
    ):
        if config.get(key, only) != only:
            raise ValueError(f"{path}: only {key} = {only} works. Received: {config[key]!r}")
    projection = config.get("feed_forward_proj", "relu")
    gated = projection.startswith("gated-")
    # The released T5 1.1 says "gated-gelu" and means the tanh form.
    default = "gelu_new" if projection == "gated-gelu" else projection.removeprefix("gated-")
    activation = config.get("dense_act_fn", default)
    if activation not in _ACTIVATIONS:
        raise ValueError(
            f"{path}: the activation must be one of {sorted(_ACTIVATIONS)}. "
            f"Received: {activation!r}"
        )
    return {
        **{name: config[key] for key, name in _INTEGERS.items()},
        "activation": _ACTIVATIONS[activation],
        "use_gated_activation": gated,
        "layer_norm_epsilon": config.get("layer_norm_epsilon", 1e-6),
    }


def read_arrays(directory):
    """The encoder's arrays from model.safetensors, or from its shards, in `directory`.

    Args:
        directory: str or path.

    Returns:
        dict from key to NumPy array. Arrays of the decoder are not read.

    Raises:
        FileNotFoundError: if there are no weights, or a shard is missing.
        ValueError: if a file is damaged, or there are only pickled weights, which are
            never opened.
    """
    directory = pathlib.Path(directory).expanduser()
    if (directory / "model.safetensors").exists():
        return _read_file(directory / "model.safetensors")
    index = directory / "model.safetensors.index.json"
    if not index.exists():
        if any(directory.glob("pytorch_model*")):
            raise ValueError(
                f"{directory} holds its weights as a pickle only (pytorch_model*), which could "
                "run code and is never opened here. Convert it to safetensors where you trust "
                "it: `transformers.T5EncoderModel.from_pretrained(directory)"
                ".save_pretrained(new_directory)`."
            )
        raise FileNotFoundError(
            f"{directory} has neither model.safetensors nor model.safetensors.index.json."
        )
    shards = _read_json(index).get("weight_map")
    if not isinstance(shards, dict):
        raise ValueError(f"{index} has no `weight_map`.")
    shards = {key: name for key, name in shards.items() if is_encoder_key(key)}
    arrays = {}
    for name in sorted(set(shards.values())):
        if pathlib.PurePath(name).name != name:
            raise ValueError(f"{index} points outside its directory: {name!r}")
        arrays |= _read_file(directory / name)
    absent = sorted(set(shards) - set(arrays))
    if absent:
        raise ValueError(f"{index} promises arrays that no shard holds: {absent}")
    return arrays


def _read_json(path):
    if not path.exists():
        raise FileNotFoundError(f"There is no {path.name} in {path.parent}.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not readable JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a JSON object. Received: {type(content).__name__}")
    return content


def _read_file(path):
    import safetensors

    if not path.exists():
        raise FileNotFoundError(f"There is no {path.name} in {path.parent}.")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            return {key: file.get_tensor(key) for key in file.keys() if is_encoder_key(key)}
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path} is damaged or no safetensors file (fetch it again): {error}"
        ) from error
