// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from 'preact';
import { api, keptAttempts, type FailedAttempt, type OutboxEvent } from '../api';
import { count, plural, shellQuoted, time } from '../format';
import { useResource } from '../hooks';
import { Headers, Payload } from '../payload';
import { Link, to } from '../router';
import { ActButton, Badge, Card, CopyButton, Loading, Page, Problem, Time, useConfirm } from '../ui';
import { OutboxVerbButton } from './verbs';

export interface Step {
  at: string | null;
  title: string;
  text?: ComponentChildren;
  tone?: 'good' | 'bad' | 'warn' | 'next';
}

export function Timeline({ steps }: { steps: Step[] }) {
  return (
    <ol class="timeline" aria-label="Its way">
      {steps.map((step, i) => (
        <li key={i} class={step.tone ?? ''}>
          <p>
            <span class="strong">{step.title}</span> {step.at && <Time at={step.at} />}
          </p>
          {step.text && <p class="muted break">{step.text}</p>}
        </li>
      ))}
    </ol>
  );
}

const failedStep = ({ attempt, at, node, error, outcome }: FailedAttempt): Step => ({
  at,
  title: outcome === 'CRASHED' ? `Attempt ${count(attempt)}: its worker died` : `Attempt ${count(attempt)} failed`,
  text: [node && `on ${node}`, error].filter(Boolean).join(': ') || undefined,
  tone: outcome === 'CRASHED' ? 'bad' : 'warn',
});

/// The attempts, with a word about those that are not kept.
export const historySteps = (history: FailedAttempt[]): Step[] => [
  ...(history.length < keptAttempts ? [] : [{ at: null, title: 'Earlier attempts are not kept' }]),
  ...history.map(failedStep),
];

/// Its attempts as steps, with a word about what is not known of them.
function attemptSteps(event: OutboxEvent): Step[] {
  const { history } = event;
  if (history.length === 0 && event.attempts > 0) {
    // Made before histories were kept.
    return [{ at: null, title: plural(event.attempts, 'attempt failed', 'attempts failed'), text: event.lastError ?? undefined, tone: 'warn' }];
  }
  const steps: Step[] = history.length < keptAttempts ? [] : [{ at: null, title: 'Earlier attempts are not kept' }];
  history.forEach((one, i) => {
    steps.push(failedStep(one));
    const last = i === history.length - 1;
    if (one.outcome === 'DEAD' && (!last || event.status !== 'DEAD')) {
      steps.push({ at: one.at, title: 'Given up: a dead letter', tone: 'bad' }, { at: null, title: 'Replayed' });
    }
  });
  return steps;
}

/// From its birth to its end, or to what comes next.
export function stepsOf(event: OutboxEvent): Step[] {
  const steps: Step[] = [
    { at: event.occurredAt, title: 'Happened' },
    { at: event.createdAt, title: 'Written to the outbox' },
    ...attemptSteps(event),
  ];
  if (event.status === 'DONE') {
    steps.push({ at: event.doneAt, title: 'Delivered', text: `with attempt ${count(event.attempts + 1)}`, tone: 'good' });
  } else if (event.status === 'DEAD') {
    const cancelled = event.history.at(-1)?.outcome !== 'DEAD' && event.lastError?.startsWith('cancelled: ');
    steps.push({
      at: event.doneAt,
      title: cancelled ? 'Cancelled: a dead letter' : 'Given up: a dead letter',
      text: `${cancelled ? `${event.lastError?.slice('cancelled: '.length)}. ` : ''}It stays until somebody replays or purges it.`,
      tone: 'bad',
    });
  } else {
    const due = Date.parse(event.availableAt) <= Date.now();
    steps.push({
      at: event.availableAt,
      title: due ? 'Due since' : 'Next attempt',
      text: event.owner ? `taken by ${event.owner}${event.leaseUntil ? `, until ${time(event.leaseUntil)}` : ''}` : due ? 'waits for a dispatcher' : undefined,
      tone: 'next',
    });
  }
  return steps;
}

/// Whether a requeue changes anything: a node has it, or it waits for its retry.
const canBeRequeued = (event: OutboxEvent): boolean =>
  event.owner !== null || (Date.parse(event.availableAt) > Date.now() && (event.status === 'RETRY' || event.lastError !== null));

/// The same event again, under a new id.
export function publishAgain(event: OutboxEvent): string {
  const { type, aggregateType, aggregateId, tenantId, orderingKey, headers } = event;
  const body: Record<string, unknown> = { type };
  for (const [name, value] of Object.entries({ aggregateType, aggregateId, tenantId, orderingKey })) {
    if (value) body[name] = value;
  }
  if (headers && typeof headers === 'object') body.headers = headers;
  if (event.payload !== undefined) body.payloadJson = event.payload;
  else body.payloadBase64 = event.payloadBase64;
  return [
    `curl ${shellQuoted(`${location.origin}/api/events`)}`,
    `-H 'Content-Type: application/json'`,
    `--data-binary ${shellQuoted(JSON.stringify(body))}`,
  ].join(' \\\n  ');
}

export function EventView({ id }: { id: string }) {
  const { data: event, error, reload } = useResource((signal) => api.outboxEvent(id, signal), [id], 5000);
  const [dialog, ask] = useConfirm();
  const pending = event?.status === 'NEW' || event?.status === 'RETRY';
  return (
    <Page
      title={event ? event.type : 'Event'}
      lead={
        <>
          <Link href={to('events')}>All events</Link> · <code>{id}</code>
        </>
      }
      actions={
        event && (
          <>
            {event.status === 'DEAD' && (
              <ActButton
                needs="/api/outbox/dead/replay"
                class="primary"
                onClick={() =>
                  ask({
                    title: 'Replay this dead letter?',
                    text: 'It is tried again from the first attempt on.',
                    verb: 'Replay',
                    act: async () => {
                      const { events } = await api.replayDead({ filter: { ids: [id] } });
                      reload();
                      return `${plural(events, 'event')} replayed`;
                    },
                  })
                }
              >
                Replay
              </ActButton>
            )}
            {pending && canBeRequeued(event) && <OutboxVerbButton verb="requeue" filter={{ ids: [id] }} then={reload} ask={ask} />}
            {pending && <OutboxVerbButton verb="cancel" filter={{ ids: [id] }} then={reload} ask={ask} />}
            <CopyButton
              label="Copy as curl"
              text={() => `curl ${shellQuoted(`${location.origin}/api/outbox/events/${encodeURIComponent(id)}`)}`}
            />
            <CopyButton label="Copy as curl that publishes it again" text={() => publishAgain(event)} />
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
            <Card>
              <Payload content={event} />
            </Card>
            <Card title="Headers">
              <Headers headers={event.headers} />
            </Card>
          </div>
          <div>
            <Card title="Its way" aside={<Badge text={event.status} />}>
              <Timeline steps={stepsOf(event)} />
              {event.history.length === 0 && event.attempts === 0 && <p class="muted">No attempt has failed.</p>}
            </Card>
            <Card title="Facts">
              <dl class="facts">
                <div><dt>Failed attempts</dt><dd>{count(event.attempts)}</dd></div>
                <div><dt>Aggregate</dt><dd>{[event.aggregateType, event.aggregateId].filter(Boolean).join(' ') || '–'}</dd></div>
                <div><dt>Tenant</dt><dd>{event.tenantId ?? '–'}</dd></div>
                <div><dt>Ordering key</dt><dd>{event.orderingKey ?? '–'}</dd></div>
                <div><dt>Created</dt><dd>{time(event.createdAt)}</dd></div>
              </dl>
            </Card>
          </div>
        </div>
      )}
    </Page>
  );
}
