"""jupyter_client and its friends, doing what they are told: one JSON command a line on stdin, one answer a line on stdout."""

import base64
import json
import sys

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.session import Session
from jupyter_server.services.kernels.connection.base import (
    deserialize_binary_message,
    deserialize_msg_from_ws_v1,
    serialize_binary_message,
    serialize_msg_to_ws_v1,
)

TIMEOUT = 30
sessions: dict[str, Session] = {}
client = BlockingKernelClient()


def to_text(frames):
    return [base64.b64encode(bytes(frame)).decode() for frame in frames]


def to_bytes(texts):
    return [base64.b64decode(text) for text in texts]


def session(key):
    return sessions.setdefault(key, Session(key=key.encode(), username="someone"))


def plain(message):
    """A message as JSON, its dates as text again."""
    message = {**message, "buffers": to_text(message["buffers"])}
    return json.loads(json.dumps(message, default=str))


def serialize(key, msg_type, content, metadata, identities, buffers):
    message = session(key).msg(
        msg_type, content=content, metadata=metadata, parent=session(key).msg_header("cause")
    )
    frames = session(key).serialize(message, ident=to_bytes(identities)) + to_bytes(buffers)
    return {"frames": to_text(frames), "msg_id": message["header"]["msg_id"]}


def deserialize(key, frames):
    identities, rest = session(key).feed_identities(to_bytes(frames))
    return {"identities": to_text(identities), **plain(session(key).deserialize(rest))}


def websocket_v1(frame):
    """Reads a v1 frame, and writes it again."""
    channel, parts = deserialize_msg_from_ws_v1(base64.b64decode(frame))
    again = serialize_msg_to_ws_v1(parts, channel)
    return {"channel": channel, "parts": to_text(parts), "again": to_text([again])[0]}


def websocket_json(frame):
    """Reads a binary frame of the older framing, and writes it again."""
    message = deserialize_binary_message(base64.b64decode(frame))
    again = to_text([serialize_binary_message(message)])[0]
    return {"message": plain(message), "again": again}


def connect(connection_file):
    client.load_connection_file(connection_file)
    client.start_channels()
    client.wait_for_ready(timeout=TIMEOUT)
    return client.kernel_info(reply=True, timeout=TIMEOUT)["content"]


def execute(code, answer=None):
    """Runs a cell the way nbclient does; everything that came, in order, and the reply."""
    outputs = []
    reply = client.execute_interactive(
        code,
        allow_stdin=answer is not None,
        timeout=TIMEOUT,
        output_hook=lambda message: outputs.append([message["msg_type"], message["content"]]),
        stdin_hook=lambda _request: client.input(answer),
    )
    return {"outputs": outputs, "reply": reply["content"]}


def begin_execute(code):
    return {"msg_id": client.execute(code)}


def control_call(msg_type, content):
    """Sends a request on control; its reply."""
    message = client.session.msg(msg_type, content)
    client.control_channel.send(message)
    while True:
        reply = client.get_control_msg(timeout=TIMEOUT)
        if reply["parent_header"]["msg_id"] == message["header"]["msg_id"]:
            return {"msg_id": message["header"]["msg_id"], **reply["content"]}


def shell_reply(msg_id):
    while True:
        reply = client.get_shell_msg(timeout=TIMEOUT)
        if reply["parent_header"].get("msg_id") == msg_id:
            return reply["content"]


def idle_of(msg_id):
    """What came on iopub for a request, up to its idle."""
    types = []
    while True:
        message = client.get_iopub_msg(timeout=TIMEOUT)
        if message["parent_header"].get("msg_id") != msg_id:
            continue
        types.append(message["msg_type"])
        if message["content"].get("execution_state") == "idle":
            return {"types": types}


def call(method, arguments):
    return getattr(client, method)(**arguments, reply=True, timeout=TIMEOUT)["content"]


def is_beating():
    return {"beating": client.is_alive() and client.hb_channel.is_beating()}


COMMANDS = {
    command.__name__: command
    for command in (
        serialize,
        deserialize,
        websocket_v1,
        websocket_json,
        connect,
        execute,
        begin_execute,
        control_call,
        shell_reply,
        idle_of,
        call,
        is_beating,
    )
}

for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(COMMANDS[request.pop("do")](**request), default=str), flush=True)
