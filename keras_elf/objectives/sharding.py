"""How many runs of rows a batch is laid out in over the devices."""

import keras


def data_blocks():
    """Devices along the batch axis of the active `keras.distribution`, 1 without one."""
    distribution = keras.distribution.distribution()
    if distribution is None or distribution.batch_dim_name is None:
        return 1
    mesh = distribution.device_mesh
    return int(mesh.shape[mesh.axis_names.index(distribution.batch_dim_name)])
