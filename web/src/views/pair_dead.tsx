// SPDX-License-Identifier: Apache-2.0
// What a publisher did not take. The events stay in the store; what is discarded is the note that they were refused.
import { useState } from 'preact/hooks';
import { api, type RelayDeadLetter } from '../api';
import { count, plural } from '../format';
import { usePages } from '../hooks';
import { Link, to } from '../router';
import { Table, type Column } from '../table';
import { ActButton, Card, Detail, Empty, Loading, Page, Problem, Time, useConfirm } from '../ui';
import { PagesFoot } from './events';
import { StoredEventFacts } from './store';
import { pairRoute } from './topics';

/// What the publisher said; position and id, which it begins with, stand elsewhere.
const reasonOf = ({ error, position }: RelayDeadLetter) => {
  const [, at, reason] = /^event \S+ at position (\d+): (.+)$/s.exec(error) ?? [];
  return reason && Number(at) === position ? reason : error;
};

const columns: Column<RelayDeadLetter>[] = [
  { title: 'Position', number: true, cell: (letter) => count(letter.position) },
  { title: 'Type', cell: (letter) => letter.event?.type ?? <span class="muted">no longer in the store</span> },
  {
    title: 'Tags',
    minor: true,
    cell: (letter) => letter.event?.tags.map((tag) => <span key={tag} class="tag">{tag}</span>),
  },
  { title: 'Refused', minor: true, cell: (letter) => <Time at={letter.failedAt} /> },
  { title: 'Error', wide: true, cell: reasonOf },
];

export function PairDeadView({ topic, publisher }: { topic: string; publisher: string }) {
  const name = `${topic} → ${publisher}`;
  const pages = usePages((cursor, signal) => api.pairDead(topic, publisher, { limit: 50, cursor }, signal), [topic, publisher]);
  const [dialog, ask] = useConfirm();
  const [chosen, setChosen] = useState<RelayDeadLetter | null>(null);

  /// Counts first, so that the question says how many. What dies meanwhile is behind the position, and stays.
  const discard = async (untilPosition: number) => {
    const filter = { untilPosition };
    const title = `Discard dead letters up to position ${count(untilPosition)}?`;
    try {
      const { events } = await api.discardPairDead(topic, publisher, { filter, dryRun: true });
      ask({
        title,
        text: (
          <>
            <p class="strong">{plural(events, 'dead letter')}</p>
            <p>The events stay in the store, at their positions. That {publisher} did not take them is forgotten.</p>
          </>
        ),
        verb: 'Discard',
        danger: true,
        act: async () => {
          const done = await api.discardPairDead(topic, publisher, { filter });
          setChosen(null);
          pages.reload();
          return `Discarded: ${plural(done.events, 'dead letter')}`;
        },
      });
    } catch (why) {
      // The dialog shows the same refusal, with its hint.
      ask({ title, text: '', verb: 'Discard', danger: true, act: () => Promise.reject(why) });
    }
  };

  const discardColumn: Column<RelayDeadLetter> = {
    title: 'Action',
    action: true,
    cell: (letter) => (
      <span class="row-actions">
        <button type="button" class="small" aria-label={`Show dead letter at ${letter.position}`} onClick={() => setChosen(letter)}>
          Show
        </button>
        <ActButton
          needs={pairRoute('dead/discard')}
          class="small"
          label={`Discard up to ${letter.position}`}
          onClick={() => void discard(letter.position)}
        >
          Discard to here
        </ActButton>
      </span>
    ),
  };
  const last = pages.rows[pages.rows.length - 1];
  return (
    <Page
      title={`Dead letters of ${name}`}
      lead={<Link href={to('topics', topic, publisher)}>The pair</Link>}
      actions={
        <>
          <button type="button" onClick={pages.reload}>
            Refresh
          </button>
          {last && (
            <ActButton needs={pairRoute('dead/discard')} class="danger" onClick={() => void discard(last.position)}>
              {pages.more ? 'Discard those listed…' : 'Discard all…'}
            </ActButton>
          )}
        </>
      }
    >
      {dialog}
      {pages.error && <Problem error={pages.error} retry={pages.reload} what="The dead letters cannot be read" item />}
      {pages.rows.length > 0 && (
        <Card>
          <Table
            label="Dead letters of the pair"
            columns={[...columns, discardColumn]}
            rows={pages.rows}
            id={(letter) => String(letter.position)}
            open={setChosen}
            selected={chosen && String(chosen.position)}
            more={pages.more}
            onEnd={pages.loadMore}
          />
          <PagesFoot pages={pages} />
          <p class="muted">
            One comes again, with all events behind it, when the <Link href={to('topics', topic, publisher)}>pair</Link> is rewound to the
            position before it.
          </p>
        </Card>
      )}
      {pages.rows.length === 0 && pages.loading && <Loading />}
      {pages.rows.length === 0 && !pages.loading && !pages.error && (
        <Empty title="No dead letter">{publisher} has taken every event of {topic}, or is still being tried.</Empty>
      )}
      {chosen && (
        <Detail title={`${chosen.event?.type ?? 'Dead letter'} at ${count(chosen.position)}`} onClose={() => setChosen(null)}>
          <dl class="facts">
            <div><dt>Refused</dt><dd><Time at={chosen.failedAt} /></dd></div>
            <div><dt>Error</dt><dd>{reasonOf(chosen)}</dd></div>
          </dl>
          {chosen.event ? <StoredEventFacts event={chosen.event} /> : <p class="muted">The event is no longer in the store.</p>}
        </Detail>
      )}
    </Page>
  );
}
