"""The older name of `hub.load_state_dict_from_url`; the same function in both engines."""

from common.api.places import publish
from common.tools.files.hub import load_state_dict_from_url

__getattr__ = publish(__name__, {"load_url": load_state_dict_from_url})
