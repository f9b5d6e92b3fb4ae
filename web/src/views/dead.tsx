// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, ApiError, noAnswer, type DeadFilter, type DeadGroup, type Pair, type Query } from '../api';
import { count, duration, plural } from '../format';
import { away, usePages, useResource } from '../hooks';
import { go, Link, query as address, to } from '../router';
import { Table, type Column } from '../table';
import { ActButton, Ago, announce, Card, Dialog, Empty, Field, Foldable, Loading, Page, Problem } from '../ui';
import { deadColumns, PagesFoot, searchFields, useSearch } from './events';

const slice = 500;

interface Progress {
  total: number;
  done: number;
  ends?: 'finished' | 'stopped';
  seconds: number; // until the last of them falls due
}

/// Also where there is no crypto.randomUUID: a page over plain HTTP.
const randomName = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/// Brings them back in slices, so that there is progress to see and a way to stop. `total` is what the dry run
/// said: events that die again on the way are not taken twice.
async function replay(
  filter: DeadFilter,
  rate: number | undefined,
  total: number,
  stopped: () => boolean,
  tell: (progress: Progress) => void,
): Promise<Progress> {
  let done = 0;
  let start: number | undefined;
  const action = randomName(); // one line of the audit for all slices
  const began = performance.now();
  while (done < total && !stopped()) {
    // Slices follow one another at the chosen pace; the time that passed counts.
    const passed = (performance.now() - began) / 1000;
    const answer = await api.replayDead({
      filter,
      rate,
      action,
      limit: Math.min(slice, total - done),
      startInSeconds: rate && start !== undefined ? Math.max(0, start - passed) : undefined,
    });
    done += answer.events;
    if (rate) start = (performance.now() - began) / 1000 + (answer.nextStartInSeconds ?? 0);
    tell({ total, done, seconds: answer.nextStartInSeconds ?? 0 });
    if (answer.events === 0 || answer.left === 0) break;
  }
  const ends = stopped() && done < total ? 'stopped' : 'finished';
  const seconds = start === undefined ? 0 : Math.max(0, start - (performance.now() - began) / 1000);
  return { total, done, ends, seconds };
}

function ReplayDialog({ filter, onClose }: { filter: DeadFilter; onClose: (changed: boolean) => void }) {
  const [total, setTotal] = useState<number | null>(null);
  const [rate, setRate] = useState('');
  const [progress, setProgress] = useState<Progress | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const stop = useRef(false);
  const failed = (why: unknown) => setError(why instanceof ApiError ? why : noAnswer(why));
  useEffect(() => {
    api.replayDead({ filter, dryRun: true }).then((answer) => setTotal(answer.events + (answer.left ?? 0)), failed);
    return () => {
      stop.current = true;
    };
  }, []);
  const perSecond = /^\d+$/.test(rate) && Number(rate) > 0 ? Math.min(100_000, Number(rate)) : undefined;
  const running = progress !== null && !progress.ends && !error;
  const begin = async (event: Event) => {
    event.preventDefault();
    if (total === null) return;
    setError(null);
    stop.current = false;
    setProgress({ total, done: 0, seconds: 0 });
    try {
      const end = await replay(filter, perSecond, total, () => stop.current, setProgress);
      setProgress(end);
      announce(`${plural(end.done, 'dead letter')} replayed`);
    } catch (why) {
      failed(why);
    }
  };
  const words = searchFields.map(([name, label]) => [label, filter[name]] as const).filter(([, value]) => value);
  return (
    <Dialog title="Replay dead letters" onClose={() => onClose(progress !== null)}>
      <form onSubmit={begin}>
        <p>
          {words.length === 0 ? 'All dead letters.' : 'Those with '}
          {words.map(([label, value], i) => (
            <span key={label}>
              {i > 0 && ', '}
              {label.toLowerCase()} <code>{value}</code>
            </span>
          ))}
        </p>
        {!progress && (
          <p role="status" class="strong" id="dry-run">
            {total === null ? (error ? '' : 'Counting…') : `${plural(total, 'event')} would be tried again.`}
          </p>
        )}
        {!progress && (
          <Field
            label="Events per second"
            name="rate"
            value={rate}
            onInput={setRate}
            placeholder="no limit"
            hint={
              perSecond && total
                ? `The last one falls due in ${duration(total / perSecond)}.`
                : 'A receiver that has just come back may like 50.'
            }
          />
        )}
        {progress && (
          <div role="status" aria-live="polite">
            <progress max={progress.total} value={progress.done} aria-label="Replayed" />
            <p>
              {count(progress.done)} of {count(progress.total)}
              {progress.ends && ` · ${progress.ends}`}
              {progress.ends && progress.seconds > 1 && `, the last falls due in ${duration(progress.seconds)}`}
            </p>
          </div>
        )}
        {error && <Problem error={error} what="The replay failed" />}
        <div class="actions end">
          {running ? (
            <button type="button" onClick={() => (stop.current = true)}>
              Stop
            </button>
          ) : (
            <button type="button" onClick={() => onClose(progress !== null)}>
              {progress?.ends ? 'Close' : 'Cancel'}
            </button>
          )}
          {!progress?.ends && (
            <button type="submit" class="primary" disabled={!total || running}>
              {total ? `Replay ${count(total)}` : 'Replay'}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

const pairColumns: Column<Pair>[] = [
  { title: 'Events', number: true, cell: (pair) => count(pair.deadLetters) },
  { title: 'Topic', cell: (pair) => <Link href={to('topics', pair.topic, pair.publisher, 'dead')}>{pair.topic}</Link> },
  { title: 'Publisher', wide: true, cell: (pair) => pair.publisher },
];

/// What publishers of the relay did not take stands with its pair, and is looked at there.
function RelayLetters({ pairs }: { pairs: Pair[] }) {
  return (
    <Card title="In the relay">
      <Table
        label="Pairs with dead letters"
        columns={pairColumns}
        rows={pairs}
        id={(pair) => `${pair.topic}\n${pair.publisher}`}
        open={(pair) => go(to('topics', pair.topic, pair.publisher, 'dead'))}
      />
    </Card>
  );
}

function Groups({ reloads, choose }: { reloads: number; choose: (filter: DeadFilter) => void }) {
  const { data, error, reload } = useResource((signal) => api.deadGroups(signal), ['groups', reloads], 10_000);
  const columns: Column<DeadGroup>[] = [
    { title: 'Events', number: true, cell: (group) => count(group.events) },
    { title: 'Type', minor: true, cell: (group) => group.type },
    {
      title: 'Error',
      wide: true,
      cell: (group) => (
        <>
          <span class="on-phone strong">{group.type}</span>
          {group.error || <span class="muted">none given</span>}
        </>
      ),
    },
    { title: 'Last', minor: true, cell: (group) => <Ago at={group.lastDiedAt} /> },
    {
      title: 'Action',
      action: true,
      cell: (group) => (
        <button type="button" class="small" aria-label={`Select ${group.type}: ${group.error}`} onClick={() => choose(group.filter)}>
          Select
        </button>
      ),
    },
  ];
  if (error) return <Problem error={error} retry={reload} what="The groups cannot be read" />;
  if (!data) return <Loading />;
  if (data.groups.length === 0) return <p class="muted">None.</p>;
  return (
    <>
      <Table wrap label="Errors" columns={columns} rows={data.groups} id={(group) => `${group.type}\n${group.error}`} open={(group) => choose(group.filter)} />
      {(data.otherEvents > 0 || !data.complete) && (
        <p class="muted table-foot">
          {data.otherEvents > 0 && `${plural(data.otherEvents, 'event')} in smaller groups. `}
          {!data.complete && `Of the latest ${count(data.lookedAt)}.`}
        </p>
      )}
    </>
  );
}

export function DeadView({ query }: { query: URLSearchParams }) {
  const search = useSearch(searchFields.map(([name]) => name), query);
  const [replaying, setReplaying] = useState(false);
  const [reloads, setReloads] = useState(0);
  const pages = usePages(
    (cursor, signal) => api.dead({ ...(search.given as Query), limit: 200, cursor }, signal),
    [search.given, reloads],
  );
  const relay = useResource((signal) => api.pairs(signal), ['pairs', reloads], 10_000);
  const pairs = (relay.data ?? []).filter((pair) => pair.deadLetters > 0);
  const filter = Object.fromEntries(Object.entries(search.given).filter(([, value]) => value)) as DeadFilter;
  const choose = (wanted: DeadFilter) =>
    go(address(Object.fromEntries(searchFields.map(([name]) => [name, wanted[name] ?? '']))));
  // Told once, below, when the server has no dead letters, or cannot read them.
  const missing = pages.error !== null && (pages.error.problem.status === 404 || away(pages.error));
  const none = !search.any && pages.rows.length === 0 && !pages.loading && !pages.error;
  return (
    <Page title="Dead letters" lead="Events that were given up, by the error they died of.">
      {replaying && (
        <ReplayDialog
          filter={filter}
          onClose={(changed) => {
            setReplaying(false);
            if (changed) setReloads((n) => n + 1);
          }}
        />
      )}
      {pairs.length > 0 && <RelayLetters pairs={pairs} />}
      {none ? (
        <Empty title={pairs.length > 0 ? 'No dead letter in the outbox' : 'No dead letter'}>
          Nothing to do: every event was delivered, or is still being tried.
        </Empty>
      ) : (
        <>
          {!missing && (
            <Card title={pairs.length > 0 ? 'In the outbox, by error' : 'By error'}>
              <Groups reloads={reloads} choose={choose} />
            </Card>
          )}
          <Card
            title={search.any ? 'Selected' : pairs.length > 0 ? 'All in the outbox' : 'All'}
            aside={
              <ActButton needs="/api/outbox/dead/replay" class="primary" disabled={pages.rows.length === 0} onClick={() => setReplaying(true)}>
                Replay {search.any ? 'selected' : 'all'}…
              </ActButton>
            }
          >
            <Foldable title="Select by…" open={search.any}>
              <form class="filters" role="search" onSubmit={search.submit}>
                {searchFields.map(([name, label, placeholder]) => (
                  <Field key={name} label={label} name={name} value={search.draft[name] ?? ''} placeholder={placeholder} onInput={(value) => search.set(name, value)} />
                ))}
                <button type="submit">Select</button>
                {search.any && (
                  <button type="button" onClick={search.clear}>
                    Clear
                  </button>
                )}
              </form>
            </Foldable>
            {pages.error && <Problem error={pages.error} retry={pages.reload} what="The dead letters cannot be read" />}
            {pages.rows.length > 0 && (
              <>
                <Table
                  label="Dead letters"
                  columns={deadColumns}
                  rows={pages.rows}
                  id={(event) => event.id}
                  open={(event) => go(to('events', event.id))}
                  more={pages.more}
                  onEnd={pages.loadMore}
                />
                <PagesFoot pages={pages} />
              </>
            )}
            {pages.rows.length === 0 && pages.loading && <Loading />}
            {pages.rows.length === 0 && !pages.loading && !pages.error && (
              <Empty title="No dead letter matches">Ask for less, or clear the fields.</Empty>
            )}
          </Card>
        </>
      )}
    </Page>
  );
}
