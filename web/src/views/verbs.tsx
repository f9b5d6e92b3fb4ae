// SPDX-License-Identifier: Apache-2.0
// Buttons for what is done to events, one or many: they count first, so that the question says how many.
import { api, type OutboxFilter } from '../api';
import { plural } from '../format';
import { ActButton, type Question } from '../ui';

export interface VerbWords {
  button: string;
  title: string;
  text: string;
  danger?: boolean;
}

interface Shared {
  then: () => void;
  ask: (question: Question) => void;
  small?: boolean;
  label?: string;
}

async function questionOf(words: VerbWords, run: (dryRun: boolean) => Promise<{ events: number }>, then: () => void): Promise<Question> {
  const { events } = await run(true);
  return {
    title: words.title,
    text: (
      <>
        <p class="strong">{plural(events, 'event')}</p>
        <p>{words.text}</p>
      </>
    ),
    verb: words.button,
    danger: words.danger,
    act: async () => {
      const done = await run(false);
      then();
      return `${words.button}: ${plural(done.events, 'event')}`;
    },
  };
}

export function VerbButton({ needs, words, run, then, ask, small, label }: Shared & {
  needs: string; // the route that `run` asks
  words: VerbWords;
  run: (dryRun: boolean) => Promise<{ events: number }>;
}) {
  const click = async () => {
    try {
      ask(await questionOf(words, run, then));
    } catch (why) {
      // The dialog shows the same refusal, with its hint.
      ask({ title: words.title, text: words.text, verb: words.button, act: () => Promise.reject(why) });
    }
  };
  return (
    <ActButton needs={needs} class={small ? 'small' : ''} label={label} onClick={() => void click()}>
      {words.button}
      {!small && '…'}
    </ActButton>
  );
}

export type OutboxVerb = 'requeue' | 'cancel';

const outboxWords: Record<OutboxVerb, VerbWords> = {
  requeue: {
    button: 'Requeue',
    title: 'Deliver it now?',
    text: 'Whoever has it loses it, and a wait for a retry ends. With an ordering key it is due when the lease of its node ends.',
  },
  cancel: {
    button: 'Cancel event',
    title: 'Give it up?',
    text: 'It becomes a dead letter, and is not delivered unless it is replayed. A listener that runs right now is not interrupted.',
    danger: true,
  },
};

export function OutboxVerbButton({ verb, filter, of, ...shared }: Omit<Shared, 'label'> & { verb: OutboxVerb; filter: OutboxFilter; of?: string }) {
  const words = outboxWords[verb];
  return (
    <VerbButton
      {...shared}
      needs={`/api/outbox/${verb}`}
      words={words}
      run={(dryRun) => api.outboxVerb(verb, { filter, dryRun })}
      label={of && `${words.button} ${of}`}
    />
  );
}
