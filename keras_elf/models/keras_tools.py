"""Keras's tools that look at a model's graph alone, which for ELF is a part of the model."""


class NotCloned:
    """Mixin: `keras.models.clone_model` is refused, which would leave out what the graph lacks."""

    def _run_through_graph(self, inputs, operation_fn=lambda op: op, call_fn=None):
        # The one place at which `clone_model` asks the model itself.
        if getattr(operation_fn, "__qualname__", "").startswith("_clone_functional_model"):
            name = type(self).__name__
            raise ValueError(
                f"`keras.models.clone_model` would leave out parts of this {name}: it copies the "
                "layers of the graph alone. Save it by `save_to_preset(directory)`, and load "
                f"copies by `{name}.from_preset(directory)`, with `load_weights=False` for new "
                "weights."
            )
        return super()._run_through_graph(inputs, operation_fn, call_fn)
