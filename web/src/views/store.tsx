// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from 'preact/hooks';
import { api, type StoredEvent } from '../api';
import { count, shellQuoted } from '../format';
import { usePages, useResource } from '../hooks';
import { Headers, Payload } from '../payload';
import { go, query as address } from '../router';
import { Table, type Column } from '../table';
import { Card, CopyButton, Detail, Empty, Field, Loading, Page, Problem, Time } from '../ui';
import { PagesFoot } from './events';

const words = (text: string | undefined) => (text ?? '').split(/[\s,]+/).filter(Boolean);

const columns: Column<StoredEvent>[] = [
  { title: 'Position', number: true, cell: (event) => count(event.position) },
  { title: 'Type', cell: (event) => event.type },
  {
    title: 'Tags',
    wide: true,
    cell: (event) => event.tags.map((tag) => <span key={tag} class="tag">{tag}</span>),
  },
  { title: 'Stored', minor: true, cell: (event) => <Time at={event.storedAt} /> },
];

/// One event, with all that the store has of it.
export function StoredEventFacts({ event }: { event: StoredEvent }) {
  return (
    <>
      <dl class="facts">
        <div><dt>Id</dt><dd><code>{event.id}</code></dd></div>
        <div><dt>Tags</dt><dd>{event.tags.map((tag) => <span key={tag} class="tag">{tag}</span>)}</dd></div>
        <div><dt>Stored</dt><dd><Time at={event.storedAt} /></dd></div>
        <div><dt>Correlation</dt><dd>{event.correlationId ?? '–'}</dd></div>
        <div><dt>Causation</dt><dd>{event.causationId ?? '–'}</dd></div>
      </dl>
      <Payload content={event} />
      <h2>Headers</h2>
      <Headers headers={event.headers} />
    </>
  );
}

export function StoreView({ query }: { query: URLSearchParams }) {
  const given = {
    types: query.get('types') ?? '',
    tags: query.get('tags') ?? '',
    after: query.get('after') ?? '',
    order: query.get('order') ?? '',
  };
  const [types, setTypes] = useState(given.types);
  const [tags, setTags] = useState(given.tags);
  useEffect(() => {
    setTypes(given.types);
    setTags(given.tags);
  }, [given.types, given.tags]);
  const head = useResource((signal) => api.storeHead(signal), ['head'], 5000);
  const backwards = given.order === 'newest' || (given.order === '' && given.after === '');
  const pages = usePages(
    (cursor, signal) =>
      api.storeEvents(
        {
          type: words(given.types),
          tag: words(given.tags),
          // Backwards it means "before", and from the head there is nothing to leave out.
          after: given.after && !(backwards && Number(given.after) === 0) ? given.after : undefined,
          backwards: backwards || undefined,
          limit: 200,
          cursor,
        },
        signal,
      ),
    [given],
  );
  const [chosen, setChosen] = useState<StoredEvent | null>(null);
  const [scrub, setScrub] = useState<number | null>(null);
  const set = (values: Partial<typeof given>, replace = false) => go(address({ ...given, ...values }), replace);
  const last = head.data ?? pages.head ?? 0;
  const at = scrub ?? (given.after === '' ? last : Number(given.after));
  const scrubTo = (position: number) => {
    setScrub(null);
    set(position >= last ? { after: '', order: '' } : { after: String(position), order: 'oldest' }, true);
  };
  const asCurl = () => {
    const item: Record<string, string[]> = {};
    if (words(given.types).length > 0) item.types = words(given.types);
    if (words(given.tags).length > 0) item.tags = words(given.tags);
    const text = JSON.stringify(Object.keys(item).length > 0 ? { items: [item] } : {});
    return `curl -G ${shellQuoted(`${location.origin}/read`)} --data-urlencode ${shellQuoted(`query=${text}`)}`;
  };
  return (
    <Page title="Store" lead={`The event store, up to position ${count(last)}.`} actions={<CopyButton label="Copy query as curl" text={asCurl} />}>
      <Card title="Query">
        <form
          class="filters"
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            set({ types, tags });
          }}
        >
          <Field label="Any of these types" name="types" value={types} onInput={setTypes} placeholder="Credited, Debited" />
          <Field label="All of these tags" name="tags" value={tags} onInput={setTags} placeholder="wallet=1" />
          <button type="submit" class="primary">
            Read
          </button>
          {(given.types || given.tags || given.after) && (
            <button type="button" onClick={() => go(location.pathname)}>
              Clear
            </button>
          )}
        </form>
        <label class="scrubber">
          <span>
            {given.after === '' && scrub === null ? 'Newest first, from the head' : <>Behind position <b>{count(at)}</b></>}
          </span>
          <input
            type="range"
            name="position"
            min={0}
            max={Math.max(last, 1)}
            value={at}
            aria-valuetext={`position ${at} of ${last}`}
            onInput={(event) => setScrub(Number(event.currentTarget.value))}
            onChange={(event) => scrubTo(Number(event.currentTarget.value))}
          />
        </label>
      </Card>
      {pages.error && <Problem error={pages.error} retry={pages.reload} what="The store cannot be read" />}
      {pages.rows.length > 0 && (
        <>
          <Table
            label="Stored events"
            columns={[
              ...columns,
              {
                title: 'Action',
                action: true,
                cell: (event) => (
                  <button type="button" class="small" aria-label={`Show event at ${event.position}`} onClick={() => setChosen(event)}>
                    Show
                  </button>
                ),
              },
            ]}
            rows={pages.rows}
            id={(event) => String(event.position)}
            open={setChosen}
            selected={chosen && String(chosen.position)}
            more={pages.more}
            onEnd={pages.loadMore}
          />
          <PagesFoot pages={pages} />
        </>
      )}
      {pages.rows.length === 0 && pages.loading && <Loading />}
      {pages.rows.length === 0 && !pages.loading && !pages.error &&
        (last === 0 ? (
          <Empty title="The store is empty">
            Append an event:
            <pre class="code">
              {`curl ${location.origin}/append -H 'Content-Type: application/json' \\\n  -d '{"events":[{"type":"Credited","tags":["wallet=1"],"data":"{}"}]}'`}
            </pre>
          </Empty>
        ) : (
          <Empty title="No event matches">An event must be of one of the types and have all of the tags.</Empty>
        ))}
      {chosen && (
        <Detail title={`${chosen.type} at ${count(chosen.position)}`} onClose={() => setChosen(null)}>
          <StoredEventFacts event={chosen} />
        </Detail>
      )}
    </Page>
  );
}
