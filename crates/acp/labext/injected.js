// As an output of a cell: when no extension is installed, and the person said yes once. The module system of the page is
// reached through its list of chunks, and the notebook through the handler of an event that does nothing.
if (!window.cellwrightPage) {
  window.cellwrightPage = cellwrightPage;
  let scope = {};
  for (const name of Object.keys(window).filter(name => /^(webpackChunk|rspackChunk)/.test(name))) {
    const take = require => {
      const found = require.S?.default ?? {};
      if (Object.keys(found).length > Object.keys(scope).length) scope = found;
    };
    window[name].push([[`cellwright-${Date.now()}-${name}`], {}, take]);
  }
  const versions = Object.values(scope['@jupyterlab/notebook'] ?? {});
  const version = versions.find(version => version.loaded) ?? versions.pop();
  Promise.resolve(version?.get()).then(factory => {
    const actions = factory();
    for (const node of document.querySelectorAll('.jp-Notebook')) {
      const { handleEvent } = actions.Notebook.prototype;
      let panel = null;
      actions.Notebook.prototype.handleEvent = function () {
        panel = this.parent;
      };
      try {
        node.dispatchEvent(new MouseEvent('mousedown', { bubbles: false }));
      } finally {
        actions.Notebook.prototype.handleEvent = handleEvent;
      }
      const app = window.jupyterapp ?? window.jupyterlab ?? { name: 'Jupyter', version: '' };
      if (panel?.context) cellwrightPage.attach(panel, actions, app);
    }
  });
}
