"""`hf://owner/name@revision`: what it names, and its preset files as a local directory."""

import fnmatch

from keras_elf.hub.downloading import checked_names, download
from keras_elf.hub.errors import HubError
from keras_elf.hub.listing import newest_checkpoint, shown

_SCHEME = "hf://"
PRESET_FILES = (
    "config.json",
    "task.json",
    "preprocessor.json",
    "tokenizer.json",
    "metadata.json",
    "encoder.json",
    "*.weights.h5",
    "*.weights.json",
    "assets/*",
)


def split_handle(handle):
    """Return `(repo_id, revision)` of a handle.

    Args:
        handle: str. `"hf://owner/name"` or `"hf://owner/name@revision"`, where the revision
            is a branch, a tag or a commit hash.

    Returns:
        tuple of str and (str or None).

    Raises:
        ValueError: if it is not such a handle.
    """
    form = (
        "`handle` must look like 'hf://owner/name' or 'hf://owner/name@revision'. "
        f"Received: {handle!r}"
    )
    if not isinstance(handle, str) or not handle.startswith(_SCHEME):
        raise ValueError(form)
    repo_id, at, revision = handle[len(_SCHEME) :].rstrip("/").partition("@")
    try:
        repo_id, revision = checked_names(repo_id, revision if at else None)
    except ValueError:
        raise ValueError(form) from None
    return repo_id, revision if at else None


def snapshot(handle, patterns=PRESET_FILES, token=None):
    """Download the preset that a handle names and return its directory.

    Args:
        handle: str. As for `split_handle`.
        patterns: sequence of str. Files that make up a preset; those that the repository
            lacks are left out, except for `config.json`. Defaults to `PRESET_FILES`.
        token: str, bool or None. As for `download`. Defaults to `None`.

    Returns:
        str. A directory whose files are links into the cache of `huggingface_hub`.

    Raises:
        HubError: if the repository holds no Keras preset, or cannot be downloaded.
    """
    repo_id, revision = split_handle(handle)

    def preset_files(names):
        if "config.json" not in names:
            raise HubError(_no_preset(repo_id, names), "file")
        return {n for pattern in patterns for n in fnmatch.filter(names, pattern)}

    return download(repo_id, preset_files, revision, token).path


def _no_preset(repo_id, names):
    message = f"{repo_id!r} is not a Keras preset: it has no config.json. It holds: {shown(names)}."
    if newest_checkpoint(names):
        bare = repo_id.rsplit("/", 1)[-1].lower().replace("-", "_").removesuffix("_torch")
        bare = bare if bare.startswith("elf_") else "elf_b_owt"
        message += (
            " It is a checkpoint of a training run. The published ones load by their bare names, "
            f'as in `keras_elf.ELFGenerator.from_preset("{bare}")`; import one of your own with '
            "`keras_elf.checkpoints.import_checkpoint(path, ...)`."
        )
    return message
