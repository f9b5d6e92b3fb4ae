// SPDX-License-Identifier: Apache-2.0
// The overview as it changes: server-sent events where the server has them, asked for every two seconds where not.
// EventSource cannot send a token, so the stream is read by fetch.
import { ApiError, api, headers, noAnswer, refusal, type Overview } from './api';

export type Connection = 'connecting' | 'live' | 'polling' | 'lost' | 'denied' | 'missing';

export interface LiveState {
  overview: Overview | null;
  connection: Connection;
  error: ApiError | null;
}

/// One second of the past. Rates are per second since the sample before.
export interface Sample {
  at: number; // seconds since 1970
  inRate: number | null;
  doneRate: number | null;
  appendRate: number | null;
  pending: number;
  dead: number;
  oldest: number; // of the outbox
  oldestQueued: number | null; // not known of samples that an older page has taken
  lagEvents: number;
  lagSeconds: number;
  queue: number;
}

const mostSamples = 1800; // half an hour of seconds
const pollEvery = 2000;
const comeBackAfter = 1500;
const silentAfter = 10_000;
const storeKey = 'postrider.samples';

let state: LiveState = { overview: null, connection: 'connecting', error: null };
let samples: Sample[] = remembered();
let totals: { at: number; all: number; done: number; head: number } | null = null;
const listeners = new Set<() => void>();

function remembered(): Sample[] {
  try {
    const list = JSON.parse(sessionStorage.getItem(storeKey) ?? '[]') as Sample[];
    const since = Date.now() / 1000 - mostSamples;
    return Array.isArray(list) ? list.filter((one) => one.at > since) : [];
  } catch {
    return [];
  }
}

export const live = {
  state: () => state,
  samples: () => samples as readonly Sample[],
  subscribe(call: () => void): () => void {
    listeners.add(call);
    return () => listeners.delete(call);
  },
};

function change(to: Partial<LiveState>): void {
  state = { ...state, ...to };
  for (const call of listeners) call();
}

function take(overview: Overview, connection: Connection): void {
  const figures = overview.figures;
  if (figures) {
    const at = Date.parse(figures.at) / 1000;
    const last = samples[samples.length - 1];
    if (!last || at > last.at + 0.5) {
      const { outbox, queue, pairs, store } = figures;
      const now = { at, all: outbox.pending + outbox.done + outbox.dead, done: outbox.done, head: store.head };
      const before = totals;
      // Purges make totals smaller; that is no rate. After a gap there is none either.
      const rate = (a: number, b: number) =>
        before && at - before.at < 15 ? Math.max(0, (a - b) / (at - before.at)) : null;
      samples.push({
        at,
        inRate: before && rate(now.all, before.all),
        doneRate: before && rate(now.done, before.done),
        appendRate: before && rate(now.head, before.head),
        pending: outbox.pending,
        dead: outbox.dead + pairs.deadLetters,
        oldest: outbox.oldestUndeliveredSeconds,
        oldestQueued: queue.oldestPendingSeconds,
        lagEvents: pairs.maxLagEvents,
        lagSeconds: pairs.maxLagSeconds,
        queue: queue.pending,
      });
      if (samples.length > mostSamples) samples = samples.slice(-mostSamples);
      totals = now;
    }
  }
  change({ overview, connection, error: null });
}

const pause = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

/// Returns when the stream ends; throws ApiError when there is none.
async function stream(): Promise<void> {
  const end = new AbortController();
  cutStream = () => end.abort();
  let watch = setTimeout(() => end.abort(), silentAfter);
  const heard = () => {
    clearTimeout(watch);
    watch = setTimeout(() => end.abort(), silentAfter);
  };
  try {
    let answer: Response;
    try {
      answer = await fetch('/api/live', { headers: headers(), signal: end.signal, cache: 'no-store' });
    } catch (why) {
      throw noAnswer(why);
    }
    if (!answer.ok || !answer.body) throw await refusal(answer);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      let part: ReadableStreamReadResult<string>;
      try {
        part = await reader.read();
      } catch (why) {
        throw noAnswer(why);
      }
      if (part.done) throw noAnswer(null);
      heard();
      text += part.value;
      for (let cut = text.indexOf('\n\n'); cut >= 0; cut = text.indexOf('\n\n')) {
        const block = text.slice(0, cut);
        text = text.slice(cut + 2);
        const data = block
          .split('\n')
          .filter((line) => line.startsWith('data:'))
          .map((line) => line.slice(5).trimStart())
          .join('\n');
        if (data) take(JSON.parse(data) as Overview, 'live');
      }
    }
  } finally {
    clearTimeout(watch);
    cutStream = null;
    end.abort();
  }
}

const asError = (why: unknown): ApiError => (why instanceof ApiError ? why : noAnswer(why));

function connectionAfter(error: ApiError): Connection {
  if (error.problem.status === 401 || error.problem.status === 403) return 'denied';
  return error.problem.status === 404 ? 'missing' : 'lost';
}

let awake: (() => void) | null = null;
let cutStream: (() => void) | null = null;
let again = false;

/// After another token: at once, and not with what was opened by the one before.
export function retryLive(): void {
  again = cutStream !== null;
  cutStream?.();
  awake?.();
}

async function run(): Promise<never> {
  let canStream = true;
  for (;;) {
    try {
      if (canStream) await stream();
      take(await api.overview(), 'polling');
    } catch (why) {
      if (again) {
        again = false;
        continue;
      }
      const error = asError(why);
      if (canStream && (error.problem.status === 404 || error.problem.status === 503)) {
        canStream = false; // not on this server, or too many listen: ask for it
        continue;
      }
      canStream = true;
      change({ connection: connectionAfter(error), error });
    }
    const wait = state.connection === 'polling' ? pollEvery : comeBackAfter;
    await Promise.race([pause(wait), new Promise<void>((done) => (awake = done))]);
    awake = null;
  }
}

export function startLive(): void {
  addEventListener('pagehide', () => sessionStorage.setItem(storeKey, JSON.stringify(samples)));
  void run();
}
