// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { api, type Page as Rows, type Query, type QueueBrief, type QueueFilter, type QueueLogEntry } from '../api';
import { count, duration, plural } from '../format';
import { usePages, useResource } from '../hooks';
import { go, Link, to } from '../router';
import { Table, type Column } from '../table';
import { Ago, Badge, Card, Empty, Field, Figure, Loading, Page, Problem, Time, useConfirm, type Question } from '../ui';
import { PagesFoot } from './events';
import { VerbButton, type VerbWords } from './verbs';

const stuckFor = '5m';
type Verb = 'requeue' | 'cancel' | 'release' | 'replay';

interface List {
  name: string;
  title: string;
  read: (cursor: string | null, signal: AbortSignal) => Promise<Rows<QueueBrief | QueueLogEntry>>;
  empty: string;
  filter: QueueFilter | null;
  verbs: Verb[];
  ofLog?: boolean; // of finished events alone
}

const finished = (query: Query) => (cursor: string | null, signal: AbortSignal) =>
  api.queueLog({ ...query, backwards: true, limit: 200, cursor }, signal);

const lists: List[] = [
  {
    name: 'stuck',
    title: 'Stuck',
    read: (cursor, signal) => api.queueStuck({ for: stuckFor, limit: 200, cursor }, signal),
    empty: 'No event has been in progress for more than 5 minutes.',
    filter: { stuckFor },
    verbs: ['requeue', 'cancel'],
  },
  {
    name: 'quarantine',
    title: 'Quarantine',
    read: (cursor, signal) => api.quarantine({ limit: 200, cursor }, signal),
    empty: 'No event took its worker down again and again.',
    filter: { quarantined: true },
    verbs: ['release', 'cancel'],
  },
  {
    name: 'waiting',
    title: 'In the queue',
    read: (cursor, signal) => api.queueEvents({ limit: 200, cursor }, signal),
    empty: 'The queue is empty: everything was handled.',
    filter: null,
    verbs: ['cancel'],
  },
  {
    name: 'failed',
    title: 'Failed',
    read: finished({ status: ['FAILED', 'COMPLETED_WITH_ERRORS'] }),
    empty: 'No finished event had an error.',
    filter: { statuses: ['FAILED', 'COMPLETED_WITH_ERRORS'] },
    verbs: ['replay'],
    ofLog: true,
  },
  {
    name: 'log',
    title: 'Finished',
    read: finished({}),
    empty: 'Nothing was finished yet, or the log was purged.',
    filter: null,
    verbs: ['replay'],
    ofLog: true,
  },
];

/// All that there is of an event, by the id that its publisher knows it by. What waits comes with the first page.
const listOf = (eventId: string): List => ({
  name: '',
  title: `Events with the id ${eventId}`,
  read: async (cursor, signal) => {
    const log = finished({ eventId })(cursor, signal);
    const waiting = cursor === null ? (await api.queueEvents({ eventId, limit: 200 }, signal)).rows : [];
    const { rows, next } = await log;
    return { rows: [...waiting, ...rows], next };
  },
  empty: 'Neither the queue nor its log has an event with this id.',
  filter: null,
  verbs: [],
});

const verbWords: Record<Verb, VerbWords> = {
  requeue: { button: 'Requeue', title: 'Take it from its worker?', text: 'Another worker tries it. A worker that still runs it can no longer finish it.' },
  cancel: { button: 'Cancel event', title: 'Take it out of the queue?', text: 'It goes to the log as failed, and no handler sees it again unless it is replayed.', danger: true },
  release: { button: 'Release', title: 'Let it out of quarantine?', text: 'It is tried again. It took its workers down before.', danger: true },
  replay: { button: 'Replay', title: 'Publish it again?', text: 'Its handlers see it once more, under a new id in the queue.' },
};

export function QueueVerbButton({ verb, filter, of, ...shared }: {
  verb: Verb;
  filter: QueueFilter;
  then: () => void;
  ask: (question: Question) => void;
  small?: boolean;
  of?: number;
}) {
  const words = verbWords[verb];
  return (
    <VerbButton
      {...shared}
      needs={`/api/queue/${verb}`}
      words={words}
      run={(dryRun) => api.queueVerb(verb, { filter, dryRun })}
      label={of === undefined ? undefined : `${words.button} ${of}`}
    />
  );
}

const isLog = (row: QueueBrief | QueueLogEntry): row is QueueLogEntry => 'seq' in row;

/// Of what is finished they say little, and there is more to say.
const ofThoseWhoWait: Column<QueueBrief | QueueLogEntry>[] = [
  { title: 'Crashes', number: true, minor: true, cell: (row) => count(row.crashes) },
  { title: 'Worker', minor: true, cell: (row) => (isLog(row) ? '–' : (row.owner ?? '–')) },
];

function worst(row: QueueLogEntry): string {
  const bad = row.results.filter((one) => one.result !== 'success');
  if (bad.length === 0) return plural(row.results.length, 'handler');
  return bad.map((one) => `${one.handler}: ${one.error ?? one.result}`).join(' · ');
}

export function QueueView({ query }: { query: URLSearchParams }) {
  const counts = useResource((signal) => api.queueCounts(signal), ['counts'], 2000);
  const eventId = query.get('eventId') ?? '';
  const [wanted, setWanted] = useState(eventId);
  const chosen = eventId ? listOf(eventId) : (lists.find((one) => one.name === query.get('list')) ?? (lists[2] as List));
  const pages = usePages(chosen.read, [chosen.name, eventId]);
  const [dialog, ask] = useConfirm();
  const again = () => {
    pages.reload();
    counts.reload();
  };
  const columns: Column<QueueBrief | QueueLogEntry>[] = [
    { title: 'Id', number: true, cell: (row) => <Link href={to('queue', row.id)}>{row.id}</Link> },
    { title: 'Type', cell: (row) => row.type ?? <span class="muted">unreadable</span> },
    { title: 'Event id', minor: true, cell: (row) => (row.eventId ? <code>{row.eventId}</code> : '–') },
    { title: 'Status', cell: (row) => <Badge text={!isLog(row) && row.quarantinedAt ? 'quarantined' : row.status} /> },
    { title: 'Attempts', number: true, cell: (row) => count(row.attempts) },
    ...(chosen.ofLog ? [] : ofThoseWhoWait),
    {
      title: chosen.ofLog ? 'Finished' : 'Since',
      minor: true,
      cell: (row) => (isLog(row) ? <Time at={row.finalizedAt} /> : <Ago at={row.processingStartedAt ?? row.createdAt} />),
    },
    { title: 'Handlers said', wide: true, minor: true, cell: (row) => (isLog(row) ? worst(row) : (row.lastError ?? '')) },
  ];
  if (chosen.verbs.length > 0) {
    columns.push({
      title: 'Action',
      action: true,
      cell: (row) => (
        <span class="row-actions">
          {chosen.verbs.map((verb) => (
            <QueueVerbButton key={verb} small verb={verb} filter={{ ids: [row.id] }} then={again} ask={ask} of={row.id} />
          ))}
        </span>
      ),
    });
  }
  const data = counts.data;
  return (
    <Page title="Queue" lead="Events for the handlers of this application.">
      {dialog}
      {counts.error && counts.error.problem.status !== 404 && !pages.error && <Problem error={counts.error} retry={counts.reload} what="The counts cannot be read" />}
      {data && (
        <dl class="figures" aria-live="polite">
          <Figure label="Waiting" value={count(data.pending)} note={data.oldestPendingSeconds > 0 ? `oldest ${duration(data.oldestPendingSeconds)}` : 'none overdue'} />
          <Figure label="Delayed" value={count(data.delayed)} />
          <Figure label="In progress" value={count(data.processing)} />
          <Figure label="Abandoned" value={count(data.abandoned)} tone={data.abandoned > 0 ? 'warn' : undefined} />
          <Figure label="Quarantine" value={count(data.quarantined)} tone={data.quarantined > 0 ? 'bad' : undefined} />
        </dl>
      )}
      <form
        class="filters"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          go(wanted.trim() ? `${to('queue')}?eventId=${encodeURIComponent(wanted.trim())}` : to('queue'));
        }}
      >
        <Field label="Event id" name="eventId" value={wanted} onInput={setWanted} placeholder="01J…" />
        <button type="submit">Find</button>
      </form>
      <nav class="tabs" aria-label="Lists">
        {lists.map((list) => (
          <Link key={list.name} href={`${to('queue')}?list=${list.name}`} aria-current={list.name === chosen.name ? 'page' : undefined}>
            {list.title}
          </Link>
        ))}
      </nav>
      <Card
        title={chosen.title}
        aside={
          chosen.filter &&
          pages.rows.length > 0 &&
          chosen.verbs.map((verb) => (
            <span key={verb} class="all-of">
              All: <QueueVerbButton verb={verb} filter={chosen.filter as QueueFilter} then={again} ask={ask} />
            </span>
          ))
        }
      >
        {pages.error && <Problem error={pages.error} retry={pages.reload} what="The list cannot be read" />}
        {pages.rows.length > 0 && (
          <>
            <Table label={chosen.title} columns={columns} rows={pages.rows} id={(row) => `${row.id}${isLog(row) ? ' log' : ''}`} open={(row) => go(to('queue', row.id))} more={pages.more} onEnd={pages.loadMore} />
            <PagesFoot pages={pages} />
          </>
        )}
        {pages.rows.length === 0 && pages.loading && <Loading />}
        {pages.rows.length === 0 && !pages.loading && !pages.error && <Empty title="Nothing here">{chosen.empty}</Empty>}
      </Card>
    </Page>
  );
}
