"""A server on this machine that answers the few questions ``fetch_openml`` asks."""

import contextlib
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

from sklearn.datasets import _openml


def arff(X, y, *, class_values, class_first=False, nominal=()):
    """An ARFF file as OpenML keeps them; columns in ``nominal`` become nominal ones."""
    lines, columns = ["% a comment", "@RELATION set"], []
    for number, column in enumerate(X.T):
        values = [f"{value:.17g}" for value in column.tolist()]
        # In descending order, so that the code of a value is never the value itself.
        kinds = sorted(set(values), key=float, reverse=True)
        kind = f"{{{','.join(kinds)}}}" if number in nominal else "REAL"
        columns.append((f"@ATTRIBUTE V{number + 1} {kind}", values))
    place = 0 if class_first else len(columns)
    columns.insert(place, (f"@ATTRIBUTE Class {{{','.join(class_values)}}}", list(y)))
    rows = zip(*(values for _, values in columns), strict=True)
    lines += [line for line, _ in columns]
    return "\n".join([*lines, "@DATA", *(",".join(row) for row in rows)]) + "\n"


def answers_for(openml_id, text, root):
    """What OpenML would say about a set whose file has this text, by address."""
    data = text.encode()
    attributes = re.findall(r"@ATTRIBUTE (\S+) (\S+)", text)
    features = [
        {
            "index": str(index),
            "name": name,
            "data_type": "nominal" if kind.startswith("{") else "numeric",
            "is_target": str(name == "Class").lower(),
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for index, (name, kind) in enumerate(attributes)
    ]
    description = {
        "id": str(openml_id),
        "name": "set",
        "version": "1",
        "status": "active",
        "format": "ARFF",
        "file_id": str(openml_id),
        "url": f"{root}/data/v1/download/{openml_id}",
        "md5_checksum": hashlib.md5(data).hexdigest(),
        "description": "A set.",
        "default_target_attribute": "Class",
    }
    n_rows = len(text.partition("@DATA\n")[2].splitlines())
    qualities = [{"name": "NumberOfInstances", "value": str(float(n_rows))}]
    api = "/api/v1/json/data"
    return {
        f"{api}/{openml_id}": json.dumps({"data_set_description": description}).encode(),
        f"{api}/features/{openml_id}": json.dumps(
            {"data_features": {"feature": features}}
        ).encode(),
        f"{api}/qualities/{openml_id}": json.dumps(
            {"data_qualities": {"quality": qualities}}
        ).encode(),
        f"/data/v1/download/{openml_id}": data,
    }


class Server:
    """Its ``answers`` by address, and the ``asked`` addresses in order."""

    def __init__(self):
        self.answers, self.asked = {}, []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                data = server.answers.get(self.path)
                self.send_response(404 if data is None else 200)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *_):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}
        )
        self._thread.start()

    def offer(self, openml_id, text):
        self.answers |= answers_for(openml_id, text, self.root)

    def stop(self):
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
            self._http.server_close()


@contextlib.contextmanager
def openml_at_home(monkeypatch):
    """Within it ``fetch_openml`` asks a local server, and waits for nobody."""
    server = Server()
    for name, value in vars(_openml).copy().items():
        if isinstance(value, str) and re.match(r"https://[a-z.]*openml\.org", value):
            local = re.sub(r"https://[a-z.]*openml\.org", server.root, value)
            monkeypatch.setattr(_openml, name, local)
    monkeypatch.setattr(_openml, "time", SimpleNamespace(sleep=lambda seconds: None))
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(variable, "127.0.0.1")
    try:
        yield server
    finally:
        server.stop()
