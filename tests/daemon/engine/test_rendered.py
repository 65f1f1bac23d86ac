"""What stands alone in a template keeps its value; where text is sent, JSON's words for it."""

from __future__ import annotations

from redrive.config.sections import HttpCall
from redrived.engine.rendered import rendered_call

ARGS = {"n": 3, "yes": True, "none": None, "rows": [{"a": 1}], "name": "ä"}


def test_values_are_sent_as_json_writes_them_and_texts_as_they_are() -> None:
    call = HttpCall(
        url="http://x/{{ args.n }}?name={{ args.name }}",
        headers={"X-Yes": "{{ args.yes }}", "X-Name": "{{ args.name }}"},
        params={"none": "{{ args.none }}", "both": "{{ args.n }}-{{ args.name }}"},
        body="{{ args.rows }}",
    )
    sent = rendered_call(call, {"args": ARGS})
    assert sent.url == "http://x/3?name=ä"
    assert sent.headers == {"X-Yes": "true", "X-Name": "ä"}
    assert sent.params == {"none": "null", "both": "3-ä"}
    assert sent.body == '[{"a":1}]'


def test_a_json_body_keeps_its_values() -> None:
    call = HttpCall(url="http://x", json={"rows": "{{ args.rows }}", "n": 1})
    assert rendered_call(call, {"args": ARGS}).json == {"rows": [{"a": 1}], "n": 1}
