# Calls a golden. Arguments: the exchange directory, the golden's file and its entry. exchange.json in
# the directory lists the arguments of the run; their tensors are .npy files of raw bits. Writes the
# outputs as .npy files of numbers. Exit code 3: one sentence on stderr says what is wrong; any other
# but 0: the message is Python's own.
import json, os, runpy, sys, traceback
def stop(sentence):
    sys.stderr.write(sentence)
    sys.stderr.flush()
    os._exit(3)
try:
    import numpy as np
except ImportError as error:
    stop(f'{sys.executable} has no numpy ({error}); install it (python3-numpy) or write the '
         'golden in C')
where, source, entry = sys.argv[1:4]
def eight_bits(exponent_bits, fraction_bits, is_finite_only):
    code = np.arange(256)
    sign = np.where(code & 128, -1.0, 1.0)
    exponent = (code & 127) >> fraction_bits
    fraction = code & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    lead = np.where(exponent > 0, 1 << fraction_bits, 0)
    power = np.where(exponent > 0, exponent, 1) - bias - fraction_bits
    value = sign * np.ldexp((lead + fraction).astype(np.float64), power)
    top = exponent == (1 << exponent_bits) - 1
    if is_finite_only:
        value[(code & 127) == 127] = np.nan
    else:
        value[top] = np.where(fraction[top] == 0, sign[top] * np.inf, np.nan)
    return value.astype(np.float32)
def widen(array, arg):
    dtype = arg['dtype']
    if dtype == 'bfloat16':
        bits = array.reshape(-1).astype(np.uint32) << np.uint32(16)
        return bits.view(np.float32).reshape(arg['shape'])
    if dtype == 'float8_e4m3':
        return eight_bits(4, 3, True)[array]
    if dtype == 'float8_e5m2':
        return eight_bits(5, 2, False)[array]
    if dtype == 'int4':
        flat = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
        both = np.stack([flat & 15, flat >> 4], axis=-1).astype(np.int8)
        row = arg['shape'][-1] if arg['shape'] else 1
        both = both.reshape(flat.shape[0], 2 * flat.shape[1])[:, :row]
        return ((both ^ 8) - 8).astype(np.int8).reshape(arg['shape'])
    return array
def scalar(arg):
    bits, dtype = int(arg['bits'], 16), arg['dtype']
    storage = {'bfloat16': 'uint16', 'float8_e4m3': 'uint8', 'float8_e5m2': 'uint8',
               'int4': 'uint8'}.get(dtype, dtype)
    raw = np.frombuffer(bits.to_bytes(8, 'little'), dtype=storage, count=1)
    return widen(raw.reshape(()), dict(arg, shape=[])).reshape(())[()]
def narrowed(array, arg):
    name, dtype = arg['name'], arg['dtype']
    if array.dtype.kind not in 'fiub':
        stop(f'output "{name}" has elements of {array.dtype}; expected numbers')
    if dtype.startswith(('float', 'bfloat')):
        if array.dtype in (np.float32, np.float64):
            return array
        return array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    if dtype == 'bool':
        return array.astype(np.bool_)
    with np.errstate(all='ignore'):
        result = array.astype('int8' if dtype == 'int4' else dtype)
    bad = result != array
    if dtype == 'int4':
        bad = bad | (result < -8) | (result > 7)
    if bad.any():
        stop(f'output "{name}" holds {array[bad].flat[0]!r}, which does not fit {dtype}')
    return result
def main():
    with open(os.path.join(where, 'exchange.json')) as file:
        args = json.load(file)['args']
    given = {}
    for arg in args:
        if arg['role'] == 'scalar':
            given[arg['name']] = scalar(arg)
        elif arg['role'] != 'out':
            given[arg['name']] = widen(np.load(os.path.join(where, arg['file'])), arg)
    sys.path.insert(0, os.path.dirname(os.path.abspath(source)))
    sys.argv = [source]
    function = runpy.run_path(source, run_name='golden').get(entry)
    if not callable(function):
        stop(f'no function {entry}; expected def {entry}(args)')
    results = function(given)
    if not isinstance(results, dict):
        stop(f'{entry}() returned {type(results).__name__}; expected a dict of outputs')
    outputs = {arg['name']: arg for arg in args if arg['role'] in ('out', 'inout')}
    for name in results:
        if name not in outputs:
            stop(f'{entry}() returned {name!r}, which is not an output; expected '
                 + ', '.join(outputs))
    for name, arg in outputs.items():
        if name not in results:
            stop(f'{entry}() returned no output "{name}"')
        array = np.asarray(results[name])
        if list(array.shape) != arg['shape']:
            stop(f'output "{name}" has shape {list(array.shape)}; expected {arg["shape"]}')
        array = narrowed(array, arg)
        array = array.astype(array.dtype.newbyteorder('<'))
        array = np.ascontiguousarray(array).reshape(arg['shape'])
        np.save(os.path.join(where, arg['result']), array, allow_pickle=False)
try:
    main()
except Exception as error:
    step = error.__traceback__
    while step and step.tb_frame.f_code.co_filename != source:
        step = step.tb_next
    traceback.print_exception(error.with_traceback(step))
    sys.exit(1)
