// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from 'preact/hooks';
import { api, type OutboxBrief, type Query } from '../api';
import { count } from '../format';
import { usePages } from '../hooks';
import { go, Link, query as address, to } from '../router';
import { Table, type Column } from '../table';
import { Ago, Badge, Card, Empty, Field, Foldable, Loading, Page, Problem, Time, useConfirm } from '../ui';
import { OutboxVerbButton, type OutboxVerb } from './verbs';

export const eventColumns: Column<OutboxBrief>[] = [
  { title: 'Type', cell: (event) => <Link href={to('events', event.id)}>{event.type}</Link> },
  { title: 'Status', cell: (event) => <Badge text={event.status} /> },
  { title: 'Failed attempts', number: true, minor: true, cell: (event) => count(event.attempts) },
  { title: 'Created', cell: (event) => <Time at={event.createdAt} /> },
  {
    title: 'Aggregate',
    minor: true,
    cell: (event) => [event.aggregateType, event.aggregateId].filter(Boolean).join(' ') || '–',
  },
  { title: 'Tenant', minor: true, cell: (event) => event.tenantId ?? '–' },
  { title: 'Id', minor: true, cell: (event) => <code>{event.id}</code> },
  { title: 'Last error', wide: true, minor: true, cell: (event) => event.lastError ?? '' },
];

/// Of those that are dead anyway.
export const deadColumns: Column<OutboxBrief>[] = [
  ...eventColumns.filter(({ title }) => title === 'Type' || title === 'Failed attempts'),
  { title: 'Died', cell: (event) => <Time at={event.doneAt} /> },
  ...eventColumns.filter(({ title }) => title === 'Aggregate' || title === 'Last error'),
];

export const searchFields = [
  ['type', 'Type', 'OrderPlaced'],
  ['aggregateType', 'Aggregate type', 'Order'],
  ['aggregateId', 'Aggregate id', ''],
  ['tenantId', 'Tenant', ''],
  ['errorContains', 'Error has', 'timed out'],
] as const;

/// A search in the address: fields are typed into, and take effect with Enter or the button.
export function useSearch(names: readonly string[], query: URLSearchParams) {
  const given = Object.fromEntries(names.map((name) => [name, query.get(name) ?? '']));
  const key = JSON.stringify(given);
  const [draft, setDraft] = useState<Record<string, string>>(given);
  useEffect(() => setDraft(given), [key]);
  return {
    given: given as Record<string, string>,
    draft,
    set: (name: string, value: string) => setDraft((before) => ({ ...before, [name]: value })),
    submit: (event?: Event) => {
      event?.preventDefault();
      go(address(draft));
    },
    clear: () => go(location.pathname),
    any: Object.values(given).some(Boolean),
  };
}

const stuckFor = '5m';
const verbs: OutboxVerb[] = ['requeue', 'cancel'];

const lists = [
  ['', 'All'],
  ['stuck', 'Stuck'],
] as const;

export function EventsView({ query }: { query: URLSearchParams }) {
  const chosen = query.get('list') ?? '';
  const [again, setAgain] = useState(0);
  return (
    <Page
      title="Events"
      lead="What applications published into the outbox."
      actions={
        <button type="button" onClick={() => setAgain(again + 1)}>
          Refresh
        </button>
      }
    >
      <nav class="tabs" aria-label="Lists">
        {lists.map(([name, title]) => (
          <Link key={name} href={name ? `${to('events')}?list=${name}` : to('events')} aria-current={name === chosen ? 'page' : undefined}>
            {title}
          </Link>
        ))}
      </nav>
      {chosen === 'stuck' ? <StuckEvents again={again} /> : <FoundEvents query={query} again={again} />}
    </Page>
  );
}

/// A node has them and does not come to an end, or nobody takes them.
function StuckEvents({ again }: { again: number }) {
  const pages = usePages((cursor, signal) => api.outboxStuck({ for: stuckFor, limit: 200, cursor }, signal), [again]);
  const [dialog, ask] = useConfirm();
  const columns: Column<OutboxBrief>[] = [
    ...eventColumns.filter(({ title }) => ['Type', 'Status', 'Failed attempts'].includes(title)),
    { title: 'Available', cell: (event) => <Ago at={event.availableAt} /> },
    { title: 'Node', cell: (event) => event.owner ?? '–' },
    ...eventColumns.filter(({ title }) => title === 'Id' || title === 'Last error'),
    {
      title: 'Action',
      action: true,
      cell: (event) => (
        <span class="row-actions">
          {verbs
            .filter((verb) => verb === 'cancel' || event.owner)
            .map((verb) => (
              <OutboxVerbButton key={verb} small verb={verb} filter={{ ids: [event.id] }} then={pages.reload} ask={ask} of={event.id} />
            ))}
        </span>
      ),
    },
  ];
  return (
    <Card
      title="Stuck"
      aside={
        pages.rows.length > 0 &&
        verbs.map((verb) => (
          <span key={verb} class="all-of">
            All: <OutboxVerbButton verb={verb} filter={{ stuckFor }} then={pages.reload} ask={ask} />
          </span>
        ))
      }
    >
      {dialog}
      {pages.error && <Problem error={pages.error} retry={pages.reload} what="The events cannot be read" />}
      {pages.rows.length > 0 && (
        <>
          <Table label="Stuck" columns={columns} rows={pages.rows} id={(event) => event.id} open={(event) => go(to('events', event.id))} more={pages.more} onEnd={pages.loadMore} />
          <PagesFoot pages={pages} />
        </>
      )}
      {pages.rows.length === 0 && pages.loading && <Loading />}
      {pages.rows.length === 0 && !pages.loading && !pages.error && (
        <Empty title="Nothing here">No event could have been delivered for more than 5 minutes and was not.</Empty>
      )}
    </Card>
  );
}

/// By what the server walks through them.
const orderOf: Record<string, string> = {
  '': 'By id, the highest first: of ULIDs, which ids are unless a publisher has chosen others, that is the newest.',
  PENDING: 'By the time from which they may be delivered, the earliest first.',
  DONE: 'The last delivered first.',
  DEAD: 'The last given up first.',
};

function FoundEvents({ query, again }: { query: URLSearchParams; again: number }) {
  const search = useSearch(['status', ...searchFields.map(([name]) => name)], query);
  const [id, setId] = useState('');
  const pages = usePages(
    (cursor, signal) => api.outboxEvents({ ...(search.given as Query), limit: 200, cursor }, signal),
    [search.given, again],
  );
  const openId = (event: Event) => {
    event.preventDefault();
    if (id.trim()) go(to('events', id.trim()));
  };
  return (
    <>
      <Foldable title="Search…" open={search.any}>
        <form class="filters" role="search" onSubmit={search.submit}>
          <Field
            label="Status"
            name="status"
            value={search.draft.status ?? ''}
            list={['', 'PENDING', 'NEW', 'RETRY', 'DONE', 'DEAD']}
            onInput={(status) => go(address({ ...search.draft, status }))}
          />
          {searchFields.map(([name, label, placeholder]) => (
            <Field
              key={name}
              label={label}
              name={name}
              value={search.draft[name] ?? ''}
              placeholder={placeholder}
              onInput={(value) => search.set(name, value)}
            />
          ))}
          <button type="submit" class="primary">
            Search
          </button>
          {search.any && (
            <button type="button" onClick={search.clear}>
              Clear
            </button>
          )}
        </form>
        <form class="filters apart" onSubmit={openId}>
          <Field label="Or one by its id" name="id" value={id} onInput={setId} placeholder="01J…" />
          <button type="submit" disabled={!id.trim()}>
            Open
          </button>
        </form>
      </Foldable>
      <p class="muted">{orderOf[search.given.status ?? ''] ?? orderOf.PENDING}</p>
      {pages.error && <Problem error={pages.error} retry={pages.reload} what="The events cannot be read" />}
      {pages.rows.length > 0 && (
        <>
          <Table
            label="Events"
            columns={eventColumns}
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
        search.any ? (
          <Empty title="No event matches">Ask for less, or clear the fields.</Empty>
        ) : (
          <Empty title="No event yet">
            Publish one from your program, or here:
            <pre class="code">
              {`curl ${location.origin}/api/events -H 'Content-Type: application/json' \\\n  -d '{"type":"OrderPlaced","payload":{"id":1}}'`}
            </pre>
          </Empty>
        )
      )}
    </>
  );
}

export function PagesFoot({ pages }: { pages: { rows: unknown[]; more: boolean; full: boolean; loading: boolean; loadMore: () => void } }) {
  return (
    <p class="table-foot" role="status">
      <span>
        {count(pages.rows.length)} {pages.more ? 'so far' : pages.full ? 'shown; ask for less to see others' : 'in all'}
        {pages.loading ? ' · loading…' : ''}
      </span>
      {pages.more && (
        <button type="button" class="small" disabled={pages.loading} onClick={pages.loadMore}>
          More
        </button>
      )}
    </p>
  );
}
