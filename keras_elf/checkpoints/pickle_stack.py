"""The stack and the memo that a pickle's opcodes work on, without a call to anything."""

from keras_elf.checkpoints.reading import damaged, shown

_MAX_MARKS = 100


class PickleStack:
    """Builds containers and values; one method `op_<name>` an opcode."""

    def __init__(self, path):
        self.path = path
        self.stack = []
        self.marks = []
        self.memo = {}

    def refusal(self, what):
        return damaged(self.path, f"its pickle holds {what} (nothing of it was executed)")

    def result(self):
        if len(self.stack) != 1 or self.marks:
            raise self.refusal("more or less than one object")
        return self.stack[0]

    def pop(self, kind=None):
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise self.refusal("a step without its operand")
        value = self.stack.pop()
        if kind is not None and type(value) is not kind:
            raise self.refusal(f"a {type(value).__name__} where something else belongs")
        return value

    def pop_mark(self):
        if not self.marks:
            raise self.refusal("a step without its operands")
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def top(self, kind):
        value = self.pop(kind)
        self.stack.append(value)
        return value

    def op_proto(self, version):
        if version != 2:
            raise self.refusal(f"protocol {version} (torch.save writes 2 unless told otherwise)")

    def op_mark(self, _):
        if len(self.marks) == _MAX_MARKS:
            raise self.refusal("containers nested too deep")
        self.marks.append(len(self.stack))

    def _push(self, value):
        self.stack.append(value)

    op_binunicode = op_binint = op_binint1 = op_binint2 = op_long1 = op_binfloat = _push

    def op_none(self, _):
        self.stack.append(None)

    def op_newtrue(self, _):
        self.stack.append(True)

    def op_newfalse(self, _):
        self.stack.append(False)

    def op_empty_dict(self, _):
        self.stack.append({})

    def op_empty_list(self, _):
        self.stack.append([])

    def op_empty_tuple(self, _):
        self.stack.append(())

    def op_tuple(self, _):
        self.stack.append(tuple(self.pop_mark()))

    def op_tuple1(self, _):
        self.stack.append((self.pop(),))

    def op_tuple2(self, _):
        last = self.pop()
        self.stack.append((self.pop(), last))

    def op_tuple3(self, _):
        last, middle = self.pop(), self.pop()
        self.stack.append((self.pop(), middle, last))

    def op_append(self, _):
        value = self.pop()
        self.top(list).append(value)

    def op_appends(self, _):
        values = self.pop_mark()
        self.top(list).extend(values)

    def op_setitem(self, _):
        value, key = self.pop(), self.pop()
        self._set(self.top(dict), key, value)

    def op_setitems(self, _):
        items = self.pop_mark()
        target = self.top(dict)
        if len(items) % 2:
            raise self.refusal("a key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            self._set(target, key, value)

    def _set(self, target, key, value):
        # Tuples may take for ever to hash, large numbers may be chosen to collide.
        if not isinstance(key, str) and not (type(key) is int and abs(key) < 2**31):
            raise self.refusal(f"a {type(key).__name__} as a key")
        if key in target:
            raise self.refusal(f"the key {shown(key)} twice")
        target[key] = value

    def _remember(self, index):
        if not self.stack:
            raise self.refusal("a step without its operand")
        self.memo[index] = self.stack[-1]

    op_binput = op_long_binput = _remember

    def _recall(self, index):
        if index not in self.memo:
            raise self.refusal("a reference to nothing")
        self.stack.append(self.memo[index])

    op_binget = op_long_binget = _recall
