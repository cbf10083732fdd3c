"""Points that fill a cube evenly."""

from common.api.places import publish
from common.random.quasirandom import SobolEngine

__all__ = ["SobolEngine"]

publish(__name__)
