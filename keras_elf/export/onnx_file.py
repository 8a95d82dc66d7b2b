"""One interface for the ONNX files of three converters."""

import json

METADATA_KEY = "keras_elf"


def finish(path, inputs, outputs, settings):
    """Name and order inputs and outputs, open the batch, store the settings; in place.

    Args:
        path: str. The file that a converter wrote.
        inputs: dict of name -> shape, `None` for the batch, in the order wanted.
        outputs: the same for the outputs.
        settings: dict, stored as JSON under `"keras_elf"` in the file's metadata.
    """
    import onnx

    model = onnx.load(path)
    graph = model.graph
    # All three converters flatten the dict of outputs in the order of its sorted keys.
    _rename(graph, {old.name: new for old, new in zip(graph.output, sorted(outputs), strict=True)})
    for values, wanted in ((graph.input, inputs), (graph.output, outputs)):
        by_name = {value.name: value for value in values}
        if set(by_name) != set(wanted):
            raise RuntimeError(
                f"The converter wrote {sorted(by_name)}, expected {sorted(wanted)}. It may be of "
                "a version that keras_elf does not know"
            )
        ordered = []
        for name, shape in wanted.items():
            value = onnx.ValueInfoProto()
            value.CopyFrom(by_name[name])
            value.type.CopyFrom(
                onnx.helper.make_tensor_type_proto(
                    onnx.TensorProto.FLOAT, ["batch" if size is None else size for size in shape]
                )
            )
            ordered.append(value)
        del values[:]
        values.extend(ordered)
    onnx.helper.set_model_props(model, {METADATA_KEY: json.dumps(settings, sort_keys=True)})
    onnx.save(model, path)


def _rename(graph, names):
    names = {old: new for old, new in names.items() if old != new}
    # A tensor inside may have one of the new names already.
    names.update({new: f"{new}_inside" for new in names.values() if new not in names})
    for node in graph.node:
        for values in (node.input, node.output):
            for i, name in enumerate(values):
                values[i] = names.get(name, name)
    for value in [*graph.output, *graph.value_info, *graph.initializer]:
        value.name = names.get(value.name, value.name)
