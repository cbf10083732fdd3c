"""The older name of `hub.load_state_dict_from_url`; the same function in both engines."""

from common.api.places import publish
from common.tools.files.hub import load_state_dict_from_url
from common.tools.files.hub import tqdm as tqdm

__getattr__ = publish(__name__, {"load_url": load_state_dict_from_url})
