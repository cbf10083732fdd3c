"""What annotations of programs call the kinds of arguments."""

from typing import TYPE_CHECKING

from common.api.type_names import *  # noqa: F403
from common.api.type_names import __all__ as __all__
from common.core import absent

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
