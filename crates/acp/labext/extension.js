// As an extension: a federated module, written by hand, that takes what it needs from JupyterLab's share scope.
(window._JUPYTERLAB ??= {}).cellwright = {
  init(scope) {
    this.scope = scope;
  },
  async get() {
    const versions = Object.values(this.scope['@jupyterlab/notebook'] ?? {});
    const version = versions.find(version => version.loaded) ?? versions.pop();
    const actions = (await version.get())();
    const plugin = {
      id: 'cellwright:notebook',
      description: 'Lets the agent of a notebook change it where the person sees it.',
      autoStart: true,
      requires: [actions.INotebookTracker],
      activate(app, tracker) {
        window.cellwrightPage = cellwrightPage;
        // A panel has a model once its file is read.
        const attach = panel => panel.context.ready.then(() => cellwrightPage.attach(panel, actions, app));
        tracker.forEach(attach);
        tracker.widgetAdded.connect((_, panel) => void attach(panel));
      },
    };
    return () => ({ __esModule: true, default: plugin });
  },
};
