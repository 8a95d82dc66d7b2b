"""From what a user calls a preset to a local directory that has been looked at."""

import os

from keras_elf import checks
from keras_elf.presets import bundled, published

# Handles that keras_hub itself downloads, file by file.
_KERAS_HUB_HANDLES = ("kaggle://", "modelscope://", "gs://", "s3://", "hdfs://")
_OTHER_FORMS = "a directory written by `save_to_preset`, a name such as 'elf_b_owt' or a handle"


def local_directory(preset, load_weights=True, tokenizer=True, revision=None, weights="ema"):
    """The directory of a preset, downloaded and converted first where that is needed.

    Args:
        preset: str or path. In this order: an existing directory; the name of a bundled
            preset; a handle `"hf://user/name"` (`"hf://user/name@revision"`); a handle that
            keras_hub downloads by itself.
        load_weights: bool. Whether weights will be asked for. Defaults to `True`.
        tokenizer: bool. Whether a vocabulary will be. Defaults to `True`.
        revision: str. Branch, tag or commit on the hub, for names and `hf://`.
        weights: `"ema"` or `"raw"`, for names. Defaults to `"ema"`.

    Returns:
        str. A directory, or the handle where keras_hub downloads it.

    Raises:
        ValueError: if there is no such preset, or an option does not apply to it.
        keras_elf.hub.HubError: if a download fails.
    """
    if not isinstance(preset, (str, os.PathLike)):
        raise ValueError(f"`preset` must be {_OTHER_FORMS}. Received: {preset!r}")
    preset = os.path.expanduser(os.fspath(preset))
    checks.choice("weights", weights, ("ema", "raw"))
    if not preset:
        raise ValueError(f"`preset` must be {_OTHER_FORMS}. Received: ''")
    if preset.startswith(_KERAS_HUB_HANDLES):
        _refuse_options(preset, revision, weights)
        return preset
    if preset.startswith("hf://"):
        from keras_elf import hub

        _refuse_options(preset, None, weights)
        if revision is not None:
            preset = f"{preset}@{revision}"
        files = [p for p in hub.PRESET_FILES if load_weights or ".weights." not in p]
        return str(hub.snapshot(preset, files))
    if "://" in preset:
        raise ValueError(f"`preset` must be {_OTHER_FORMS}. Received: {preset!r}")
    is_directory = os.path.isdir(preset)
    if preset in bundled.directories():
        # An empty directory of that name, a cache perhaps, does not stand for a model.
        is_directory = os.path.isfile(os.path.join(preset, "config.json"))
    if not is_directory and bundled.is_bare_name(preset):
        path = bundled.directory(preset)
        complete = bundled.has_weights(preset)
        if not complete and (load_weights or tokenizer):
            loader = published.loader()
            if load_weights:
                return str(loader.converted(preset, revision, weights))
            path = _with_tokenizer(loader, preset)
        _refuse_options(preset, revision, weights)
        return str(path)
    _refuse_options(preset, revision, weights)
    return preset


def _with_tokenizer(loader, preset):
    from keras_elf.hub import HubError

    try:
        return loader.with_tokenizer(preset)
    except HubError as error:
        raise HubError(
            f"{error} Without weights only the tokenizer's vocabulary has to be downloaded: with "
            "`preprocessor=None` you get a model on token ids, and nothing is.",
            error.reason,
        ) from None


def _refuse_options(preset, revision, weights):
    if revision is not None or weights != "ema":
        raise ValueError(
            "`revision` and `weights` are for presets that are downloaded from the authors' "
            f"releases. Received: revision={revision!r}, weights={weights!r} with {preset!r}"
        )
