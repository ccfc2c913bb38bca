// The page's end of the bridge between a kernel and the notebook that is open in JupyterLab or Notebook 7.
//
// The kernel opens a comm with the target `cellwright.notebook`; each page with this code answers with `hello`. Every
// request names one page (`to`), so that two tabs never do the same thing twice. Requests are data: the kernel cannot
// make this page run code of its choice. See docs/live-notebook.md.
'use strict';
const cellwrightPage = (() => {
  const TARGET = 'cellwright.notebook';
  const VERSION = 1;
  // Characters of a reply in one message: servers refuse messages of 10 MB.
  const PIECE = 400000;
  // A change must come this soon after the read that it is based on. One that was held up on its way is refused: its
  // sender has given it up.
  const FRESH = 8000;
  // When a page looks whether its file was written while the page loaded it.
  const LOOKS = [0, 5000];
  // A person who pressed a key this recently is typing.
  const TYPING = 1500;
  const WIDGET = 'application/vnd.jupyter.widget-view+json';
  // What stands for the widgets of a question where there are none: see `view/cards.rs` and `view/forms.rs`.
  const QUESTIONS = ['[buttons: allow or refuse]', '[a form to fill in]'];
  const STYLE = `
    .cellwright-touched { box-shadow: inset 3px 0 0 var(--jp-brand-color1, #1976d2); }
    .cellwright-status { margin: 0 6px; padding: 0 8px; border: 1px solid var(--jp-border-color1, #bbb);
      border-radius: 9px; background: none; color: var(--jp-ui-font-color1, inherit); font-size: 11px;
      line-height: 18px; cursor: pointer; white-space: nowrap; align-self: center; }
    .cellwright-left { opacity: 0.6; }`;

  const bridges = new Map(); // by the context that all views of a notebook share

  class Refusal extends Error {
    constructor(kind, details) {
      super(kind);
      this.details = { kind, ...details };
    }
  }

  const refuse = (kind, details) => {
    throw new Refusal(kind, details);
  };

  class Bridge {
    constructor(context, actions, app) {
      this.context = context;
      this.actions = actions;
      this.app = app;
      this.panels = new Set();
      this.comm = null;
      this.left = false;
      this.answers = new Map();
      this.pressed = { time: -Infinity, id: null };
      this.sessionContext = context.sessionContext;
      this.sessionContext.kernelChanged.connect(this.register, this);
      this.sessionContext.statusChanged.connect(this.follow, this);
      this.context.disposed.connect(this.end, this);
      this.register();
      for (const time of LOOKS) setTimeout(() => this.look().catch(() => {}), time);
    }

    add(panel) {
      if (this.panels.has(panel)) return;
      this.panels.add(panel);
      const pressed = event => {
        // Moving about is not typing.
        const types = event.type !== 'keydown' || event.key.length === 1 || /^(Enter|Backspace|Delete)$/.test(event.key);
        if (types && panel.content.mode === 'edit') {
          this.pressed = { time: performance.now(), id: panel.content.activeCell?.model.id ?? null };
        }
      };
      for (const kind of ['keydown', 'input', 'compositionupdate', 'paste']) {
        panel.content.node.addEventListener(kind, pressed, true);
      }
      panel.content.activeCellChanged.connect((_, cell) => cell?.node?.classList.remove('cellwright-touched'));
      panel.disposed.connect(() => {
        this.panels.delete(panel);
        if (this.panels.size === 0) this.end();
      });
      this.show();
    }

    // The kernel does not see a page that is still loading, and may have written the file that this page has read.
    async look() {
      const contents = this.app.serviceManager?.contents;
      const isOpen = () => !this.context.isDisposed && !this.context.model.dirty && this.context.contentsModel;
      if (!contents || !isOpen()) return;
      const file = await contents.get(this.context.path, { content: false });
      const time = Date.parse(file.last_modified);
      if (isOpen() && time > Date.parse(this.context.contentsModel.last_modified)) await this.context.revert();
    }

    get panel() {
      const panels = [...this.panels].filter(panel => !panel.isDisposed);
      return panels.find(panel => panel.isVisible) ?? panels[0] ?? refuse('closed');
    }

    get kernel() {
      return this.sessionContext.session?.kernel ?? null;
    }

    get client() {
      return this.kernel?.clientId ?? '';
    }

    // A kernel that has ended cannot take its questions back: their buttons would stay and lead nowhere.
    follow(_, status) {
      if (!/^(restarting|autorestarting|terminating|dead)$/.test(status)) return;
      const { cells } = this.context.model;
      for (let number = 0; number < cells.length; number++) {
        const { outputs } = cells.get(number);
        for (let at = 0; at < (outputs?.length ?? 0); at++) {
          const { data } = outputs.get(at);
          if (!(WIDGET in data) || !QUESTIONS.includes(data['text/plain'])) continue;
          const text = 'not answered: the kernel was restarted';
          outputs.set(at, { output_type: 'display_data', data: { 'text/plain': text }, metadata: {} });
        }
      }
    }

    register() {
      this.comm = null;
      this.show();
      this.kernel?.registerCommTarget(TARGET, (comm, message) => this.opened(comm, message.content.data));
    }

    opened(comm, data) {
      const before = this.comm;
      this.comm = comm;
      if (before && before !== comm) before.dispose();
      this.events = data.events === true;
      comm.onMsg = message => this.received(comm, message.content.data);
      comm.onClose = () => {
        if (this.comm === comm) this.comm = null;
        this.show();
      };
      this.watch();
      const hello = { ev: 'hello', v: VERSION, left: this.left, state: this.state() };
      this.send(comm, { ...hello, app: `${this.app.name} ${this.app.version}` });
      this.show();
    }

    send(comm, data) {
      comm.send({ client: this.client, ...data });
    }

    end() {
      bridges.delete(this.context);
      if (this.comm && !this.comm.isDisposed) this.bye();
      this.comm = null;
    }

    bye() {
      try {
        this.send(this.comm, { ev: 'bye', left: this.left });
      } catch {
        // The connection went before the page.
      }
    }

    // The person closes the bridge, or opens it again.
    leave() {
      this.left = !this.left;
      if (this.comm) {
        if (this.left) this.bye();
        else this.send(this.comm, { ev: 'hello', v: VERSION, left: false, state: this.state(), app: this.app.name });
      }
      for (const panel of this.panels) {
        for (const node of panel.content.node.querySelectorAll('.cellwright-touched')) {
          node.classList.remove('cellwright-touched');
        }
      }
      this.show();
    }

    // The sign that an agent can change this notebook.
    show() {
      for (const panel of this.panels) {
        let sign = panel.toolbar.node.querySelector('.cellwright-status');
        if (!this.comm) {
          sign?.remove();
          continue;
        }
        if (!sign) {
          sign = document.createElement('button');
          sign.className = 'cellwright-status';
          sign.addEventListener('click', () => this.leave());
          panel.toolbar.node.appendChild(sign);
        }
        sign.classList.toggle('cellwright-left', this.left);
        sign.textContent = this.left ? 'Agent: off' : 'Agent: on';
        sign.title = this.left
          ? 'The agent cannot change this notebook. Click to let it.'
          : 'The agent can read and change this notebook. Click to stop that.';
      }
    }

    watch() {
      if (!this.events || this.watched) return;
      this.watched = true;
      let timer = null;
      const kinds = new Set();
      const tell = kind => {
        kinds.add(kind);
        timer ??= setTimeout(() => {
          timer = null;
          const kind = [...kinds];
          kinds.clear();
          if (this.comm && !this.left) this.send(this.comm, { ev: 'changed', kind, state: this.state() });
        }, 250);
      };
      this.context.model.contentChanged.connect(() => tell('content'));
      this.context.saveState?.connect((_, state) => state.startsWith('completed') && tell('saved'));
      this.panel.content.activeCellChanged.connect(() => tell('active'));
    }

    state() {
      const { content } = this.panel;
      return {
        path: this.context.path,
        dirty: this.context.model.dirty,
        readOnly: this.context.model.readOnly,
        cells: content.model.cells.length,
        activeCell: content.activeCell?.model.id ?? null,
        cursor: content.activeCell?.editor?.getCursorPosition() ?? null,
        mode: content.mode,
        visible: this.panel.isVisible && document.visibilityState === 'visible',
        focused: document.hasFocus() && content.node.contains(document.activeElement),
      };
    }

    async received(comm, data) {
      if (data.to !== this.client) return;
      let answer = this.answers.get(data.id);
      if (!answer) {
        answer = this.answer(data);
        this.answers.set(data.id, answer);
        if (this.answers.size > 64) this.answers.delete(this.answers.keys().next().value);
      }
      const text = JSON.stringify(await answer);
      const pieces = Math.max(1, Math.ceil(text.length / PIECE));
      for (let piece = 0; piece < pieces; piece++) {
        const part = text.slice(piece * PIECE, (piece + 1) * PIECE);
        this.send(comm, { re: data.id, piece, pieces, text: part });
      }
    }

    async answer(data) {
      try {
        if (this.left) refuse('left');
        const operation = OPERATIONS[data.op] ?? refuse('unknown', { op: data.op });
        return { ok: true, result: await operation(this, data), state: this.state() };
      } catch (error) {
        const refused = error instanceof Refusal;
        return { ok: false, error: refused ? error.details : { kind: 'failed', message: `${error}` } };
      }
    }
  }

  const shared = bridge => bridge.context.model.sharedModel;
  const place = (bridge, id) => shared(bridge).cells.findIndex(cell => cell.id === id);
  const widget = (bridge, id) => bridge.panel.content.widgets.find(widget => widget.model.id === id);

  const isRunning = (bridge, id) => {
    const cell = widget(bridge, id);
    return cell?.model.type === 'code' && cell.inputArea?.promptNode?.textContent?.includes('*') === true;
  };

  const isTyped = (bridge, id) => {
    const { content } = bridge.panel;
    const { time, id: pressed } = bridge.pressed;
    const isActive = content.mode === 'edit' && content.activeCell?.model.id === id;
    return isActive && pressed === id && performance.now() - time < TYPING;
  };

  // Undo managers merge what comes within half a second. One step of the agent is one step to undo.
  const separate = bridge => {
    const model = shared(bridge);
    model.undoManager?.stopCapturing();
    for (const cell of model.cells) cell.undoManager?.stopCapturing();
  };

  const check = (bridge, step, known) => {
    for (const id of [step.id, step.after]) {
      const isMissing = id != null && !known.has(id) && place(bridge, id) < 0;
      if (isMissing) refuse('stale', { id, missing: true });
    }
    if (step.op === 'insert') {
      // An answer was lost, and the change is sent again.
      if (known.has(step.cell.id) || place(bridge, step.cell.id) >= 0) refuse('stale', { id: step.cell.id });
      known.add(step.cell.id);
    }
    if (step.id == null) return;
    const cell = shared(bridge).cells[place(bridge, step.id)];
    if ('expect' in step && cell.getSource() !== step.expect) {
      refuse('stale', { id: step.id, present: cell.getSource() });
    }
    if (step.op === 'move') return;
    const locked = step.op === 'remove' ? 'deletable' : 'editable';
    if (cell.getMetadata()[locked] === false && step.op !== 'outputs') refuse('locked', { id: step.id });
    if (isTyped(bridge, step.id)) refuse('typing', { id: step.id });
    if (isRunning(bridge, step.id)) refuse('running', { id: step.id });
  };

  const arrange = (bridge, step) => {
    const model = shared(bridge);
    const after = step.after == null ? 0 : place(bridge, step.after) + 1;
    if (step.op === 'insert') model.insertCell(after, step.cell);
    if (step.op === 'remove') model.deleteCell(place(bridge, step.id));
    if (step.op === 'move') {
      const from = place(bridge, step.id);
      const to = from < after ? after - 1 : after;
      if (from !== to) model.moveCell(from, to);
    }
    if (step.op === 'replace') {
      const at = place(bridge, step.id);
      model.deleteCell(at);
      model.insertCell(at, step.cell);
    }
    if (step.op === 'metadata') model.setMetadata(step.metadata);
  };

  const rewrite = (bridge, step) => {
    const at = place(bridge, step.id);
    const cell = shared(bridge).cells[at];
    if (step.op === 'edit') {
      // The last range first, so that the places of the others stay true. The cursor stays in its line.
      cell.transact(() => {
        for (const [start, end, text] of [...step.edits].reverse()) cell.updateSource(start, end, text);
      });
    }
    if (step.op === 'outputs') {
      const model = bridge.context.model.cells.get(at);
      if (step.outputs.length === 0 && step.count == null && model.clearExecution) {
        model.clearExecution();
      } else {
        cell.setOutputs(step.outputs);
        cell.execution_count = step.count ?? null;
      }
    }
  };

  const outputs = (bridge, id) => {
    const model = bridge.context.model.cells.get(place(bridge, id));
    return { id, count: model.executionCount ?? null, outputs: model.outputs?.toJSON() ?? [], source: model.sharedModel.getSource() };
  };

  const found = (bridge, ids) => {
    for (const id of ids) if (place(bridge, id) < 0) refuse('stale', { id, missing: true });
    return ids;
  };

  const OPERATIONS = {
    state: () => ({}),

    read(bridge, { outputs }) {
      const notebook = bridge.context.model.toJSON();
      // Cells of old notebooks have ids here, although their files have none.
      const cells = notebook.cells.map((cell, at) => {
        // Trust is the server's affair: it takes the mark out of what it saves.
        const { trusted, ...metadata } = cell.metadata;
        const named = { ...cell, id: shared(bridge).cells[at].id, metadata };
        return outputs === false && cell.cell_type === 'code' ? { ...named, outputs: [] } : named;
      });
      const minor = Math.max(5, notebook.nbformat_minor);
      return { notebook: { ...notebook, cells, nbformat_minor: minor }, at: performance.now() };
    },

    change(bridge, { steps, at }) {
      if (!(Math.abs(performance.now() - at) < FRESH)) refuse('late');
      if (bridge.context.model.readOnly) refuse('readOnly');
      const known = new Set();
      for (const step of steps) check(bridge, step, known);
      const { content } = bridge.panel;
      const active = content.activeCell?.model.id;
      separate(bridge);
      // Each is a transaction of its own: the list of cells is brought up to date at its end. They are one step to undo.
      for (const step of steps) arrange(bridge, step);
      for (const step of steps) rewrite(bridge, step);
      separate(bridge);
      const stays = content.widgets.findIndex(widget => widget.model.id === active);
      if (stays >= 0 && stays !== content.activeCellIndex) content.activeCellIndex = stays;
      for (const step of steps) {
        const id = step.op === 'insert' ? step.cell.id : step.id;
        if (id != null && id !== active) widget(bridge, id)?.node.classList.add('cellwright-touched');
      }
      return {};
    },

    outputs: (bridge, { ids }) => found(bridge, ids).map(id => outputs(bridge, id)),

    async run(bridge, { ids, expect }) {
      const { content } = bridge.panel;
      found(bridge, ids).forEach((id, at) => {
        const present = shared(bridge).cells[place(bridge, id)].getSource();
        if (expect && present !== expect[at]) refuse('stale', { id, present });
        if (isRunning(bridge, id)) refuse('running', { id });
      });
      const { NotebookActions } = bridge.actions;
      const widgets = ids.map(id => widget(bridge, id));
      const { mode } = content;
      if (NotebookActions.runCells) {
        const running = NotebookActions.runCells(content, widgets, bridge.sessionContext);
        // Running leaves the edit mode, but it is not the person who runs these.
        if (content.mode !== mode) content.mode = mode;
        await running;
      } else {
        // JupyterLab 4.0 runs what is selected.
        const active = content.activeCellIndex;
        for (const one of widgets) {
          content.deselectAll();
          content.activeCellIndex = content.widgets.indexOf(one);
          const running = NotebookActions.run(content, bridge.sessionContext);
          content.activeCellIndex = active;
          if (content.mode !== mode) content.mode = mode;
          if (!(await running)) break;
        }
      }
      return ids.filter(id => place(bridge, id) >= 0).map(id => outputs(bridge, id));
    },

    async save(bridge) {
      // Some servers save by themselves, and never answer.
      const limit = new Promise(resolve => setTimeout(resolve, 10000, 'unanswered'));
      const saved = bridge.context.save().then(() => 'saved');
      return { save: await Promise.race([saved, limit]), dirty: bridge.context.model.dirty };
    },

    select(bridge, { id }) {
      const { content } = bridge.panel;
      content.deselectAll();
      content.activeCellIndex = place(bridge, found(bridge, [id])[0]);
      content.activeCell?.node.scrollIntoView({ block: 'nearest' });
      return {};
    },
  };

  window.addEventListener('pagehide', () => {
    for (const bridge of bridges.values()) if (bridge.comm) bridge.bye();
  });

  return {
    // Serves the notebook in this panel.
    attach(panel, actions, app) {
      if (!document.getElementById('cellwright-style')) {
        const style = document.createElement('style');
        style.id = 'cellwright-style';
        style.textContent = STYLE;
        document.head.appendChild(style);
      }
      let bridge = bridges.get(panel.context);
      if (!bridge) bridges.set(panel.context, (bridge = new Bridge(panel.context, actions, app)));
      bridge.add(panel);
    },
    serves: panel => bridges.has(panel.context),
  };
})();
