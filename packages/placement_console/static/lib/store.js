// The state of the cluster, as the feed sends it. Listeners get the names of the nodes that changed, or null for all.

export class Store {
  constructor() {
    this.nodes = new Map();
    this.groups = [];
    this.cluster = "";
    this.policy = "";
    this.pending = 0;
    this.generation = 0;
    this.ageSeconds = 0;
    this.status = "connecting";
    this.reason = "";
    this.isReport = false;
    this.time = "";
    this.listeners = new Set();
  }

  // Calls `listener(changed)` after each change, until the returned function is called.
  follow(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  // The clock of a report is that of its moment.
  now() {
    return this.isReport ? Date.parse(this.time) : Date.now();
  }

  state() {
    const { cluster, policy, groups, pending, generation, ageSeconds } = this;
    return { cluster, policy, groups, pending, generation, ageSeconds, nodes: [...this.nodes.values()] };
  }

  setState(state) {
    this.nodes = new Map(state.nodes.map((node) => [node.name, node]));
    this.cluster = state.cluster;
    this.policy = state.policy;
    this.takeHead(state);
    this.tell(null);
  }

  change(state) {
    const isNew = state.nodes.some((node) => !this.nodes.has(node.name));
    for (const name of state.gone) this.nodes.delete(name);
    for (const node of state.nodes) this.nodes.set(node.name, node);
    if (isNew) this.nodes = new Map([...this.nodes].sort(([a], [b]) => (a < b ? -1 : 1)));
    this.takeHead(state);
    this.tell(isNew || state.gone.length ? null : new Set(state.nodes.map((node) => node.name)));
  }

  takeHead(state) {
    this.groups = state.groups;
    this.pending = state.pending;
    this.generation = state.generation;
    this.ageSeconds = state.ageSeconds;
    this.status = "live";
    this.reason = "";
  }

  // `reason` is the server's for a connection that is lost.
  setStatus(status, ageSeconds = this.ageSeconds, reason = "") {
    this.status = status;
    this.reason = reason;
    this.ageSeconds = ageSeconds;
    this.tell(new Set());
  }

  tell(changed) {
    for (const listener of this.listeners) listener(changed);
  }
}
