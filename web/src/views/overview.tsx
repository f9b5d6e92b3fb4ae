// SPDX-License-Identifier: Apache-2.0
import { useMemo } from 'preact/hooks';
import type { Overview } from '../api';
import { Chart } from '../chart';
import { count, duration, plural, rate } from '../format';
import { useLive } from '../hooks';
import { live } from '../live';
import { Link, to } from '../router';
import { Badge, Card, Figure, Loading, Page, Problem } from '../ui';

/// Where one looks next, by the cause that the server names.
const placeOf: Record<string, string> = {
  'failed-pair': to('topics'),
  'failing-pair': to('topics'),
  'paused-pair': to('topics'),
  'no-leader': to('nodes'),
  'unled-pair': to('topics'),
  'still-pair': to('topics'),
  'store-set-back': to('topics'),
  'dead-node': to('nodes'),
  'unhealthy-sink': to('nodes'),
  'outbox-waits': `${to('events')}?status=PENDING`,
  'queue-waits': to('queue'),
};

/// What it does, without the reason, which is told below: "waiting for the database: connection refused".
const stateOf = (phase: string) => phase.split(':', 1)[0];

function Why({ overview }: { overview: Overview }) {
  const [worst, ...others] = overview.findings;
  return (
    <section class={worst ? 'why bad' : 'why good'} aria-live="polite" aria-label="Why is it stuck?">
      <p class="strong" id="stuck">
        {worst ? worst.text : overview.stuck.charAt(0).toUpperCase() + overview.stuck.slice(1)}
      </p>
      {worst && (
        <p>
          {worst.hint} {placeOf[worst.cause] && <Link href={placeOf[worst.cause] as string}>Look at it</Link>}
        </p>
      )}
      {others.length > 0 && (
        <details>
          <summary>{plural(others.length, 'more cause')}</summary>
          <ul>
            {others.map((one) => (
              <li key={one.text}>
                {one.text} <span class="muted">{one.hint}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function Figures({ overview }: { overview: Overview }) {
  const figures = overview.figures;
  const last = live.samples()[live.samples().length - 1];
  if (!figures) return <p class="muted">The figures come back with the database.</p>;
  const { outbox, queue, pairs, leaders, store } = figures;
  const leader = leaders.find((one) => one.alive) ?? leaders[0];
  const perSecond = (value: number | null | undefined) => (value === null || value === undefined ? '–' : rate(value));
  return (
    <dl class="figures ten">
      <Figure label="Published" value={perSecond(last?.inRate)} note="events/s" />
      <Figure label="Delivered" value={perSecond(last?.doneRate)} note="events/s" />
      <Figure
        label="Waiting"
        value={count(outbox.pending)}
        note={outbox.retrying > 0 ? `${count(outbox.retrying)} tried and not taken` : 'in the outbox'}
      />
      <Figure
        label="Oldest in the outbox"
        value={outbox.oldestUndeliveredSeconds > 0 ? duration(outbox.oldestUndeliveredSeconds) : '–'}
        note={outbox.oldestUndeliveredSeconds > 0 ? 'waits' : 'none waits'}
        tone={outbox.oldestUndeliveredSeconds > 60 ? 'warn' : undefined}
      />
      <Figure
        label="Dead letters"
        value={count(outbox.dead + pairs.deadLetters)}
        note={
          <>
            {outbox.dead > 0 && <Link href={to('dead')}>{count(outbox.dead)} in the outbox</Link>}
            {outbox.dead > 0 && pairs.deadLetters > 0 && ', '}
            {pairs.deadLetters > 0 && <Link href={to('dead')}>{count(pairs.deadLetters)} in the relay</Link>}
            {outbox.dead + pairs.deadLetters === 0 && 'none'}
          </>
        }
        tone={outbox.dead + pairs.deadLetters > 0 ? 'bad' : undefined}
      />
      <Figure
        label="Largest lag"
        value={count(pairs.maxLagEvents)}
        note={pairs.maxLagSeconds > 0 ? `events, ${duration(pairs.maxLagSeconds)}` : 'events'}
        tone={pairs.maxLagSeconds > 60 ? 'warn' : undefined}
      />
      <Figure
        label="Pairs"
        value={count(pairs.active)}
        note={
          <>
            active, <span class="nowrap">{count(pairs.paused)} paused,</span> <span class="nowrap">{count(pairs.failed)} failed</span>
          </>
        }
        tone={pairs.failed > 0 ? 'bad' : pairs.paused > 0 ? 'warn' : undefined}
      />
      <Figure
        label="Leader"
        value={leader ? leader.node : '–'}
        note={
          leader ? (
            <>
              epoch {count(leader.epoch)}
              {leaders.length > 1 && <>, <Link href={to('nodes')}>{plural(leaders.length, 'lease')}</Link></>}
            </>
          ) : (
            'nobody leads'
          )
        }
        tone={leader && (leader.alive ? 'words' : 'bad')}
      />
      <Figure
        label="Queue"
        value={count(queue.pending)}
        note={[
          queue.oldestPendingSeconds > 0 && `waiting, the oldest for ${duration(queue.oldestPendingSeconds)}`,
          queue.quarantined > 0 ? `${count(queue.quarantined)} in quarantine` : `${count(queue.processing)} in progress`,
        ]
          .filter(Boolean)
          .join('; ')}
        tone={queue.quarantined > 0 ? 'bad' : undefined}
      />
      <Figure label="Store" value={count(store.head)} note="last position" />
    </dl>
  );
}

function Charts() {
  const samples = live.samples();
  const version = samples[samples.length - 1]?.at ?? 0;
  const data = useMemo(() => {
    const at = samples.map((one) => one.at);
    const of = (pick: (one: (typeof samples)[number]) => number | null) => samples.map(pick);
    return {
      rates: [at, of((one) => one.inRate), of((one) => one.doneRate), of((one) => one.appendRate)],
      waiting: [at, of((one) => one.pending), of((one) => one.queue), of((one) => one.dead)],
      lag: [at, of((one) => one.lagEvents)],
      age: [at, of((one) => one.oldest), of((one) => one.oldestQueued ?? null), of((one) => one.lagSeconds)],
    };
  }, [version]);
  if (samples.length < 2) return <p class="muted">The charts begin with the second figure, in a moment.</p>;
  return (
    <div class="charts">
      <Chart
        title="Events per second"
        data={data.rates}
        lines={[
          { label: 'Published', color: 'line-1', format: rate },
          { label: 'Delivered', color: 'line-2', format: rate },
          { label: 'Appended', color: 'line-3', format: rate },
        ]}
      />
      <Chart
        title="Events that wait"
        data={data.waiting}
        lines={[
          { label: 'Outbox', color: 'line-1', format: count },
          { label: 'Queue', color: 'line-2', format: count },
          { label: 'Dead', color: 'line-3', format: count },
        ]}
      />
      <Chart title="Lag of the pair that is furthest behind" data={data.lag} lines={[{ label: 'Events', color: 'line-1', format: count }]} />
      <Chart
        title="How long the oldest has waited"
        data={data.age}
        lines={[
          { label: 'Outbox', color: 'line-1', format: duration },
          { label: 'Queue', color: 'line-2', format: duration },
          { label: 'Relay', color: 'line-3', format: duration },
        ]}
      />
    </div>
  );
}

export function OverviewView() {
  const { overview, error } = useLive();
  const sick = overview?.sinks.filter((sink) => !sink.healthy) ?? [];
  return (
    <Page
      title="Overview"
      lead={
        overview && (
          <>
            {overview.node.name ?? 'This node'} is {stateOf(overview.node.phase)}, up for {duration(overview.node.uptimeSeconds)}, on{' '}
            {overview.database.name}
          </>
        )
      }
    >
      {!overview && (error ? <Problem error={error} what="The overview cannot be read" /> : <Loading />)}
      {overview && (
        <>
          <Why overview={overview} />
          <Figures overview={overview} />
          {sick.length > 0 && (
            <p>
              {sick.map((sink) => (
                <span key={sink.name}>
                  Sink {sink.name} <Badge text="unhealthy" />{' '}
                </span>
              ))}
            </p>
          )}
          <Card title="Over time" aside={<small class="muted">this tab's last half hour</small>}>
            <Charts />
          </Card>
        </>
      )}
    </Page>
  );
}
