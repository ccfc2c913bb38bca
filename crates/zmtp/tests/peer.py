"""A libzmq peer that does what it is told: one JSON command a line on stdin, one JSON answer a line on stdout."""

import base64
import json
import sys

import zmq

RECEIVE_TIMEOUT = 20_000
sockets: dict[str, zmq.Socket] = {}


def encode(frames):
    return [base64.b64encode(frame).decode() for frame in frames]


def open_socket(name, kind, options=None, bind=None, connect=None, subscribe=None):
    socket = sockets[name] = zmq.Context().socket(getattr(zmq, kind))
    socket.setsockopt(zmq.RCVTIMEO, RECEIVE_TIMEOUT)
    socket.setsockopt(zmq.LINGER, 2_000)
    for option, value in (options or {}).items():
        socket.setsockopt(getattr(zmq, option), value.encode() if isinstance(value, str) else value)
    for topic in subscribe or []:
        socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
    if bind:
        socket.bind(bind)
    if connect:
        socket.connect(connect)
    return {"endpoint": socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()}


def send(name, frames):
    sockets[name].send_multipart([base64.b64decode(frame) for frame in frames])
    return {}


def recv(name, timeout=RECEIVE_TIMEOUT):
    if not sockets[name].poll(timeout):
        return {"frames": None}
    return {"frames": encode(sockets[name].recv_multipart())}


def send_many(name, count, prefix=()):
    """Messages that number themselves."""
    head = [base64.b64decode(frame) for frame in prefix]
    for number in range(count):
        sockets[name].send_multipart([*head, str(number).encode()])
    return {}


def recv_many(name, count):
    """How many of `count` numbered messages came, and whether each was the expected one."""
    for number in range(count):
        if not sockets[name].poll(RECEIVE_TIMEOUT):
            return {"received": number}
        last = sockets[name].recv_multipart()[-1]
        if last != str(number).encode():
            return {"received": number, "instead": last.decode("latin-1")}
    return {"received": count}


def big_body(size):
    return bytes(range(256)) * (size // 256)


def send_big(name, size):
    sockets[name].send_multipart([big_body(size)], copy=False)
    return {}


def recv_big(name, size):
    return {"intact": sockets[name].recv_multipart()[-1] == big_body(size)}


def echo(name, count):
    for _ in range(count):
        sockets[name].send_multipart(sockets[name].recv_multipart())
    return {}


def close(name, linger=2_000):
    socket = sockets.pop(name)
    socket.close(linger=linger)
    socket.context.term()  # waits until its address is free
    return {}


COMMANDS = {
    command.__name__: command
    for command in (open_socket, send, recv, send_many, recv_many, send_big, recv_big, echo, close)
}

for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(COMMANDS[request.pop("do")](**request)), flush=True)
