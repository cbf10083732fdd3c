"""Bounded dicts lose the oldest entries, whatever other threads do to them meanwhile."""

from common.core.bounded import put_within


class Shared(dict[str, int]):
    """A dict that another thread changes as soon as somebody has asked for its first key, `rounds` times."""

    rounds = 3

    def __iter__(self):
        found = super().__iter__()
        if self.rounds:
            self.rounds -= 1
            self[f"theirs {self.rounds}"] = 0
        return found


def test_the_oldest_go_and_what_is_there_is_replaced():
    entries = {}
    for key in "abcb":
        assert put_within(entries, key, key.upper(), most=2) == key.upper()
    assert entries == {"b": "B", "c": "C"}


def test_another_thread_may_change_the_dict_between_two_steps():
    entries = Shared(a=1, b=2)
    assert put_within(entries, "c", 3, most=2) == 3
    assert entries == {"theirs 0": 0, "c": 3}
