"""The place where a loader of the authors' released files registers itself.

Reading those files needs the models, and the models need the names of presets. So the names
ask whoever has registered here, and import nothing of what lies above them.
"""

_LOADERS = []


def register_published(loader):
    """Register what makes presets of published models, whose weights are not in the package.

    Args:
        loader: callable without arguments that gives an object (a module, perhaps) with
            `converted(name, revision, weights)` and `with_tokenizer(name)`, each of which
            returns the path of a preset directory, and `fill_encoder(name, encoder)`, which
            loads the weights of the model's text encoder. It is called when it is first needed.
            The last one that was registered is asked.
    """
    _LOADERS.append(loader)


def loader():
    """What the last registered callable gives.

    Raises:
        RuntimeError: if none was registered.
    """
    if not _LOADERS:
        raise RuntimeError("No loader of published models is registered. Import `keras_elf` first")
    return _LOADERS[-1]()
