"""Weights and models of local directories; the same functions in both engines."""

from urllib.parse import urlparse as urlparse  # libraries import it from torch.hub

from common.api.places import publish
from common.tools.files.hub import FUNCTIONS
from common.tools.files.hub import HASH_REGEX as HASH_REGEX
from common.tools.files.hub import _get_torch_home as _get_torch_home
from common.tools.files.hub import tqdm as tqdm

__getattr__ = publish(__name__, FUNCTIONS)
