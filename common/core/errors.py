"""Everything that Twingrad raises, in one tree.

::

    TwingradError
    |-- ShapeError            RuntimeError, ValueError   operands do not fit together
    |   |-- EmptyError        IndexError                 a dimension of size 0 that a reduction cannot take
    |   `-- FormError         TypeError                  trees of tensors that must be alike have other shapes
    |-- DTypeError            TypeError, ValueError, NotImplementedError  an op is not defined for a dtype
    |-- ArgumentError         TypeError, ValueError, RuntimeError  an argument of the wrong kind
    |   |-- MissingKeyError   KeyError                   one that a mapping does not have
    |   `-- IndexKindError    IndexError                 what no tensor is indexed with
    |-- LinAlgError           RuntimeError, ValueError   a matrix is singular, or not positive-definite
    |-- AllocationError       MemoryError, RuntimeError  a result that does not fit into memory
    |-- IndexRangeError       IndexError, RuntimeError   an index outside its dimension
    |-- DivisionByZeroError   ZeroDivisionError, RuntimeError  integer division by zero
    |-- NumberRangeError      OverflowError, ValueError  a number that the wanted kind cannot hold
    |-- CheckError            AssertionError             what a program asserts does not hold
    |-- GradientError         RuntimeError               differentiation cannot go on
    |   |-- GraphFreedError                              backward through a freed graph
    |   `-- GradcheckError                               derivatives that finite differences contradict
    |-- DeviceError           RuntimeError, AssertionError  a device other than the CPU is asked for
    |-- StateError            RuntimeError               parameters that do not fit, or have no engine
    |-- GraphError            ValueError, RuntimeError   a `static.Graph` cannot be built, or joined, like this
    |   `-- MissingNameError  KeyError                   a name that nothing in it has
    |-- SessionError          RuntimeError               a session cannot run this: closed, not fed, not initialised
    |-- RegistrationError     KeyError, RuntimeError     a name that a module cannot give to its state
    |-- PickleError           PicklingError, TypeError   an object that can be neither copied nor pickled
    |-- TraceError            TypeError                  a traced program asks for what only a run knows
    |   |-- EscapedTracerError RuntimeError              a tracer outlived its trace
    |   `-- ExampleError      RuntimeError               a function under `vmap` asks what differs between examples
    |-- WorkerError           RuntimeError               a process that loads data has ended, or is late
    |-- CompileError          RuntimeError               a kernel could not be made
    |-- NotDefinedError       NotImplementedError        a method that a subclass has to define
    |-- MissingAttributeError AttributeError             a name that an object does not have
    `-- FileError             OSError                    a file cannot be read or written, see `file_error`
    TwingradCacheWarning      UserWarning                the disk cache is not usable; work goes on without it

Each class is also the built-in exception that users of PyTorch and NumPy expect.
"""

from __future__ import annotations

import pickle


class TwingradError(Exception):
    """Base of all errors of this package."""


class ShapeError(TwingradError, RuntimeError, ValueError):
    """Shapes that do not fit together, or a dimension that does not exist."""


class EmptyError(ShapeError, IndexError):
    """A dimension of size 0 is reduced by an op that has no value for no elements."""


class FormError(ShapeError, TypeError):
    """The carry of a loop, or the results of branches, have different shapes."""


class DTypeError(TwingradError, TypeError, ValueError, NotImplementedError):
    """A dtype for which an operation is not defined."""


class ArgumentError(TwingradError, TypeError, ValueError, RuntimeError):
    """An argument of the wrong kind or value."""


class MissingKeyError(ArgumentError, KeyError):
    """An argument that a mapping does not have, or that means nothing to a function."""

    __str__ = Exception.__str__


class IndexKindError(ArgumentError, IndexError):
    """A tensor is indexed with something that is no index."""


class LinAlgError(TwingradError, RuntimeError, ValueError):
    """A matrix is singular, or not positive-definite, or an algorithm does not converge for it."""


class AllocationError(TwingradError, RuntimeError, MemoryError):
    """A result that does not fit into memory."""


class IndexRangeError(TwingradError, IndexError, RuntimeError):
    """An index outside the dimension it selects from."""


class DivisionByZeroError(TwingradError, ZeroDivisionError, RuntimeError):
    """Integer division by zero."""


class NumberRangeError(TwingradError, OverflowError, ValueError):
    """A number that the wanted kind of number cannot hold."""


class CheckError(TwingradError, AssertionError):
    """An assertion of the program does not hold."""


class GradientError(TwingradError, RuntimeError):
    """Differentiation was asked for something that has no gradient.

    Attributes
    ----------
    written : the leaf that is written to in place, where that is the reason.
    """

    written: object = None


class GraphFreedError(GradientError):
    """Backward ran through a graph whose saved values are gone."""


class GradcheckError(GradientError):
    """A gradient differs from finite differences."""


class DeviceError(TwingradError, RuntimeError, AssertionError):
    """A device that this machine's tensors cannot be on: there is only the CPU."""


class StateError(TwingradError, RuntimeError):
    """Parameters or buffers that do not fit what is loaded into them, or that no engine can compute with."""


class GraphError(TwingradError, ValueError, RuntimeError):
    """A `static.Graph` is finalised, would have a cycle, or meets tensors of another."""


class MissingNameError(GraphError, KeyError):
    """A name that nothing in a `static.Graph` has."""

    __str__ = Exception.__str__


class SessionError(TwingradError, RuntimeError):
    """A session is closed, or a run needs what was not fed or not initialised."""


class RegistrationError(TwingradError, KeyError, RuntimeError):
    """A name that is empty, has a dot, or is taken already; or a module that would contain itself."""

    __str__ = Exception.__str__


class PickleError(TwingradError, pickle.PicklingError, TypeError):
    """An object that can be neither copied nor pickled, or a function in it that no pickle holds."""


class TraceError(TwingradError, TypeError):
    """A traced program needs a value that exists only when the program runs."""


class ExampleError(TraceError, RuntimeError):
    """A mapped function asks for one Python value where every example has its own."""


class EscapedTracerError(TraceError, RuntimeError):
    """A tracer is used after its trace has ended."""


class WorkerError(TwingradError, RuntimeError):
    """A worker process of a loader has ended unexpectedly, or a batch did not come in time."""


class CompileError(TwingradError, RuntimeError):
    """A kernel could not be compiled or loaded."""


class NotDefinedError(TwingradError, NotImplementedError):
    """A method that a subclass has to define, and does not."""


class MissingAttributeError(TwingradError, AttributeError):
    """A name that an object does not have."""


class FileError(TwingradError, OSError):
    """A file cannot be read or written; also the kind of `OSError` that Python raises for the reason."""


_file_errors: dict[type[OSError], type[FileError]] = {OSError: FileError}


def file_error(error: OSError) -> OSError:
    """The `FileError` for an error of the system: a `FileNotFoundError` for one, with its number and file."""
    kind = type(error)
    if kind not in _file_errors:
        _file_errors[kind] = type(kind.__name__, (FileError, kind), {"__doc__": kind.__doc__})
    told = (error.errno, error.strerror, error.filename)
    return _file_errors[kind](*(told if error.errno is not None else error.args))


class TwingradCacheWarning(UserWarning):
    """The disk cache is corrupt or not writable; kernels are compiled in memory instead."""
