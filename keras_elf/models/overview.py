"""What `summary` tells of a generator: Keras itself sees the encoder's graph alone."""

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
