// SPDX-License-Identifier: Apache-2.0
// What pairs' lags were while this tab looked at them. Bounded: the pairs that were looked at longest ago go first.
import type { Pair } from './api';

const mostPairs = 200;
const mostPoints = 900;
const lags = new Map<string, { at: number[]; lag: number[]; position: number[] }>();

export function remember(pairs: readonly Pair[]): void {
  const now = Date.now() / 1000;
  for (const pair of pairs.slice(0, mostPairs)) {
    const key = JSON.stringify([pair.topic, pair.publisher]);
    const past = lags.get(key) ?? { at: [], lag: [], position: [] };
    lags.delete(key);
    lags.set(key, past);
    if (now - (past.at[past.at.length - 1] ?? 0) < 0.5) continue;
    past.at.push(now);
    past.lag.push(pair.lagEvents);
    past.position.push(pair.lastPosition);
    for (const list of [past.at, past.lag, past.position]) if (list.length > mostPoints) list.shift();
  }
  for (const key of lags.keys()) {
    if (lags.size <= mostPairs) break;
    lags.delete(key);
  }
}

export function lagOf(topic: string, publisher: string): number[][] {
  const past = lags.get(JSON.stringify([topic, publisher]));
  return past ? [[...past.at], [...past.lag]] : [[], []];
}
