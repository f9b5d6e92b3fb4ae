// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from 'preact';
import { api, type OutboxEvent } from '../api';
import { count, plural, shellQuoted, time } from '../format';
import { useResource } from '../hooks';
import { Headers, Payload } from '../payload';
import { Link, to } from '../router';
import { Badge, Card, CopyButton, Loading, Page, Problem, Time, useConfirm } from '../ui';

export interface Step {
  at: string | null;
  title: string;
  text?: ComponentChildren;
  tone?: 'good' | 'bad' | 'warn' | 'next';
}

export function Timeline({ steps }: { steps: Step[] }) {
  return (
    <ol class="timeline">
      {steps.map((step) => (
        <li key={step.title} class={step.tone ?? ''}>
          <p>
            <span class="strong">{step.title}</span> {step.at && <Time at={step.at} />}
          </p>
          {step.text && <p class="muted break">{step.text}</p>}
        </li>
      ))}
    </ol>
  );
}

/// What the row knows of its way. Only the last attempt's error is kept.
export function stepsOf(event: OutboxEvent): Step[] {
  const steps: Step[] = [
    { at: event.occurredAt, title: 'Happened' },
    { at: event.createdAt, title: 'Written to the outbox' },
  ];
  const failed = event.status === 'DONE' ? event.attempts - 1 : event.attempts;
  if (failed > 0) {
    steps.push({
      at: null,
      title: plural(failed, 'attempt failed', 'attempts failed'),
      text: event.lastError ?? undefined,
      tone: 'warn',
    });
  }
  if (event.status === 'DONE') {
    steps.push({ at: event.doneAt, title: 'Delivered', text: `with attempt ${count(event.attempts)}`, tone: 'good' });
  } else if (event.status === 'DEAD') {
    steps.push({
      at: event.doneAt,
      title: 'Given up: a dead letter',
      text: failed > 0 ? 'It stays until somebody replays or purges it.' : event.lastError,
      tone: 'bad',
    });
  } else {
    const due = Date.parse(event.availableAt) <= Date.now();
    steps.push({
      at: event.availableAt,
      title: due ? 'Due since' : 'Next attempt',
      text: event.owner ? `taken by ${event.owner}` : due ? 'waits for a dispatcher' : undefined,
      tone: 'next',
    });
  }
  return steps;
}

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
              <button
                type="button"
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
              </button>
            )}
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
            </Card>
            <Card title="Facts">
              <dl class="facts">
                <div><dt>Attempts</dt><dd>{count(event.attempts)}</dd></div>
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
