// Requests to the server: one at a time, and of those that wait only the newest counts.

const SETTLE = 180; // milliseconds without a change after which a drag counts as at rest

export async function getJson(path, options) {
  const response = await fetch(path, options).catch(() => {
    throw new Error("The playground has been ended: start `iclda playground` again.");
  });
  const type = response.headers.get("content-type") ?? "";
  const said = type.includes("json") ? await response.json() : { message: await response.text() };
  if (!response.ok) throw new Error(said.message || `The server answered ${response.status}.`);
  return said;
}

export class Fitter {
  // `show` gets every answer with the request it answers; `fail` a message.
  constructor(show, fail) {
    Object.assign(this, { show, fail, waiting: null, isBusy: false, timer: 0 });
  }

  // `makeRequest(dragged)` is called when the request is sent, so that it has the newest points.
  ask(makeRequest, dragged) {
    clearTimeout(this.timer);
    this.waiting = { makeRequest, dragged, since: this.waiting?.since ?? performance.now() };
    if (!this.isBusy) this.run();
  }

  async run() {
    this.isBusy = true;
    while (this.waiting) {
      const { makeRequest, dragged, since } = this.waiting;
      this.waiting = null;
      const sent = performance.now();
      try {
        const found = await getJson("fit", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(makeRequest(dragged)),
        });
        this.show(found, { dragged, since, sent });
      } catch (error) {
        this.fail(error.message);
      }
      if (dragged && !this.waiting) {
        this.timer = setTimeout(() => this.ask(makeRequest, false), SETTLE);
      }
    }
    this.isBusy = false;
  }
}
