"""Frames are read as they were written, wherever the pipe cuts them."""

import pytest

from headwise.serving.work.pipe_frames import MAX_FRAME_BYTES, FrameReader, write_frame

VALUES = [
    {"order": 1, "found": [[[4, 5], -0.25, -0.5, True]]},
    {"leave": 2},
    {"error": ["no", "不"]},
    {},
]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_frames_cut_anywhere(size: int) -> None:
    data, reader = b"".join(map(write_frame, VALUES)), FrameReader()
    found = [
        value
        for start in range(0, len(data), size)
        for value in reader.feed(data[start : start + size])
    ]
    assert found == VALUES


def test_a_frame_too_large_is_refused_before_it_is_there() -> None:
    with pytest.raises(ValueError, match="a frame of"):
        list(FrameReader().feed((MAX_FRAME_BYTES + 1).to_bytes(4, "big")))
