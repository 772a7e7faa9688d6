// One stream of events for all tabs of a browser, which allows six connections to a server. The tab that holds the lock
// reads the stream and passes its events on. Only a tab that is seen asks for the lock, so the next one takes over when it
// is hidden or closed, and no stream is open while all are hidden. A SharedWorker would need an exception from Trusted Types.
import { readEvents } from "./api.js";

const NAME = "placement-webhook feed";
const FIRST_WAIT_MILLISECONDS = 1000;
const MOST_WAIT_MILLISECONDS = 30_000;

// Fills `store` until the page is closed.
export function followFeed(store) {
  new Feed(store).turn();
}

class Feed {
  constructor(store) {
    this.store = store;
    this.channel = new BroadcastChannel(NAME);
    this.channel.addEventListener("message", ({ data }) => (data.event === "ask" ? this.answer() : document.hidden || this.take(data)));
    // The stream whose state the store has: changes of another one do not fit to it.
    this.known = "";
    this.latest = null;
    document.addEventListener("visibilitychange", () => this.turn());
  }

  turn() {
    this.seen?.abort();
    this.known = "";
    this.latest = null;
    if (document.hidden) return;
    const { signal } = (this.seen = new AbortController());
    this.channel.postMessage({ event: "ask" });
    navigator.locks.request(NAME, { signal }, () => this.lead(signal)).catch((error) => {
      if (!signal.aborted) throw error;
    });
  }

  // Reads streams, one after the other, while this tab is seen.
  async lead(signal) {
    let wait = FIRST_WAIT_MILLISECONDS;
    while (!signal.aborted) {
      const stream = crypto.randomUUID();
      try {
        await readEvents(signal, (event, text) => {
          wait = FIRST_WAIT_MILLISECONDS;
          this.pass({ stream, event, text });
        });
        this.pass({ event: "lost", text: "" });
      } catch (error) {
        if (!signal.aborted) this.pass({ event: "lost", text: error.message });
      }
      if (signal.aborted) return;
      await pause(wait, signal);
      wait = Math.min(2 * wait, MOST_WAIT_MILLISECONDS);
    }
  }

  pass(message) {
    this.latest = message;
    this.channel.postMessage(message);
    this.take(message);
  }

  // Gives a tab that is seen again the state and the status, if this one reads the stream.
  answer() {
    if (!this.latest) return;
    if (this.known) this.channel.postMessage({ stream: this.known, event: "state", text: JSON.stringify(this.store.state()) });
    if (["lost", "waiting"].includes(this.latest.event)) this.channel.postMessage(this.latest);
  }

  take({ stream, event, text }) {
    if (event === "state") {
      if (stream !== this.known) this.store.setState(JSON.parse(text));
      this.known = stream;
    } else if (event === "lost") this.store.setStatus("lost", this.store.ageSeconds, text);
    else if (event === "waiting") this.store.setStatus("waiting");
    else if (stream !== this.known) return;
    else if (event === "age") this.store.setStatus("live", Number(text));
    else if (event === "change") {
      performance.clearMarks("change");
      performance.mark("change");
      this.store.change(JSON.parse(text));
    }
  }
}

function pause(milliseconds, signal) {
  return new Promise((done) => {
    setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
  });
}
