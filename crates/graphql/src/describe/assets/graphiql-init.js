// Starts GraphiQL on this origin with the tabs that the server made from its schema.
'use strict';

(async () => {
  const { createElement } = React;

  // GraphiQL's dialogs add a style element that stops the page behind them from scrolling. This page never scrolls, and
  // its policy allows no inline style, so they get an element without effect.
  const make = document.createElement.bind(document);
  document.createElement = (tag, options) => make(tag === 'style' ? 'template' : tag, options);

  const socket = new URL('/graphql', location.href);
  socket.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  const fetcher = GraphiQL.createFetcher({
    url: '/graphql',
    subscriptionUrl: socket.href,
    // The server defers nothing, so a plain request is all that is needed.
    enableIncrementalDelivery: false,
  });

  // Without its tabs the page is still of use.
  const tabs = await fetch('/_/graphiql/tabs.json')
    .then((reply) => (reply.ok ? reply.json() : []))
    .catch(() => []);

  // A link may bring an operation: it stands in front, ready to run.
  const brought = new URLSearchParams(location.search).get('query') ?? undefined;
  if (brought) tabs.unshift({ query: brought });

  const home = createElement('a', { href: '/', className: 'home', title: 'Home page' }, 'Trefoil');
  const app = createElement(
    GraphiQL,
    {
      fetcher,
      query: brought,
      defaultTabs: tabs.length ? tabs : undefined,
      defaultEditorToolsVisibility: 'variables',
      inputValueDeprecation: true,
      schemaDescription: true,
      shouldPersistHeaders: false,
      storage: GraphiQL.createLocalStorage({ namespace: 'trefoil' }),
    },
    createElement(GraphiQL.Logo, null, home),
  );
  ReactDOM.createRoot(document.getElementById('graphiql')).render(app);
})();
