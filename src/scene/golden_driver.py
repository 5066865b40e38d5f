# Calls a golden. Arguments: the exchange directory, the golden's file and its entry. exchange.json in
# the directory lists the arguments of the run: "numpy" is the dtype that holds the values of one.
# Inputs and outputs are .npy files of numbers. Exit code 3: one sentence on stderr says what is wrong;
# any other but 0: the message is Python's own.
import sys
sys.path[:] = [place for place in sys.path if place]  # no file of the working directory is a module of Python
import json, os, runpy, traceback
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
def scalar(arg):
    bits = int(arg['bits'], 16).to_bytes(8, 'little')
    return np.frombuffer(bits, dtype=arg['numpy'], count=1).reshape(())[()]
def narrowed(array, arg):
    name, dtype = arg['name'], arg['dtype']
    if array.dtype.kind not in 'fiub':
        stop(f'output "{name}" has elements of {array.dtype}; expected numbers')
    if arg['numpy'].startswith('float'):
        if array.dtype in (np.float32, np.float64):
            return array
        return array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    if dtype == 'bool':
        return array.astype(np.bool_)
    with np.errstate(all='ignore'):
        result = array.astype(arg['numpy'])
    bad = result != array
    if arg['width'] < 8:
        low = -(1 << arg['width'] - 1) if arg['numpy'] == 'int8' else 0
        bad = bad | (result < low) | (result >= low + (1 << arg['width']))
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
            given[arg['name']] = np.load(os.path.join(where, arg['file']))
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
