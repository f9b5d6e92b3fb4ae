// SPDX-License-Identifier: Apache-2.0
import { api, type HandlerResult, type QueueEvent } from '../api';
import { count, plural, shellQuoted } from '../format';
import { useResource } from '../hooks';
import { Headers, Payload } from '../payload';
import { Link, to } from '../router';
import { Table, type Column } from '../table';
import { Badge, Card, CopyButton, Loading, Page, Problem, useConfirm } from '../ui';
import { historySteps, Timeline, type Step } from './event';
import { QueueVerbButton } from './queue';

const columns: Column<HandlerResult>[] = [
  { title: 'Handler', cell: (one) => one.handler },
  { title: 'Result', minor: true, cell: (one) => <Badge text={one.result} /> },
  { title: 'Transient failures', number: true, minor: true, cell: (one) => count(one.failed) },
  {
    title: 'Error',
    wide: true,
    cell: (one) => (
      <>
        <span class="on-phone">
          <Badge text={one.result} />
        </span>
        {one.error}
      </>
    ),
  },
];

function stepsOf(event: QueueEvent): Step[] {
  const steps: Step[] = [{ at: event.createdAt, title: 'Enqueued' }, ...historySteps(event.history)];
  const unwritten = event.crashes - event.history.filter((one) => one.outcome === 'CRASHED').length;
  // From before histories were kept.
  if (unwritten > 0 && event.history.length === 0) {
    steps.push({ at: null, title: plural(unwritten, 'worker died', 'workers died'), tone: 'bad' });
  }
  if (event.processingStartedAt && event.history.at(-1)?.attempt !== event.attempts) {
    steps.push({
      at: event.processingStartedAt,
      title: `Attempt ${count(event.attempts)}`,
      text: 'owner' in event && event.owner ? `by ${event.owner}` : undefined,
    });
  }
  if ('seq' in event) {
    steps.push({ at: event.finalizedAt, title: 'Finished', tone: event.status === 'COMPLETED' ? 'good' : 'bad' });
  } else if (event.quarantinedAt) {
    steps.push({ at: event.quarantinedAt, title: 'In quarantine', text: event.lastError ?? undefined, tone: 'bad' });
  } else if (event.status === 'PROCESSING') {
    steps.push({ at: event.leaseUntil ?? null, title: 'Its worker has it until', tone: 'next' });
  } else {
    steps.push({ at: event.availableAt, title: 'Due', text: event.lastError ?? undefined, tone: 'next' });
  }
  return steps;
}

export function QueueEventView({ id }: { id: string }) {
  const { data: event, error, reload } = useResource((signal) => api.queueEvent(id, signal), [id], 5000);
  const [dialog, ask] = useConfirm();
  const finished = event !== null && 'seq' in event;
  const failed = event?.results.some((one) => one.result !== 'success');
  const filter = { ids: [Number(id)] };
  const verb = (name: 'requeue' | 'cancel' | 'release' | 'replay') => (
    <QueueVerbButton verb={name} filter={filter} then={reload} ask={ask} />
  );
  return (
    <Page
      title={event?.type ?? 'Event of the queue'}
      lead={
        <>
          <Link href={to('queue')}>Queue</Link> · {id} · <code>{event?.eventId}</code>
        </>
      }
      actions={
        event && (
          <>
            {finished && verb('replay')}
            {!('seq' in event) && event.quarantinedAt && verb('release')}
            {!('seq' in event) && event.status === 'PROCESSING' && verb('requeue')}
            {!finished && verb('cancel')}
            <CopyButton label="Copy as curl" text={() => `curl ${shellQuoted(`${location.origin}/api/queue/events/${encodeURIComponent(id)}`)}`} />
          </>
        )
      }
    >
      {dialog}
      {error && <Problem error={error} retry={reload} what="The event cannot be read" item />}
      {!event && !error && <Loading />}
      {event && (
        <div class="two">
          <div>
            <Card title="What its handlers said">
              {event.results.length === 0 ? (
                <p class="muted">No handler has said anything yet.</p>
              ) : (
                <Table label="Handlers' results" columns={columns} rows={event.results} id={(one) => one.handler} wrap />
              )}
            </Card>
            <Card>
              <Payload content={event} />
            </Card>
          </div>
          <div>
            <Card title="Its way" aside={<Badge text={event.status} />}>
              <Timeline steps={stepsOf(event)} />
              {event.history.length === 0 && event.crashes === 0 && event.attempts < 2 && !failed && <p class="muted">No attempt has failed.</p>}
            </Card>
            <Card title="Headers">
              <Headers headers={event.headers} />
            </Card>
          </div>
        </div>
      )}
    </Page>
  );
}
