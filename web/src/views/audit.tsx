// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { api, type AuditEntry } from '../api';
import { usePages } from '../hooks';
import { Table, type Column } from '../table';
import { Detail, Empty, Field, Loading, Page, Problem, Time } from '../ui';
import { PagesFoot, useSearch } from './events';

const columns: Column<AuditEntry>[] = [
  { title: 'When', cell: (entry) => <Time at={entry.at} /> },
  { title: 'Who', minor: true, cell: (entry) => entry.who },
  { title: 'What', wide: true, cell: (entry) => entry.what },
];

export function AuditView({ query }: { query: URLSearchParams }) {
  const search = useSearch(['who', 'since'], query);
  const since = search.given.since;
  const pages = usePages(
    (cursor, signal) =>
      api.audit(
        { who: search.given.who, from: since ? new Date(since).toISOString() : undefined, limit: 200, cursor },
        signal,
      ),
    [search.given],
  );
  const [chosen, setChosen] = useState<AuditEntry | null>(null);
  return (
    <Page
      title="Audit"
      lead="Every change that was made through the API or the command line: who, what and when, newest first."
      actions={
        <button type="button" onClick={pages.reload}>
          Refresh
        </button>
      }
    >
      <form class="filters" role="search" onSubmit={search.submit}>
        <Field label="Who" name="who" value={search.draft.who ?? ''} onInput={(value) => search.set('who', value)} />
        <Field label="Since" name="since" type="datetime-local" value={search.draft.since ?? ''} onInput={(value) => search.set('since', value)} />
        <button type="submit" class="primary">
          Search
        </button>
        {search.any && (
          <button type="button" onClick={search.clear}>
            Clear
          </button>
        )}
      </form>
      {pages.error && <Problem error={pages.error} retry={pages.reload} what="The audit cannot be read" />}
      {pages.rows.length > 0 && (
        <>
          <Table
            label="Audit"
            columns={[
              ...columns,
              {
                title: 'Action',
                action: true,
                cell: (entry) => (
                  <button type="button" class="small" aria-label={`Show ${entry.what}`} onClick={() => setChosen(entry)}>
                    Show
                  </button>
                ),
              },
            ]}
            rows={pages.rows}
            id={(entry) => String(entry.id)}
            open={setChosen}
            more={pages.more}
            onEnd={pages.loadMore}
          />
          <PagesFoot pages={pages} />
        </>
      )}
      {pages.rows.length === 0 && pages.loading && <Loading />}
      {pages.rows.length === 0 && !pages.loading && !pages.error && (
        <Empty title={search.any ? 'No change matches' : 'No change yet'}>
          {search.any ? 'Ask for less, or clear the fields.' : 'Pausing a pair, a replay or a purge would be noted here.'}
        </Empty>
      )}
      {chosen && (
        <Detail title="One change" onClose={() => setChosen(null)}>
          <dl class="facts">
            <div><dt>When</dt><dd><Time at={chosen.at} /></dd></div>
            <div><dt>Who</dt><dd>{chosen.who}</dd></div>
            <div><dt>What</dt><dd>{chosen.what}</dd></div>
          </dl>
        </Detail>
      )}
    </Page>
  );
}
