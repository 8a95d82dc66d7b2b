"""Keras utilities that see the graph of a generator alone, which is that of its encoder."""

import keras


class Overview:
    """Mixin of `ELFGenerator`."""

    def summary(self, line_length=None, positions=None, print_fn=None, **kwargs):
        """Print the encoder's graph, then the network, as `keras.Model.summary` does.

        An encoder that is loaded when it is needed is not loaded for this.

        Args:
            line_length, positions, print_fn, **kwargs: as in Keras.
        """
        write = print_fn or print
        options = {"line_length": line_length, "positions": positions, "print_fn": print_fn}
        deferred = self.latent_encoder.deferred
        with self.latent_encoder.left_unloaded():
            super().summary(**options, **kwargs)
        if deferred is not None:
            write(f"Encoder: {deferred.class_name}, not loaded yet (loaded when it is needed)")
        network = self.backbone
        if isinstance(network, keras.Model):
            network.summary(**options, **kwargs)
        else:
            write(
                f'Network: "{network.name}" ({type(network).__name__}), '
                f"{network.count_params():,} parameters"
            )

    def export(self, filepath, format="tf_saved_model", **kwargs):
        """Refused: Keras would export the text encoder alone, without a word.

        Raises:
            ValueError: always; it names what exports the network.
        """
        raise ValueError(
            "`export` of Keras would write the text encoder alone. Use "
            "`keras_elf.export.export_denoiser(model, path, format=...)` for the network, and "
            f"`model.encoder.export(path)` for the encoder. Received: {filepath!r}"
        )
