// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { keepToken, token, whenUnauthorized } from './api';
import { useLive } from './hooks';
import { retryLive, type Connection } from './live';
import { readRights, useMe } from './rights';
import { go, Link, to, usePlace, type Place } from './router';
import { chooseTheme, theme, type Theme } from './theme';
import { Announcer, Dialog, Empty, Field, Page } from './ui';
import { AuditView } from './views/audit';
import { DeadView } from './views/dead';
import { EventView } from './views/event';
import { EventsView } from './views/events';
import { LogView } from './views/log';
import { NodesView } from './views/nodes';
import { OverviewView } from './views/overview';
import { PairView } from './views/pair';
import { PairDeadView } from './views/pair_dead';
import { ProjectionsView } from './views/projections';
import { QueueView } from './views/queue';
import { QueueEventView } from './views/queue_event';
import { StoreView } from './views/store';
import { TopicsView } from './views/topics';

const views: { path: string; title: string; key: string }[] = [
  { path: '', title: 'Overview', key: 'o' },
  { path: 'topics', title: 'Topics', key: 't' },
  { path: 'events', title: 'Events', key: 'e' },
  { path: 'dead', title: 'Dead letters', key: 'd' },
  { path: 'queue', title: 'Queue', key: 'q' },
  { path: 'store', title: 'Store', key: 's' },
  { path: 'projections', title: 'Projections', key: 'p' },
  { path: 'log', title: 'Logger & spill', key: 'l' },
  { path: 'nodes', title: 'Nodes & leaders', key: 'n' },
  { path: 'audit', title: 'Audit', key: 'a' },
];
const addressOf = (path: string) => (path ? to(path) : '/ui');

function View({ place: { parts, query } }: { place: Place }) {
  const [first = '', second, third, fourth] = parts;
  switch (first) {
    case '':
      return <OverviewView />;
    case 'topics':
      if (!second || !third) return <TopicsView query={query} />;
      if (fourth === 'dead') return <PairDeadView topic={second} publisher={third} />;
      return <PairView topic={second} publisher={third} />;
    case 'events':
      return second ? <EventView id={second} /> : <EventsView query={query} />;
    case 'dead':
      return <DeadView query={query} />;
    case 'queue':
      return second ? <QueueEventView id={second} /> : <QueueView query={query} />;
    case 'store':
      return <StoreView query={query} />;
    case 'projections':
      return <ProjectionsView />;
    case 'log':
      return <LogView query={query} />;
    case 'nodes':
      return <NodesView />;
    case 'audit':
      return <AuditView query={query} />;
    default:
      return (
        <Page title="Nothing here">
          <Empty title="This address has no view">
            <Link href="/ui">Go to the overview</Link>
          </Empty>
        </Page>
      );
  }
}

const connectionText: Record<Connection, string> = {
  connecting: 'connecting',
  live: 'live',
  polling: 'every 2 s',
  lost: 'no connection',
  denied: 'no access',
  missing: 'without live figures',
};

/// Whose token this tab has, where one is needed, and the way to another one.
function WhoAmI({ onChange }: { onChange: () => void }) {
  const me = useMe();
  if (!me?.token) return null;
  return (
    <p class="who">
      {me.name}, {me.role}{' '}
      <button type="button" class="quiet" onClick={onChange}>
        Change token…
      </button>
    </p>
  );
}

function ThemeSwitch() {
  const [now, setNow] = useState<Theme>(theme);
  const choose = (value: Theme) => {
    chooseTheme(value);
    setNow(value);
  };
  return (
    <label class="theme">
      <span class="sr">Colours</span>
      <select value={now} onChange={(event) => choose(event.currentTarget.value as Theme)}>
        <option value="auto">System colours</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

/// `why`: the server has refused the token that this tab has, if any, or somebody wants to change a good one.
function TokenDialog({ why, onClose }: { why: 'refused' | 'change'; onClose: (changed: boolean) => void }) {
  const [value, setValue] = useState('');
  const keep = (wanted: string) => {
    keepToken(wanted);
    onClose(true);
  };
  return (
    <Dialog title={why === 'change' ? 'Another token' : 'This server asks for a token'} onClose={() => onClose(false)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          keep(value.trim());
        }}
      >
        <p class="muted">
          <code>postrider token create</code> makes one. It is kept in this tab until the tab is closed.
        </p>
        {why === 'refused' && token() && <p>The token that this tab has is not known to the server, or its time is over.</p>}
        <Field label="Token" name="token" type="password" value={value} onInput={setValue} placeholder="prt_…" />
        <div class="actions end">
          {why === 'change' && (
            <button type="button" onClick={() => keep('')}>
              Forget the token
            </button>
          )}
          <button type="button" onClick={() => onClose(false)}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={!value.trim()}>
            Use it
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Shortcuts({ onClose }: { onClose: () => void }) {
  const line = (keys: ComponentChildren, text: string) => (
    <div key={text}>
      <dt>{keys}</dt>
      <dd>{text}</dd>
    </div>
  );
  return (
    <Dialog title="Shortcuts" onClose={onClose}>
      <dl class="facts keys">
        {views.map((view) =>
          line(
            <>
              <kbd>g</kbd> <kbd>{view.key}</kbd>
            </>,
            view.title,
          ),
        )}
        {line(<kbd>/</kbd>, 'To the first search field')}
        {line(<kbd>?</kbd>, 'This list')}
        {line(<kbd>Esc</kbd>, 'Close')}
      </dl>
      <div class="actions end">
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

/// g and a letter: to a view. Not while somebody types, and not with a dialog open.
function useShortcuts(showHelp: () => void): void {
  const waiting = useRef(0);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
      const target = event.target as HTMLElement;
      if (target.closest('input, select, textarea')) return;
      const view = performance.now() < waiting.current ? views.find((one) => one.key === event.key) : undefined;
      waiting.current = 0;
      if (view) {
        event.preventDefault();
        go(addressOf(view.path));
      } else if (event.key === 'g') {
        waiting.current = performance.now() + 1500;
      } else if (event.key === '?') {
        event.preventDefault();
        showHelp();
      } else if (event.key === '/') {
        const field = document.querySelector<HTMLElement>('main input:not([type=range]):not([type=checkbox])');
        if (field) {
          event.preventDefault();
          field.focus();
        }
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

export function App() {
  const now = usePlace();
  const { connection, error, overview } = useLive();
  const [help, setHelp] = useState(false);
  const [asking, setAsking] = useState<false | 'refused' | 'change'>(false);
  const [turn, setTurn] = useState(0); // a new token: everything is read again
  useShortcuts(() => setHelp(true));
  useEffect(() => whenUnauthorized(() => setAsking('refused')), []);
  const heard = connection === 'live' || connection === 'polling';
  const withoutDatabase = heard && overview !== null && !overview.database.up;
  useEffect(() => {
    if (heard) void readRights();
  }, [heard, turn]);

  // Who follows a link by keyboard or screen reader lands on the new view's title, and at once: what is typed
  // next may be meant for the new view.
  const address = now.parts.join('/');
  const before = useRef(address);
  useLayoutEffect(() => {
    if (before.current === address) return;
    before.current = address;
    scrollTo(0, 0);
    document.getElementById('page-title')?.focus({ preventScroll: true });
  }, [address]);

  const closeToken = (changed: boolean) => {
    setAsking(false);
    if (!changed) return;
    setTurn((n) => n + 1);
    retryLive();
  };

  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <div class="frame">
        <header class="side">
          <Link href="/ui" class="brand">
            <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
              <path d="M3 6h18v12H3z" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linejoin="round" />
              <path d="m3.5 7 8.5 6.5L20.5 7" fill="none" stroke="currentColor" stroke-width="1.8" />
            </svg>
            Postrider
          </Link>
          <nav aria-label="Views">
            <ul>
              {views.map((view) => (
                <li key={view.path}>
                  <Link
                    href={addressOf(view.path)}
                    aria-current={(now.parts[0] ?? '') === view.path ? 'page' : undefined}
                  >
                    {view.title}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
          <div class="side-foot">
            <p class={`connection ${withoutDatabase ? 'lost' : connection}`} role="status">
              <span class="dot" aria-hidden="true" />
              {withoutDatabase ? 'database away' : connectionText[connection]}
            </p>
            <WhoAmI onChange={() => setAsking('change')} />
            <ThemeSwitch />
            <button type="button" class="quiet shortcuts" onClick={() => setHelp(true)}>
              Shortcuts <kbd>?</kbd>
            </button>
          </div>
        </header>
        <main id="content" tabIndex={-1}>
          {connection === 'lost' && (
            <div class="banner" role="alert">
              <strong>No connection to the server.</strong> What you see may be old.{' '}
              {error?.problem.hint}
            </div>
          )}
          {connection === 'denied' && (
            <div class="banner" role="alert">
              <strong>{error?.problem.detail ?? 'This needs a token.'}</strong>{' '}
              <button type="button" onClick={() => setAsking('refused')}>
                Enter a token
              </button>
            </div>
          )}
          <View key={turn} place={now} />
        </main>
      </div>
      <Announcer />
      {help && <Shortcuts onClose={() => setHelp(false)} />}
      {asking && <TokenDialog why={asking} onClose={closeToken} />}
    </>
  );
}
