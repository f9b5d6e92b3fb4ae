// SPDX-License-Identifier: Apache-2.0
import { useEffect } from 'preact/hooks';
import { api, type Pair } from '../api';
import { count, duration } from '../format';
import { remember } from '../history';
import { useResource } from '../hooks';
import { go, Link, query as address, to } from '../router';
import { Table, type Column } from '../table';
import { ActButton, Ago, Badge, Empty, Field, Loading, Page, Problem, useConfirm, announce } from '../ui';
import { ApiError } from '../api';

/// As the server names the route.
export const pairRoute = (verb: string) => `/api/topics/{topic}/publishers/{publisher}/${verb}`;

export async function pairVerb(pair: Pair, verb: 'pause' | 'resume' | 'reset', then: () => void): Promise<void> {
  try {
    await api.pairVerb(pair.topic, pair.publisher, verb);
    const done = { pause: 'Paused', resume: 'Resumed', reset: 'Errors forgotten:' }[verb];
    announce(`${done} ${pair.topic} → ${pair.publisher}`);
  } catch (why) {
    announce(why instanceof ApiError ? `${why.problem.title}: ${why.message}` : String(why), true);
  }
  then();
}

export function TopicsView({ query }: { query: URLSearchParams }) {
  const { data: pairs, error, reload } = useResource((signal) => api.pairs(signal), ['pairs'], 2000);
  const [dialog, ask] = useConfirm();
  useEffect(() => {
    if (pairs) remember(pairs);
  }, [pairs]);
  const text = query.get('q') ?? '';
  const state = query.get('status') ?? '';
  const shown = (pairs ?? []).filter(
    (pair) => (!state || pair.status === state) && (!text || `${pair.topic} ${pair.publisher}`.includes(text)),
  );
  const columns: Column<Pair>[] = [
    { title: 'Topic', cell: (pair) => <Link href={to('topics', pair.topic, pair.publisher)}>{pair.topic}</Link> },
    { title: 'Publisher', cell: (pair) => pair.publisher },
    { title: 'Status', cell: (pair) => <Badge text={pair.status} /> },
    { title: 'Lag', number: true, cell: (pair) => count(pair.lagEvents) },
    { title: 'Behind', number: true, minor: true, cell: (pair) => (pair.lagSeconds > 0 ? duration(pair.lagSeconds) : '–') },
    {
      title: 'Dead letters',
      number: true,
      cell: (pair) =>
        pair.deadLetters > 0 ? <Link href={to('topics', pair.topic, pair.publisher, 'dead')}>{count(pair.deadLetters)}</Link> : '0',
    },
    { title: 'Position', number: true, minor: true, cell: (pair) => count(pair.lastPosition) },
    { title: 'Leader', minor: true, cell: (pair) => pair.leader ?? '–' },
    { title: 'Published', minor: true, cell: (pair) => <Ago at={pair.lastPublishedAt} /> },
    { title: 'Last error', wide: true, minor: true, cell: (pair) => pair.lastError ?? '' },
    {
      title: 'Action',
      action: true,
      cell: (pair) =>
        pair.status === 'ACTIVE' ? (
          <ActButton
            needs={pairRoute('pause')}
            class="small"
            label={`Pause ${pair.topic} to ${pair.publisher}`}
            onClick={() =>
              ask({
                title: 'Pause this pair?',
                text: `${pair.topic} → ${pair.publisher}: events wait in the database until somebody resumes it.`,
                verb: 'Pause',
                act: async () => {
                  await api.pairVerb(pair.topic, pair.publisher, 'pause');
                  reload();
                  return `Paused ${pair.topic} → ${pair.publisher}`;
                },
              })
            }
          >
            Pause
          </ActButton>
        ) : (
          <ActButton
            needs={pairRoute('resume')}
            class="small"
            label={`Resume ${pair.topic} to ${pair.publisher}`}
            onClick={() => void pairVerb(pair, 'resume', reload)}
          >
            Resume
          </ActButton>
        ),
    },
  ];
  return (
    <Page title="Topics" lead="A pair is a topic and a publisher that takes its events, in order.">
      {dialog}
      {error && <Problem error={error} retry={reload} what="The pairs cannot be read" />}
      {!pairs && !error && <Loading />}
      {pairs && pairs.length === 0 && (
        <Empty title="No topic yet">
          Name one in the configuration, and who takes its events:
          <pre class="code">{'[relay.topics.orders]\nrequired-tags = ["order_id"]\npublishers = ["orders-file"]'}</pre>
        </Empty>
      )}
      {pairs && pairs.length > 0 && (
        <>
          <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
            <Field label="Name has" name="q" value={text} onInput={(q) => go(address({ q, status: state }), true)} />
            <Field
              label="Status"
              name="status"
              value={state}
              list={['', 'ACTIVE', 'PAUSED', 'FAILED']}
              onInput={(status) => go(address({ q: text, status }), true)}
            />
          </form>
          {shown.length === 0 ? (
            <Empty title="No pair matches">Ask for less, or clear the fields.</Empty>
          ) : (
            <Table
              label="Pairs"
              columns={columns}
              rows={shown}
              id={(pair) => `${pair.topic}\n${pair.publisher}`}
              open={(pair) => go(to('topics', pair.topic, pair.publisher))}
            />
          )}
        </>
      )}
    </Page>
  );
}
