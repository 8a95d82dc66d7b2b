"""The published models by name: the authors' files, downloaded and converted once."""

import os
import re
import shutil

from keras_elf import hub
from keras_elf.encoders import t5_files, t5_weights
from keras_elf.presets import bundled, encoder_source

# A name with a wildcard may be missing: not every repository of a T5 has this file.
TOKENIZER_FILES = ("spiece.model", "tokenizer_config.json*")
ENCODER_FILES = ("config.json", "model.safetensors", *TOKENIZER_FILES)


def converted(name, revision=None, weights="ema"):
    """The directory of a published model as a Keras preset, made on first use.

    The newest checkpoint of the authors' repository and the text encoder's vocabulary are
    downloaded, compared with the hashes that the hub states, converted, checked and kept
    below Keras's home; the encoder itself when it is needed, see `fill_encoder`. Later calls
    open no connection. Delete the directory to have a newer release.

    Args:
        name: str. A preset such as `"elf_b_owt"`.
        revision: str. Branch, tag or commit of the authors' repository. Defaults to `None`,
            `"main"`.
        weights: `"ema"` or `"raw"`. Defaults to `"ema"`.

    Returns:
        str. A directory.

    Raises:
        keras_elf.hub.HubError: if a download fails or the disk is full; it says what to do.
        ValueError: if the files are not those of this model.
    """
    from keras_elf.checkpoints.importing import import_checkpoint

    facts = bundled.information(name)

    def build(directory):
        release = hub.download(facts["weights"], hub.newest_checkpoint, revision)
        tokenizer = hub.download(facts["encoder"], TOKENIZER_FILES)
        checkpoint = _checkpoint_path(release)
        import_checkpoint(
            checkpoint,
            directory,
            preset=name,
            encoder=encoder_source.of_published(name),
            tokenizer=tokenizer.path,
            weights=weights,
            source={
                "repository": release.repo_id,
                "revision": release.revision,
                "commit": release.commit,
                "encoder": {
                    "repository": tokenizer.repo_id,
                    "commit": tokenizer.commit,
                    "sha256": tokenizer.files,
                },
            },
        )

    version = re.sub(r"[^\w.-]", "_", revision or "main")
    return hub.build_once(hub.keras_home_directory(name, f"{version}-{weights}"), build)


def with_tokenizer(name):
    """The directory of a published model without weights, its vocabulary downloaded once."""
    facts = bundled.information(name)

    def build(directory):
        found = hub.download(facts["encoder"], TOKENIZER_FILES)
        shutil.copytree(bundled.directory(name), directory, dirs_exist_ok=True)
        assets = os.path.join(directory, "assets", "tokenizer")
        os.makedirs(assets)
        vocabulary = os.path.join(found.path, "spiece.model")
        shutil.copyfile(vocabulary, os.path.join(assets, "vocabulary.spm"))

    return hub.build_once(hub.keras_home_directory(name, "tokenizer"), build)


def fill_encoder(name, encoder):
    """Load the weights of a published model's text encoder, downloaded once.

    Args:
        name: str. A preset such as `"elf_b_owt"`.
        encoder: `keras_elf.encoders.T5Encoder` of the model's sizes.

    Raises:
        keras_elf.hub.HubError: if the download fails; it says what to do.
        ValueError: if the files are not those of this encoder.
    """
    found = hub.download(bundled.information(name)["encoder"], ENCODER_FILES)
    arrays = t5_files.read_arrays(found.path)
    t5_weights.assign_weights(encoder, arrays, source=str(found.path))


def _checkpoint_path(release):
    first = sorted(release.files)[0]
    # Files of an orbax directory lie below `checkpoint_<step>/`.
    parts = first.split("/")
    depth = next(i for i, part in enumerate(parts) if part.startswith("checkpoint_")) + 1
    return os.path.join(release.path, *parts[:depth])
