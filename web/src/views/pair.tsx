// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from 'preact/hooks';
import { api } from '../api';
import { Chart } from '../chart';
import { count, duration } from '../format';
import { lagOf, remember } from '../history';
import { useResource } from '../hooks';
import { useRefusal } from '../rights';
import { Link, to } from '../router';
import { ActButton, Ago, announce, Badge, Card, Field, Figure, Loading, Page, Problem, Time, useConfirm } from '../ui';
import { pairRoute, pairVerb } from './topics';

const rewindRoute = pairRoute('rewind');

export function PairView({ topic, publisher }: { topic: string; publisher: string }) {
  const { data: pair, error, reload } = useResource(
    (signal) => api.pair(topic, publisher, signal),
    [topic, publisher],
    2000,
  );
  const [dialog, ask] = useConfirm();
  const [position, setPosition] = useState('');
  const past = useMemo(() => {
    if (pair) remember([pair]);
    return lagOf(topic, publisher);
  }, [pair]);
  const wanted = /^\d+$/.test(position.trim()) ? Number(position.trim()) : null;
  const name = `${topic} → ${publisher}`;
  const refused = useRefusal(rewindRoute);

  const rewind = (event: Event) => {
    event.preventDefault();
    if (refused) announce(refused, true); // Enter in the field
    if (!pair || wanted === null || refused) return;
    const again = Math.max(0, pair.lastPosition - wanted);
    const skipped = Math.max(0, wanted - pair.lastPosition);
    ask({
      title: `Move ${name} to position ${count(wanted)}?`,
      text: (
        <p>
          It stands at {count(pair.lastPosition)}.{' '}
          {skipped > 0
            ? `Up to ${count(skipped)} events are never published to ${publisher}.`
            : `Up to ${count(again)} events are published again; receivers see them twice unless they know them by id.`}
        </p>
      ),
      verb: skipped > 0 ? 'Skip forward' : 'Rewind',
      danger: true,
      act: async () => {
        await api.rewind(topic, publisher, wanted);
        setPosition('');
        reload();
        return `${name} goes on behind position ${count(wanted)}`;
      },
    });
  };

  return (
    <Page
      title={name}
      lead={<Link href={to('topics')}>All pairs</Link>}
      actions={
        pair && (
          <>
            {pair.status === 'ACTIVE' ? (
              <ActButton
                needs={pairRoute('pause')}
                onClick={() =>
                  ask({
                    title: 'Pause this pair?',
                    text: `${name}: events wait in the database until somebody resumes it.`,
                    verb: 'Pause',
                    act: async () => {
                      await api.pairVerb(topic, publisher, 'pause');
                      reload();
                      return `Paused ${name}`;
                    },
                  })
                }
              >
                Pause
              </ActButton>
            ) : (
              <ActButton needs={pairRoute('resume')} class="primary" onClick={() => void pairVerb(pair, 'resume', reload)}>
                Resume
              </ActButton>
            )}
            <ActButton
              needs={pairRoute('reset')}
              onClick={() =>
                ask({
                  title: 'Forget its errors?',
                  text: `${name}: the count of errors and the last one are cleared; its position stays.`,
                  verb: 'Reset',
                  act: async () => {
                    await api.pairVerb(topic, publisher, 'reset');
                    reload();
                    return `Errors forgotten: ${name}`;
                  },
                })
              }
            >
              Reset errors
            </ActButton>
          </>
        )
      }
    >
      {dialog}
      {error && <Problem error={error} retry={reload} what="The pair cannot be read" item />}
      {!pair && !error && <Loading />}
      {pair && (
        <>
          <dl class="figures" aria-live="polite">
            <div class="figure">
              <dt>Status</dt>
              <dd>
                <Badge text={pair.status} />
              </dd>
            </div>
            <Figure label="Lag" value={count(pair.lagEvents)} note={pair.lagSeconds > 0 ? `events, ${duration(pair.lagSeconds)}` : 'events'} />
            <Figure label="Position" value={count(pair.lastPosition)} note={`of ${count(pair.head)}`} />
            <Figure label="Errors in a row" value={count(pair.errorCount)} tone={pair.errorCount > 0 ? 'warn' : undefined} />
            <Figure
              label="Dead letters"
              value={count(pair.deadLetters)}
              tone={pair.deadLetters > 0 ? 'bad' : undefined}
              note={pair.deadLetters > 0 && <Link href={to('topics', topic, publisher, 'dead')}>Look at them</Link>}
            />
          </dl>
          {pair.lastError && (
            <div class="problem">
              <p class="strong">Last error</p>
              <p>{pair.lastError}</p>
            </div>
          )}
          <Card title="Lag over time" aside={<small class="muted">while this tab looks</small>}>
            {past[0] && past[0].length > 1 ? (
              <Chart title="Events behind the head" data={past} lines={[{ label: 'Lag', color: 'line-1', format: count }]} />
            ) : (
              <p class="muted">The chart begins with the second figure, in a moment.</p>
            )}
          </Card>
          <Card title="Who publishes">
            <dl class="facts">
              <div><dt>Leader</dt><dd>{pair.leader ?? 'nobody'}</dd></div>
              <div><dt>Epoch</dt><dd>{count(pair.epoch)}</dd></div>
              <div><dt>Leads since</dt><dd><Time at={pair.leaderSince} /></dd></div>
              <div><dt>Heartbeat</dt><dd><Ago at={pair.leaderHeartbeat} /></dd></div>
              <div><dt>Last published</dt><dd><Ago at={pair.lastPublishedAt} /></dd></div>
              <div><dt>Pair made</dt><dd><Time at={pair.createdAt} /></dd></div>
            </dl>
          </Card>
          <Card title="Rewind">
            <form class="filters" onSubmit={rewind}>
              <Field
                label="Publish next what is behind position"
                name="position"
                value={position}
                onInput={setPosition}
                placeholder={`0 to ${pair.head}`}
              />
              <ActButton needs={rewindRoute} type="submit" class="danger" disabled={wanted === null}>
                Rewind…
              </ActButton>
            </form>
            <p class="muted">0 begins with the first event of the store.</p>
          </Card>
        </>
      )}
    </Page>
  );
}
