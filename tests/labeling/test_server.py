"""The server of the labeling page: rows, answers, going back, new classes, files."""

import http.client
import json
import threading
import time
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("uvicorn", reason="the page needs iclda[playground]")

from iclda._local_server import ADDRESS, bind, make_server
from iclda.labeling.pool import Pool
from iclda.labeling.rounds import ask_for_labels
from iclda.labeling.server import labeling_site
from iclda.labeling.session import LabelingSession
from iclda.labeling.shown import ShownRows

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


class Page:
    """What a browser would send and read."""

    def __init__(self, folder, n=60, images=None):
        rng = np.random.default_rng(0)
        self.truth = np.array(["cat", "dog"], dtype=object)[np.arange(n) % 2]
        features = rng.normal(size=(n, 4)) + 4 * (np.arange(n) % 2)[:, None]
        np.save(folder / "features.npy", features)
        images = folder / "images" if images is None else images
        images.mkdir(exist_ok=True)
        for k in range(n):
            (images / f"{k:03d}.png").write_bytes(PIXEL)
        self.path = folder / "to_label.csv"
        pool = Pool(folder / "features.npy")
        self.session = LabelingSession(pool, ShownRows(pool, str(images)), self.path)

    def __enter__(self):
        self.listening = bind(0)
        self.server, address = make_server(self.listening, labeling_site(self.session))
        self.address = urlsplit(address)
        self.thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self.listening]}
        )
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.should_exit = True
        self.thread.join()
        self.listening.close()

    def request(self, path, sent=None):
        connection = http.client.HTTPConnection(ADDRESS, self.address.port, timeout=60)
        body = None if sent is None else json.dumps(sent)
        connection.request(
            "GET" if sent is None else "POST", self.address.path + path, body
        )
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, response.headers, content

    def send(self, path, **sent):
        status, _, content = self.request(path, sent)
        assert status == 200, content
        return json.loads(content)

    def state(self):
        return json.loads(self.request("state")[2])

    def answer_truly(self):
        state = self.state()
        row = state["row"]
        return self.send("answer", id=row["id"], label=self.truth[row["position"]])

    def settle(self):
        while (state := self.state())["is_fitting"]:
            time.sleep(0.05)
        return state

    def written(self):
        frame = pd.read_csv(self.path, dtype=str, keep_default_na=False)
        return dict(zip(frame["row"], frame["label"], strict=True))


@pytest.fixture
def page(tmp_path):
    with Page(tmp_path) as page:
        yield page


def test_rows_come_in_the_order_of_the_file_and_answers_are_written_at_once(page):
    ids = page.session.answers.open_ids
    assert len(ids) == 20
    for id in ids[:3]:
        assert page.state()["row"]["id"] == id
        page.send("answer", id=id, label=f" {page.truth[int(id)]} ")
        assert page.written()[id] == page.truth[int(id)]


def test_back_shows_the_row_before_with_its_class_which_another_answer_replaces(page):
    first, second = page.session.answers.open_ids[:2]
    page.send("answer", id=first, label="cat")
    state = page.send("back")
    assert (state["row"]["id"], state["label"]) == (first, "cat")
    state = page.send("answer", id=first, label="dog")
    assert state["row"]["id"] == second
    assert page.written()[first] == "dog"


def test_a_skipped_row_stays_open_and_comes_again_when_it_is_called(page):
    first, second = page.session.answers.open_ids[:2]
    state = page.send("skip", id=first)
    assert (state["row"]["id"], state["n_skipped"]) == (second, 1)
    assert page.written()[first] == ""
    assert page.send("again")["row"]["id"] == first


def test_a_class_in_another_spelling_is_the_one_that_exists(page):
    first, second = page.session.answers.open_ids[:2]
    page.send("answer", id=first, label="Cat")
    state = page.send("answer", id=second, label="cat ")
    assert state["classes"] == [{"name": "Cat", "count": 2, "key": "1"}]


def test_a_row_of_none_of_the_classes_is_answered_without_a_new_class(page):
    first, second, third = page.session.answers.open_ids[:3]
    page.send("answer", id=first, label="cat")
    none = page.state()["none"]
    state = page.send("answer", id=second, label=none)
    assert page.written()[second] == none == "none of these"
    assert [each["name"] for each in state["classes"]] == ["cat"]
    assert (state["n_labeled"], state["n_none"]) == (1, 1)
    assert state["row"]["id"] == third
    state = page.send("back")
    assert (state["row"]["id"], state["label"]) == (second, none)
    # It can be kept, or get a class after all.
    assert page.send("skip", id=second)["n_none"] == 1
    page.send("back")
    assert page.send("answer", id=second, label="cat")["n_none"] == 0
    # Whoever types it means the same.
    assert page.send("answer", id=third, label="None of  these")["n_none"] == 1


def test_a_class_of_one_row_can_be_spelled_anew(page):
    first = page.session.answers.open_ids[0]
    page.send("answer", id=first, label="caT")
    page.send("back")
    assert page.send("answer", id=first, label="cat")["classes"] == [
        {"name": "cat", "count": 1, "key": "1"}
    ]
    assert page.written()[first] == "cat"


@pytest.mark.parametrize(
    ("path", "sent", "message"),
    [
        (
            "answer",
            {"id": "999", "label": "cat"},
            "does not ask for a row with row = '999'",
        ),
        ("answer", {"id": "0", "label": "  "}, "must have 1 to 100 characters, got 0"),
        ("answer", {"id": "0"}, "must have 1 to 100 characters, got 0"),
        ("skip", {"id": "999"}, "does not ask for a row with row = '999'"),
        ("jump", {"id": "../x"}, "has no row with row = '../x'"),
    ],
)
def test_what_cannot_be_done_gets_a_sentence_and_changes_nothing(
    page, path, sent, message
):
    before = page.path.read_bytes()
    status, _, content = page.request(path, sent)
    assert status == 400
    assert message in json.loads(content)["message"]
    assert page.path.read_bytes() == before


def test_only_the_files_of_rows_are_served(page, tmp_path):
    (tmp_path / "secret.png").write_bytes(b"secret")
    status, headers, content = page.request("file/3")
    assert (status, headers["content-type"], content) == (200, "image/png", PIXEL)
    assert "media-src 'self'" in headers["content-security-policy"]
    for path in (
        "../secret.png",
        "..%2Fsecret.png",
        "%2e%2e/secret.png",
        "60",
        "-1",
        "003.png",
    ):
        status, _, content = page.request(f"file/{path}")
        assert status in (403, 404)
        assert content != b"secret"


def test_two_of_ten_rows_are_drawn_at_random_and_the_error_is_the_one_that_ask_states(
    page,
):
    for _ in range(58):
        page.answer_truly()
        state = page.settle()
        if page.session.findings.error is None:
            n = len(
                {*page.session.answers.ids("random")} & {*page.session.answers.labels}
            )
            assert n < 8
            assert f"there are {n}." in state["error"]["text"]
    frame = page.session.answers.frame
    assert frame["how"].tolist()[:20] == ["chosen"] * 20
    assert frame["how"].tolist()[20:60] == (["random"] * 2 + ["chosen"] * 8) * 4
    stated = ask_for_labels(
        page.session.pool.file.path, 0, labels=page.path
    ).progress.estimate
    assert stated.n_rows == 8
    assert page.session.findings.error == stated
    assert (
        state["error"]["text"]
        .replace("\N{NO-BREAK SPACE}", " ")
        .startswith(stated.range)
    )


def test_all_rows_can_be_labeled_and_then_none_is_left(page):
    for _ in range(60):
        page.settle()
        page.answer_truly()
    state = page.settle()
    assert (state["row"], state["message"]) == (None, "All 60 rows are labeled.")
    assert state["unsure"] == []


def test_the_rows_the_model_is_least_sure_of_can_be_labeled_now(page):
    for _ in range(4):
        page.answer_truly()
    unsure = page.settle()["unsure"][0]
    assert [name for name, _ in unsure["shares"]] in (["cat", "dog"], ["dog", "cat"])
    assert page.send("jump", id=unsure["id"])["row"]["id"] == unsure["id"]
    assert page.written()[unsure["id"]] == ""


def test_what_another_program_wrote_into_the_answers_is_kept(page):
    first, second = page.session.answers.open_ids[:2]
    frame = pd.read_csv(page.path, dtype=str, keep_default_na=False)
    frame.loc[frame["row"] == second, "label"] = "bird"
    frame.to_csv(page.path, index=False)
    page.send("answer", id=first, label="cat")
    assert (page.written()[first], page.written()[second]) == ("cat", "bird")


def test_answers_are_kept_when_the_rows_change(page):
    np.save(page.session.pool.file.path, np.zeros((61, 4)))
    page.answer_truly()
    page.answer_truly()
    state = page.settle()
    assert "has changed since it was opened: stop `iclda label`" in state["problem"]
    assert state["n_labeled"] == 2


def test_classes_have_keys_and_a_digit_is_its_own(page):
    for label in ("1", "0", "ten"):
        row = page.state()["row"]
        state = page.send("answer", id=row["id"], label=label)
    keys = {each["name"]: each["key"] for each in state["classes"]}
    assert keys == {"1": "1", "0": "0", "ten": "t"}


def label_some(page, n=30, wrong=7):
    """Answer rows truly, but one of them with the other class; return its id."""
    wrong_id = None
    for k in range(n):
        state = page.settle()
        truth = page.truth[state["row"]["position"]]
        if k == wrong:
            wrong_id = state["row"]["id"]
            truth = "cat" if truth == "dog" else "dog"
        page.send("answer", id=state["row"]["id"], label=truth)
    page.settle()
    return wrong_id


def test_a_label_that_held_out_fits_contradict_is_listed_until_it_is_changed(page):
    wrong_id = label_some(page)
    [listed] = page.state()["suspicious"]
    truth = page.truth[int(wrong_id)]
    assert (listed["id"], listed["predicted"]) == (wrong_id, truth)
    assert listed["label"] != truth
    assert 0.5 < listed["share"] <= 1
    state = page.send("jump", id=wrong_id)
    assert (state["row"]["id"], state["label"]) == (wrong_id, listed["label"])
    assert page.send("answer", id=wrong_id, label=truth)["suspicious"] == []
    assert page.settle()["suspicious"] == []
    assert page.written()[wrong_id] == truth


def test_a_listed_label_that_is_kept_is_not_listed_again(page):
    wrong_id = label_some(page)
    label = page.written()[wrong_id]
    page.send("jump", id=wrong_id)
    state = page.send("skip", id=wrong_id)
    assert (state["suspicious"], state["n_skipped"]) == ([], 0)
    assert page.written()[wrong_id] == label
    page.answer_truly()
    assert page.settle()["suspicious"] == []


def test_a_row_labeled_in_its_own_file_is_looked_at_again_and_stays_a_random_one(
    tmp_path,
):
    rng = np.random.default_rng(0)
    truth = np.array(["cat", "dog"])[np.arange(60) % 2]
    frame = pd.DataFrame(rng.normal(size=(60, 3)) + 4 * (np.arange(60) % 2)[:, None])
    frame.columns = ["x", "y", "z"]
    frame["kind"] = np.where(np.arange(60) < 24, truth, None)
    frame.loc[5, "kind"] = "cat"
    frame.to_csv(tmp_path / "rows.csv", index=False)
    path = tmp_path / "to_label.csv"
    pool = Pool(tmp_path / "rows.csv", target="kind")
    session = LabelingSession(pool, ShownRows(pool), path)
    while (task := session.next_task()) is not None:
        session.accept(task, *session.compute(task))
    [listed] = session.state()["suspicious"]
    # The names of the columns are row 1 of the file.
    wrong = {"id": "7", "title": "Row 7", "label": "cat", "predicted": "dog"}
    assert wrong.items() <= listed.items()
    n_open = len(session.answers.open_ids)
    session.jump("7")
    # It is written with the class that it has, and is not open.
    assert (session.answers.labels["7"], "7" in session.answers.ids("random")) == (
        "cat",
        True,
    )
    assert len(session.answers.open_ids) == n_open
    session.answer("7", "dog")
    assert session.project.table.labels[5] == "dog"
    assert session.project.table.is_random[5]
