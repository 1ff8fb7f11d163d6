"""The parser of event streams, according to the WHATWG standard."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lilux.primitives.http_client.sse import SseEvent, SseEventTooLargeError, SseParser

LIMIT = 1024


def parse(*chunks: bytes, limit: int = LIMIT) -> list[SseEvent]:
    parser = SseParser(limit)
    return [event for chunk in chunks for event in parser.feed(chunk)]


def data_of(*chunks: bytes) -> list[str]:
    return [event.data for event in parse(*chunks)]


def test_the_lines_of_one_event_are_joined_by_line_feeds() -> None:
    assert data_of(b"data: YHOO\ndata: +2\ndata: 10\n\n") == ["YHOO\n+2\n10"]


def test_comments_and_blocks_without_data_are_skipped() -> None:
    stream = (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third\n\n"
    )
    assert parse(stream) == [
        SseEvent(data="first event", id="1"),
        SseEvent(data="second event", id=""),
        SseEvent(data=" third", id=""),
    ]
    assert data_of(b"event: ping\n\nid: 4\n\nretry: 10\n\n") == []


def test_an_empty_data_field_is_an_event_with_empty_data() -> None:
    assert data_of(b"data\n\ndata\ndata\n\ndata:") == ["", "\n"]


def test_only_one_space_after_the_colon_is_dropped() -> None:
    assert data_of(b"data:test\n\ndata: test\n\ndata:\ttest\n\n") == ["test", "test", "\ttest"]


def test_event_id_and_retry_are_read() -> None:
    stream = b"event: add\nid: 7\nretry: 3000\ndata: x\n\ndata: y\n\n"
    assert parse(stream) == [
        SseEvent(data="x", event="add", id="7", retry=3000),
        SseEvent(data="y", event="message", id="7", retry=None),
    ]


@pytest.mark.parametrize(
    "value", [b"+5", b"  5", b"-1", b"5.0", "\u0663".encode(), b"5s", b"", b"9" * 5000]
)
def test_a_retry_that_is_not_all_digits_is_ignored(value: bytes) -> None:
    assert parse(b"retry:" + value + b"\ndata: x\n\n", limit=10_000)[0].retry is None


def test_an_id_with_a_nul_is_ignored() -> None:
    assert parse(b"id: 1\ndata: x\n\nid: a\0b\ndata: y\n\n")[1].id == "1"


def test_unknown_fields_and_fields_of_other_case_are_ignored() -> None:
    assert data_of(b"Data: a\nfoo: b\n data: c\ndata: d\n\n") == ["d"]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_is_recognised(end: bytes) -> None:
    assert data_of(end.join([b"data: a", b"data: b", b"", b"data: c", b"", b""])) == ["a\nb", "c"]


def test_only_cr_and_lf_end_a_line() -> None:
    text = "a\x0b\x0c\x1c\x85\u2028\u2029b"
    assert data_of(f"data: {text}\n\n".encode()) == [text]


def test_a_split_crlf_is_one_line_end() -> None:
    assert data_of(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == ["a\nb"]


def test_an_event_that_ends_in_cr_is_not_delayed() -> None:
    parser = SseParser(LIMIT)
    assert [e.data for e in parser.feed(b"data: a\r\r")] == ["a"]
    assert [e.data for e in parser.feed(b"\ndata: b\n\n")] == ["b"]


@pytest.mark.parametrize("tail", [b"data: b", b"data: b\n", b"data: b\r", b"data: b\r\n", b"data"])
def test_an_event_without_its_blank_line_is_dropped(tail: bytes) -> None:
    assert data_of(b"data: a\n\n" + tail) == ["a"]


def test_one_leading_byte_order_mark_is_dropped() -> None:
    bom = b"\xef\xbb\xbf"
    assert data_of(bom[:1], bom[1:] + b"data: a\n\n") == ["a"]
    assert data_of(bom + bom + b"data: a\n\n") == []
    assert data_of(b"data: a\n" + bom + b"data: b\n\n") == ["a"]


def test_a_split_code_point_is_decoded() -> None:
    whole = "data: 日本🎌\n\n".encode()
    for cut in range(len(whole)):
        assert data_of(whole[:cut], whole[cut:]) == ["日本🎌"]


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    assert data_of(b"data: a\xff\xe6\x97\n\n") == ["a\ufffd\ufffd"]


def test_an_endless_event_is_refused_after_the_events_before_it() -> None:
    events = SseParser(16).feed(b"data: a\n\ndata: bb\ndata: cc\ndata: d")
    assert next(events).data == "a"
    with pytest.raises(SseEventTooLargeError, match=r"^an event is larger than 16 bytes$"):
        next(events)


@pytest.mark.parametrize("line", [b"data: 12345678901", b":" + b"x" * 17, b"x" * 17])
def test_an_endless_line_of_any_kind_is_refused(line: bytes) -> None:
    for chunks in ([line], [bytes([byte]) for byte in line], [line + b"\n"]):
        with pytest.raises(SseEventTooLargeError):
            parse(*chunks, limit=16)


def test_many_small_events_and_comments_never_reach_the_limit() -> None:
    assert len(parse(b": keep-alive\ndata: 1\n\n" * 1000, limit=16)) == 1000


LINES = st.lists(
    st.one_of(
        st.sampled_from([b"", b"data", b"data:", b": c", b"id: 1", b"event: e", b"retry: 5"]),
        st.text(max_size=8).map(lambda text: b"data: " + text.encode("utf-8", "surrogatepass")),
        st.binary(max_size=8),
    ),
    max_size=12,
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r\n"])


@given(
    lines=LINES, ends=st.lists(ENDS, min_size=12, max_size=12), bom=st.booleans(), data=st.data()
)
def test_the_chunks_of_a_stream_make_no_difference(
    lines: list[bytes], ends: list[bytes], bom: bool, data: st.DataObject
) -> None:
    body = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    stream = (b"\xef\xbb\xbf" if bom else b"") + body
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *cuts, len(stream)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    expected = parse(stream)
    assert parse(*pieces) == expected
    assert parse(*(bytes([byte]) for byte in stream)) == expected


@given(
    events=st.lists(
        st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=20)
    )
)
def test_framed_events_are_parsed_unchanged(events: list[str]) -> None:
    framed = "".join(
        "".join(f"data: {line}\n" for line in event.split("\n")) + "\n" for event in events
    )
    assert [e.data for e in parse(framed.encode())] == events
