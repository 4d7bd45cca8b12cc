"""The server: whom it answers, with which headers, and that no request breaks it."""

import http.client
import json
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn", reason="the playground needs iclda[playground]")

from iclda import playground
from iclda._local_server import ADDRESS, bind, make_server
from iclda.playground import playground_site
from iclda.playground.scenes import SHOWN_METHODS
from iclda.playground.toys import PROBLEMS, draw_toy_scene


@pytest.fixture(scope="module")
def address():
    with bind(0) as listening:
        server, address = make_server(listening, playground_site())
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield urlsplit(address)
        server.should_exit = True
        thread.join()


@pytest.fixture
def ask(address):
    """Send a request; its status, headers and content."""

    def send(path="", method="GET", body=None, host=None, token=None):
        connection = http.client.HTTPConnection(ADDRESS, address.port, timeout=60)
        base = address.path if token is None else f"/{token}/"
        connection.request(
            method,
            base + path,
            body,
            {"Host": host or address.netloc, "Connection": "close"},
        )
        response = connection.getresponse()
        content = response.read().decode()
        connection.close()
        return response.status, response.headers, content

    return send


TOYS = {toy.name: toy for toy in PROBLEMS}
CHOICES = {"methods": ["em"], "shown": "em", "shrinkage": 0, "dragged": True}


def fit(ask, sent):
    body = sent if isinstance(sent, (bytes, str)) else json.dumps(sent)
    status, _, content = ask("fit", "POST", body)
    return status, json.loads(content)


def test_the_page_and_all_its_files_are_served_with_their_types(ask):
    folder = Path(playground.__file__).parent / "static"
    types = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
    for path in folder.iterdir():
        name = "" if path.name == "index.html" else path.name
        status, headers, content = ask(name)
        assert status == 200, path.name
        assert headers["content-type"].startswith(types[path.suffix])
        assert content == path.read_text()


def test_the_page_knows_methods_classes_problems_and_limits(ask):
    about = json.loads(ask("about.json")[2])
    names = [method["name"] for method in about["methods"]]
    assert names == [method.name for method in SHOWN_METHODS]
    assert [toy["name"] for toy in about["toys"]] == [toy.name for toy in PROBLEMS]
    assert about["classes"] == ["A", "B", "C", "D"]


def test_nothing_from_elsewhere_may_be_loaded_or_run(ask):
    methods = {"": "GET", "main.js": "GET", "fit": "POST", "nonesuch": "GET"}
    for path, method in methods.items():
        headers = ask(path, method, "{}" if method == "POST" else None)[1]
        policy = headers["content-security-policy"]
        sources = "default-src 'none'; script-src 'self'; style-src 'self'"
        assert policy.startswith(sources)
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("token", ["", "x", "A" * 22, "%00", "static", ".."])
def test_without_the_token_everything_is_refused(ask, token):
    for path in ("", "main.js", "about.json"):
        status, _, content = ask(path, token=token)
        assert status == 403
        assert "iclda playground" in content


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "www.localhost", "[::1]:{port}"]
)
def test_another_host_is_refused_even_with_the_token(ask, address, host):
    for path, method in (("", "GET"), ("fit", "POST")):
        status, _, content = ask(path, method, host=host.format(port=address.port))
        assert (status, content) == (400, "Invalid host header")


def test_fits_and_toy_problems_come_as_json(ask, address):
    status, _, content = ask("toys/four/2", host=f"localhost:{address.port}")
    assert (status, json.loads(content)) == (200, draw_toy_scene(TOYS["four"], 2))
    sent = {**draw_toy_scene(TOYS["between"], 0, 50), **CHOICES}
    status, found = fit(ask, sent)
    assert status == 200
    assert len(found["fits"]["em"]["shares"]) == 50


BAD = [b"{", b"[" * 100_000, b"[]", b"{}", b'{"labeled": [[0]]}', b'{"labeled": 3}']


@pytest.mark.parametrize("body", BAD, ids=lambda body: body[:20].decode())
def test_what_is_no_scene_gets_a_sentence_and_never_a_failure(ask, body):
    status, found = fit(ask, body)
    assert status == 400
    assert found["message"].startswith("This is no scene of the playground: ")


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        ("GET", "toys/nonesuch/1", {404}),
        ("GET", "toys/four/-1", {404}),
        ("GET", "fit", {404, 405}),
        ("PUT", "", {405}),
        ("GET", "%2e%2e/server.py", {403, 404}),
    ],
)
def test_other_ways_to_ask_and_other_files_are_refused(ask, method, path, statuses):
    assert ask(path, method)[0] in statuses


def test_requests_side_by_side_are_all_answered(ask):
    drawn = draw_toy_scene(TOYS["three"], 0, 200)
    sent = {**drawn, **CHOICES, "methods": ["iclda", "em"]}
    expected = fit(ask, sent)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(fit(ask, sent))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
