"""Values of variables in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from common.core.errors import DTypeError, MissingNameError
from common.tensor.fitting import converted, misfit
from common.tools.files.safetensors import load_file, save_file
from static.session.session import Session
from static.session.variables import by_name


class Saver:
    """Writes the values that a session has of variables to safetensors files, and reads them back.

    Parameters
    ----------
    var_list : variables, or a dict of them by the names that they have in files; all of the default graph if None.
    max_to_keep : how many of the files that `save` has written are kept, the newest; None keeps all.

    Examples
    --------
    >>> import tempfile, static as tw
    >>> with tw.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
    ...     w = tw.Variable([1.0, 2.0], name="w")
    ...     saver = tw.Saver()
    ...     with tw.Session() as session:
    ...         session.run(w.initializer)
    ...         path = saver.save(session, f"{folder}/model", global_step=3)
    ...     with tw.Session() as session:
    ...         saver.restore(session, path)
    ...         session.run(w)
    array([1., 2.], dtype=float32)
    """

    def __init__(self, var_list: Any = None, max_to_keep: int | None = 5) -> None:
        self._variables = dict(by_name(var_list))
        self._max, self._written = max_to_keep, list[str]()

    def save(self, sess: Session, save_path: Any, global_step: Any = None) -> str:
        """Write a file and return its path: `save_path`, a hyphen and the step if one is given, and ``.safetensors``.

        Parameters
        ----------
        global_step : a number, or a variable or tensor, whose value in `sess` is taken.

        Raises
        ------
        SessionError : a variable is not initialised.
        """
        path = str(save_path)
        if global_step is not None:
            step = global_step if isinstance(global_step, int) else int(sess.run(global_step))
            path += f"-{step}"
        path = path if path.endswith(".safetensors") else f"{path}.safetensors"
        save_file(dict(zip(self._variables, sess.values(list(self._variables.values())), strict=True)), path)
        self._written = [*(old for old in self._written if old != path), path]
        while self._max is not None and len(self._written) > self._max:
            Path(self._written.pop(0)).unlink(missing_ok=True)
        return path

    def restore(self, sess: Session, save_path: Any) -> None:
        """Give the variables the values of a file; they are initialised then. Nothing is changed if one does not fit.

        Raises
        ------
        MissingNameError : the file has no value for a variable.
        ShapeError, DTypeError : it has one of another shape, or one that the variable's dtype cannot hold exactly.
        """
        path = str(save_path)
        arrays = load_file(path if path.endswith(".safetensors") else f"{path}.safetensors")
        missing = [name for name in self._variables if name not in arrays]
        if missing:
            raise MissingNameError(f"{path} has no values for {missing}; it has {sorted(arrays)}")
        for name, variable in self._variables.items():
            if converted(arrays[name], variable.dtype, exactly=True) is None:
                told = misfit(arrays[name], variable.dtype, exactly=True)
                raise DTypeError(f"{path} has other values for {name} than {variable!r} can hold: {told}")
        sess.load({variable: arrays[name] for name, variable in self._variables.items()})
