"""Writing the denoiser as ONNX or SavedModel, through Keras's own export."""

import contextlib
import importlib.util
import json
import os
import shutil
import tempfile

import keras

from keras_elf import checks
from keras_elf.export import onnx_file
from keras_elf.export.exported_network import INPUTS, OUTPUTS, ExportedNetwork
from keras_elf.export.settings import sampling_settings
from keras_elf.training.averages import averaged_weights

FORMATS = ("onnx", "tf_saved_model")
SETTINGS_FILE = "keras_elf.json"
# A protocol buffer, which an ONNX file is, holds less than 2 GiB.
MAX_ONNX_BYTES = 2**31 - 2**24
_PACKAGES = {"jax": "jax2onnx", "tensorflow": "tf2onnx", "torch": "onnxscript"}


def export_denoiser(model, path, length=None, format="onnx", use_averages=True):
    """Write the network of a model to a file that runs without Keras.

    The file computes `(z, self_condition, t, w, gate) -> x, logits`, see `ExportedNetwork`; the
    names are those of its inputs and outputs, the batch is open, the length fixed. It
    holds `sampling_settings` too: an ONNX file in its metadata under `"keras_elf"`, a
    SavedModel in `keras_elf.json`. A text encoder is not part of it; unconditional
    sampling needs none, and `examples/sample_with_onnxruntime.py` shows all of it.

    | backend | `"onnx"` | `"tf_saved_model"` |
    | --- | --- | --- |
    | JAX | with jax2onnx | with TensorFlow |
    | TensorFlow | with tf2onnx | yes |
    | PyTorch | with onnxscript | no |

    Everything is written beside the target first and moved there when complete.

    Example:

    ```python
    elf = keras_elf.ELFGenerator.from_preset("elf_b_owt")
    keras_elf.export.export_denoiser(elf, "elf_b_owt.onnx")
    ```

    Args:
        model: `ELFGenerator` or `ELFBackbone`, in float32 and not quantised. LoRA is
            merged.
        path: str or path. An ONNX file, replaced if it exists, or the directory of a
            SavedModel, replaced if it is one.
        length: int. Number of tokens. Defaults to the generator's `sequence_length`.
        format: `"onnx"` or `"tf_saved_model"`. Defaults to `"onnx"`.
        use_averages: `True`, `False` or `"always"`. Whether to export a generator's averaged
            weights where training kept some, as in `generate`. Defaults to `True`.

    Raises:
        ValueError: for another format, model or precision, a format that does not work on
            the backend, more than 2 GB for ONNX, or a target that cannot be written.
        ImportError: if a converter is missing; names what to install.
    """
    checks.choice("format", format, FORMATS)
    backbone = getattr(model, "backbone", model)
    if length is None:
        length = getattr(model, "sequence_length", None)
    if length is None:
        raise ValueError("`length` must be given: the model has no `sequence_length`.")
    denoiser = ExportedNetwork(backbone, length, getattr(model, "objective", None))
    _check_numbers(backbone, format)
    _check_backend(format)
    settings = sampling_settings(model, denoiser.length)
    with averaged_weights(model, use_averages), _moved_into_place(path, format) as target:
        if format == "onnx":
            _write_onnx(denoiser, target, settings)
        else:
            signature = denoiser.input_signature()
            denoiser.export(target, format=format, input_signature=signature, verbose=False)
            with open(os.path.join(target, SETTINGS_FILE), "w", encoding="utf-8") as file:
                json.dump(settings, file, indent=2, sort_keys=True)


def _write_onnx(denoiser, path, settings):
    signature = denoiser.input_signature()
    inputs = {name: signature[0][name].shape for name in INPUTS if name in signature[0]}
    if keras.backend.backend() == "torch":
        _torch_onnx(denoiser, path, inputs)
    else:
        denoiser.export(path, format="onnx", input_signature=signature, verbose=False)
    outputs = {name: denoiser.output[name].shape for name in OUTPUTS}
    onnx_file.finish(path, inputs, outputs, settings)


def _torch_onnx(denoiser, path, inputs):
    # Keras's own ONNX export on PyTorch knows the fused RMS norm for a fixed batch only;
    # its export to a PyTorch program leaves the batch open, and converts from there.
    import torch

    batch = torch.export.Dim("batch", min=1)
    program = f"{path}.pt2"
    signature = denoiser.input_signature()[0]
    denoiser.export(
        program,
        format="torch",
        input_signature=[{name: signature[name] for name in inputs}],
        dynamic_shapes=[({name: {0: batch} for name in inputs},)],
        verbose=False,
    )
    torch.onnx.export(
        torch.export.load(program),
        input_names=list(inputs),
        output_names=sorted(OUTPUTS),
        dynamo=True,
        verbose=False,
    ).save(path)


def _check_numbers(backbone, format):
    quantised = sorted(x.path for x in backbone._flatten_layers() if x.quantization_mode)
    dtypes = {x.compute_dtype for x in backbone._flatten_layers()} | {
        v.dtype for v in backbone.variables
    }
    if quantised:
        raise ValueError(
            "`model` must not be quantised. Export the float weights and quantise with the "
            f"runtime's own tools. Received integer layers: {quantised[:3]} ..."
        )
    if dtypes != {"float32"}:
        raise ValueError(
            "`model` must be float32. Save it as a preset and load that with dtype='float32'. "
            f"Received: {backbone.dtype_policy.name}"
        )
    size = 4 * backbone.count_params()
    if format == "onnx" and size > MAX_ONNX_BYTES:
        raise ValueError(
            f"An ONNX file holds at most 2 GB, these weights take {size / 1e9:.1f} GB. Use "
            "format='tf_saved_model'"
        )


def _check_backend(format):
    backend = keras.backend.backend()
    if format == "tf_saved_model" and backend not in ("jax", "tensorflow"):
        raise ValueError(
            f"format='tf_saved_model' does not work on the {backend} backend. Use format='onnx', "
            "or save a preset and export it under KERAS_BACKEND=tensorflow"
        )
    needed = ["tensorflow"] if format == "tf_saved_model" else ["onnx", _PACKAGES.get(backend)]
    missing = [name for name in needed if name and importlib.util.find_spec(name) is None]
    if missing:
        extra = "tensorflow" if format == "tf_saved_model" else "export"
        raise ImportError(
            f"Export to {format} on the {backend} backend needs {' and '.join(missing)}: "
            f'pip install "keras-elf[{extra}]"'
        )


@contextlib.contextmanager
def _moved_into_place(path, format):
    """Gives a path beside `path` to write to, and moves what is there when all went well."""
    target = os.path.abspath(os.fspath(path))
    folder, name = os.path.split(target)
    if os.path.isdir(target):
        if format == "onnx":
            raise ValueError(f"`path` must be a file. Received a directory: {target!r}")
        if os.listdir(target) and not os.path.exists(os.path.join(target, "saved_model.pb")):
            raise ValueError(f"`path` exists and is not a SavedModel: {target!r}. Choose another")
    elif format == "tf_saved_model" and os.path.exists(target):
        raise ValueError(f"`path` must be a directory. Received a file: {target!r}")
    try:
        os.makedirs(folder, exist_ok=True)
        beside = tempfile.mkdtemp(prefix=f".{name}-", dir=folder)
    except OSError as error:
        raise ValueError(f"`path` cannot be written: {target!r} ({error})") from error
    try:
        written = os.path.join(beside, name)
        yield written
        if os.path.isdir(target):
            os.rename(target, os.path.join(beside, "replaced"))
        os.replace(written, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
