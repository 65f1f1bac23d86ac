"""Who may ask what. A message that is new has to be written into one of these lists."""

from __future__ import annotations

import msgspec
import pytest

from redrive.errors import NotAllowed, UsageProblem
from redrive.keys import Role
from redrive.protocol.codec import encode
from redrive.protocol.envelope import Call, Request
from redrived.api.reading import read_request, request_types
from support.messages import example

VIEWER = """
    classify doctor fate hello listbatches listevents listgroups listjobs listnodes listpipelines
    listoutbox listqueues listredrives listruns listschedules preview readlog showjob showpipeline
    showpolicy showrun status testrules why
"""
OPERATOR = """
    act addpipeline backup controlredrive discardorder drain enqueue hello pauseit reload resumeit
    start trigger undo
"""
LISTS: dict[Role, list[str]] = {"viewer": VIEWER.split(), "operator": OPERATOR.split()}
KINDS = request_types("viewer") | request_types("operator")


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_each_role_may_ask_what_is_listed_and_nothing_else(role: Role) -> None:
    assert sorted(request_types(role)) == sorted(LISTS[role])


@pytest.mark.parametrize("role", ["viewer", "operator"])
@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_request_is_read_for_the_role_that_may_make_it(name: str, role: Role) -> None:
    request: Request = example(KINDS[name])
    call = Call(id="a", body=msgspec.Raw(encode(request)))
    if name in LISTS[role]:
        assert read_request(role, call) == request
    else:
        with pytest.raises(NotAllowed if role == "viewer" else UsageProblem, match=name):
            read_request(role, call)
