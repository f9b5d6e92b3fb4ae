// SPDX-License-Identifier: Apache-2.0
// The Event Log API's entries, and what loggers on the server's machine have put aside. Of loggers elsewhere the server
// knows what has arrived.
import { useState } from 'preact/hooks';
import { api, type LogLine, type Query, type SpillFile, type SpillFolder } from '../api';
import { bytes, count, duration } from '../format';
import { usePages, useResource } from '../hooks';
import { Table, type Column } from '../table';
import { Badge, Card, Detail, Empty, Field, Loading, Page, Problem, Time } from '../ui';
import { PagesFoot, useSearch } from './events';

const delay = (line: LogLine) => (Date.parse(line.receivedAt) - Date.parse(line.timestamp)) / 1000;
const spilled = 30; // seconds: no queue in memory keeps an entry for as long

const columns: Column<LogLine>[] = [
  { title: 'Time', cell: (line) => <Time at={line.timestamp} /> },
  { title: 'Application', cell: (line) => line.applicationId },
  { title: 'Process', cell: (line) => line.processName },
  { title: 'Status', cell: (line) => <Badge text={line.processStatus} /> },
  { title: 'Step', minor: true, cell: (line) => line.step ?? '' },
  { title: 'Arrived after', number: true, minor: true, cell: (line) => duration(Math.max(0, delay(line))) },
  { title: 'Details', wide: true, minor: true, cell: (line) => line.details ?? '' },
];

/// Nothing is known of a folder that cannot be looked at.
const known = (one: SpillFolder, text: string) => (one.error ? '–' : text);

const folderColumns: Column<SpillFolder>[] = [
  { title: 'Folder', wide: true, cell: (one) => <code>{one.folder}</code> },
  { title: 'Waiting', number: true, cell: (one) => known(one, count(one.waiting + one.inRings)) },
  { title: 'Oldest', number: true, cell: (one) => (one.oldestSeconds === null ? '–' : duration(one.oldestSeconds)) },
  { title: 'Size', number: true, minor: true, cell: (one) => known(one, bytes(one.bytes)) },
  { title: 'Dead', number: true, cell: (one) => known(one, count(one.deadLetters)) },
  { title: 'Quarantine', number: true, minor: true, cell: (one) => known(one, count(one.quarantined)) },
];

const fileColumns: Column<SpillFile>[] = [
  { title: 'File', wide: true, cell: (file) => <code>{file.name}</code> },
  { title: 'Kind', cell: (file) => file.kind },
  { title: 'Size', number: true, cell: (file) => bytes(file.bytes) },
  { title: 'Events', number: true, minor: true, cell: (file) => count(file.events + file.foreign) },
  { title: 'Waiting', number: true, cell: (file) => count(file.waiting) },
  { title: 'Damaged', number: true, minor: true, cell: (file) => count(file.damaged) },
];

function Spill() {
  const { data: folders, error, reload } = useResource((signal) => api.spill(signal), ['spill'], 5000);
  const [name, setName] = useState<string | null>(null);
  const chosen = folders?.find((one) => one.folder === name);
  if (error) return <Problem error={error} retry={reload} what="The spill folders cannot be read" />;
  if (!folders) return <Loading />;
  if (folders.length === 0) {
    return (
      <p class="muted">
        What waits in spill files is seen here when <code>spill.folders</code> names the folders of loggers on the server's machine.
      </p>
    );
  }
  return (
    <>
      <Table
        label="Spill folders"
        columns={[
          ...folderColumns,
          {
            title: 'Action',
            action: true,
            cell: (one) => (
              <button type="button" class="small" aria-label={`Show files of ${one.folder}`} onClick={() => setName(one.folder)}>
                Files
              </button>
            ),
          },
        ]}
        rows={folders}
        id={(one) => one.folder}
        open={(one) => setName(one.folder)}
        selected={name}
      />
      {folders.map((one) => {
        if (!one.error) return null;
        const [what, hint] = one.error.replace(/^postrider: /, '').split('. Hint: ');
        return (
          <div key={one.folder} class="problem" role="alert">
            <p class="strong">{what}</p>
            {hint && <p class="muted">Hint: {hint}</p>}
          </div>
        );
      })}
      {chosen && !chosen.error && (chosen.files.length === 0 ? (
        <p class="muted">{chosen.folder} has no spill file: everything was sent.</p>
      ) : (
        <Table label={`Files of ${chosen.folder}`} columns={fileColumns} rows={chosen.files} id={(file) => file.name} />
      ))}
    </>
  );
}

export function LogView({ query }: { query: URLSearchParams }) {
  const search = useSearch(['applicationId', 'correlationId', 'text'], query);
  const pages = usePages(
    (cursor, signal) => api.logLines({ ...(search.given as Query), order: 'desc', limit: 200, cursor }, signal),
    [search.given],
  );
  const [chosen, setChosen] = useState<LogLine | null>(null);
  const late = pages.rows.filter((line) => delay(line) > spilled);
  const off = pages.error?.problem.status === 404;
  const apps = [...new Set(late.map((line) => line.applicationId))];
  return (
    <Page
      title="Logger & spill"
      lead="Entries that applications' loggers sent to the Event Log API."
      actions={
        <button type="button" onClick={pages.reload}>
          Refresh
        </button>
      }
    >
      <Card title="Spill">
        {pages.rows.length > 0 && (
          <p aria-live="polite">
            {late.length === 0
              ? 'Of the entries below, none arrived late: loggers send at once.'
              : `${late.length} of the entries below arrived more than ${spilled} s late, the slowest after ${duration(Math.max(...late.map(delay)))}: they waited in the spill files of ${apps.slice(0, 5).join(', ')}${apps.length > 5 ? ' and others' : ''}.`}
          </p>
        )}
        <Spill />
      </Card>
      {!off && (
        <form class="filters" role="search" onSubmit={search.submit}>
          <Field label="Application" name="applicationId" value={search.draft.applicationId ?? ''} onInput={(value) => search.set('applicationId', value)} />
          <Field label="Correlation id" name="correlationId" value={search.draft.correlationId ?? ''} onInput={(value) => search.set('correlationId', value)} />
          <Field label="Text" name="text" value={search.draft.text ?? ''} onInput={(value) => search.set('text', value)} />
          <button type="submit" class="primary">
            Search
          </button>
          {search.any && (
            <button type="button" onClick={search.clear}>
              Clear
            </button>
          )}
        </form>
      )}
      {pages.error && (
        <Problem
          error={pages.error}
          retry={pages.reload}
          what="The entries cannot be read"
          off={
            <>
              The Event Log API is switched off: <code>eventlog.enabled = true</code> in the configuration switches it on.
            </>
          }
        />
      )}
      {pages.rows.length > 0 && (
        <>
          <Table
            label="Entries"
            columns={[
              ...columns,
              {
                title: 'Action',
                action: true,
                cell: (line) => (
                  <button type="button" class="small" aria-label={`Show entry ${line.id}`} onClick={() => setChosen(line)}>
                    Show
                  </button>
                ),
              },
            ]}
            rows={pages.rows}
            id={(line) => line.id}
            open={setChosen}
            selected={chosen?.id ?? null}
            more={pages.more}
            onEnd={pages.loadMore}
          />
          <PagesFoot pages={pages} />
        </>
      )}
      {pages.rows.length === 0 && pages.loading && <Loading />}
      {pages.rows.length === 0 && !pages.loading && !pages.error &&
        (search.any ? (
          <Empty title="No entry matches">Ask for less, or clear the fields.</Empty>
        ) : (
          <Empty title="No entry yet">
            Send one:
            <pre class="code">
              {`curl ${location.origin}/v1/events -H 'Content-Type: application/json' \\\n  -d '{"applicationId":"shop","processName":"checkout","processStatus":"STARTED"}'`}
            </pre>
          </Empty>
        ))}
      {chosen && (
        <Detail title={chosen.processName} onClose={() => setChosen(null)}>
          <dl class="facts">
            {Object.entries(chosen)
              .filter(([, value]) => value !== null && value !== '')
              .map(([name, value]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{String(value)}</dd>
                </div>
              ))}
          </dl>
        </Detail>
      )}
    </Page>
  );
}
