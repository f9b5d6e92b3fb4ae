#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small HTTP server for the tests of the webhook sink: appends each request to a file, then answers.

    receiver.py PORT FILE [CERTIFICATE KEY]

Prints "ready PORT". A line of the file is one request as JSON: when it came, its path, headers, body (base64), the status
that it got, and which keys were being answered at that moment. The query of the request's path says how it is answered:

    status=429          instead of 200
    times=2             only the first two requests to this path; then 200
    only=TEXT           only requests with TEXT in their body; others get 200
    retry-after=3       a header
    location=/else      a header
    body=100000         so many bytes as the answer's body
    echo=1              the request's Authorization as the answer's body; echo=path: what was asked for
    never=1             no answer, until the client goes away
    together=3          no answer until three requests were there at the same time
"""
import base64
import http.server
import json
import os
import ssl
import sys
import threading
import urllib.parse


class State:
    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.counts = {}
        self.inside = []  # keys
        self.most = 0
        self.connections = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    state = None

    def setup(self):
        super().setup()
        with self.state.lock:
            self.state.connections += 1
            self.connection_number = self.state.connections

    def log_message(self, *_):
        pass

    def do_POST(self):
        state = self.state
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        key = self.headers.get("ce-partitionkey", "")
        with state.lock:
            count = state.counts[self.path] = state.counts.get(self.path, 0) + 1
            special = count <= int(query.get("times", 1 << 60)) and query.get("only", "").encode() in body
            status = int(query.get("status", 200)) if special else 200
            line = {
                "path": self.path, "status": status, "beside": list(state.inside), "connection": self.connection_number,
                "headers": [[name.lower(), value] for name, value in self.headers.items()],
                "body": base64.b64encode(body).decode(),
            }
            os.write(state.file, (json.dumps(line) + "\n").encode())
            state.inside.append(key)
            state.most = max(state.most, len(state.inside))
            state.changed.notify_all()
            together = int(query.get("together", 0))
            state.changed.wait_for(lambda: state.most >= together, timeout=20)
        try:
            if special and "never" in query:
                self.close_connection = True
                self.connection.recv(1)  # until the client goes away
                return
        except OSError:
            return
        finally:
            with state.lock:  # before the client can know of an answer: its next request is not beside this one
                state.inside.remove(key)
        self.answer(status, query if special else {})

    def answer(self, status, query):
        body = b"x" * int(query.get("body", 0))
        if "echo" in query:
            asked = self.path if query["echo"] == "path" else self.headers.get("Authorization", "nothing")
            body = ("you have sent " + asked).encode()
        self.send_response(status)
        for name in ("Retry-After", "Location"):
            if name.lower() in query:
                self.send_header(name, query[name.lower()])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass


def main():
    Handler.state = State(sys.argv[2])
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    if len(sys.argv) > 3:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[3], sys.argv[4])
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print("ready", server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
