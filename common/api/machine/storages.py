"""The memory of files as programs of PyTorch open it; tensors have no storages."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from common.core.errors import ArgumentError, FileError


class UntypedStorage:
    """Bytes of a file, by `from_file`; nothing else has a storage."""

    def __new__(cls, *args: Any, **options: Any) -> NoReturn:
        """Refuse.

        Raises
        ------
        ArgumentError : always.
        """
        raise ArgumentError(
            "UntypedStorage(): there are no storages; tensors are views of numpy arrays, x.numpy() shows the memory"
        )

    _bytes: np.ndarray

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file; slices of it are arrays of uint8.

        Parameters
        ----------
        filename : path.
        shared : False: nothing is written back.
        nbytes : how many.

        Raises
        ------
        ArgumentError : `shared`, or the file has fewer bytes.
        FileError : the file cannot be read.
        """
        if shared:
            raise ArgumentError("UntypedStorage.from_file(): shared=True would write to the file: use numpy.memmap")
        try:
            data = np.fromfile(filename, np.uint8, nbytes)
        except OSError as error:
            raise FileError(f"UntypedStorage.from_file(): {filename} cannot be read: {error}") from error
        if data.size != nbytes:
            raise ArgumentError(f"UntypedStorage.from_file(): {filename} has {data.size} bytes, not {nbytes}")
        made: UntypedStorage = object.__new__(cls)
        made._bytes = data
        return made

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def nbytes(self) -> int:
        """How many bytes there are."""
        return len(self)

    def __len__(self) -> int:
        return len(self._bytes)

    def __getitem__(self, place: Any) -> Any:
        return self._bytes[place]
