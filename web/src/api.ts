// SPDX-License-Identifier: Apache-2.0
// The management API, typed. The shapes are those of docs/openapi.yaml.

export interface Problem {
  title: string;
  status: number;
  code: string;
  detail?: string;
  hint?: string;
  errors?: { field: string; code: string; detail: string }[];
}

/// What went wrong, in the server's words; status 0 when there was no answer.
export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail ?? problem.title);
  }
}

export type PairState = 'ACTIVE' | 'PAUSED' | 'FAILED';

export interface Pair {
  topic: string;
  publisher: string;
  status: PairState;
  lastPosition: number;
  head: number;
  lagEvents: number;
  lagSeconds: number;
  errorCount: number;
  lastError: string | null;
  deadLetters: number;
  leader: string | null;
  leaderSince?: string | null;
  leaderHeartbeat?: string | null;
  epoch: number;
  lastPublishedAt?: string | null;
  createdAt: string;
  updatedAt: string;
}

export interface Leader {
  lease: string;
  node: string;
  epoch: number;
  since: string;
  heartbeat: string;
  alive: boolean;
  pairs: number;
}

/** A living node that leads nothing. */
export interface Standby {
  node: string;
  since: string;
  heartbeat: string;
}

export interface NodeStatus {
  name: string | null;
  phase: string;
  uptimeSeconds: number;
  ledPairs: number;
}

export interface OutboxCounts {
  pending: number;
  retrying: number;
  done: number;
  dead: number;
  oldestPendingSeconds: number;
  oldestUndeliveredSeconds: number;
  lastError: string | null;
}

export interface QueueCounts {
  pending: number;
  delayed: number;
  processing: number;
  abandoned: number;
  quarantined: number;
  oldestPendingSeconds: number;
  attempts?: Record<string, number>;
}

export interface Figures {
  at: string;
  outbox: OutboxCounts;
  queue: QueueCounts;
  store: { head: number };
  pairs: {
    active: number;
    paused: number;
    failed: number;
    maxLagEvents: number;
    maxLagSeconds: number;
    deadLetters: number;
  };
  leaders: Leader[];
}

export interface Overview {
  node: NodeStatus;
  database: { up: boolean; name: string; connections: { open: number; limit: number; inUse: number; waiting: number } };
  stuck: string;
  findings: { cause: string; text: string; hint: string }[];
  sinks: { name: string; type: string; healthy: boolean; lastError: string | null }[];
  figures: Figures | null;
}

export interface OutboxBrief {
  id: string;
  type: string;
  status: 'NEW' | 'RETRY' | 'DONE' | 'DEAD';
  attempts: number;
  aggregateType: string | null;
  aggregateId: string | null;
  tenantId: string | null;
  orderingKey: string | null;
  lastError: string | null;
  occurredAt: string;
  createdAt: string;
  availableAt: string;
  doneAt: string | null;
  leaseUntil: string | null;
  owner: string | null;
}

export interface Content {
  headers: Record<string, unknown> | string | null;
  payloadKind: 'json' | 'bytes';
  payload?: string;
  payloadBase64?: string;
}

/// An attempt that did not simply succeed.
export interface FailedAttempt {
  attempt: number;
  at: string;
  node: string | null;
  startedAt?: string;
  outcome: 'RETRY' | 'DEAD' | 'FAILED' | 'COMPLETED_WITH_ERRORS' | 'CRASHED';
  error: string | null;
}

/// The newest of them, oldest first.
export interface History {
  history: FailedAttempt[];
}

/// So many are kept of one event.
export const keptAttempts = 50;

export type OutboxEvent = OutboxBrief & Content & History;

export interface OutboxFilter {
  ids?: string[];
  stuckFor?: string;
}

export interface DeadFilter {
  ids?: string[];
  type?: string;
  aggregateType?: string;
  aggregateId?: string;
  tenantId?: string;
  errorContains?: string;
  diedAfter?: string;
  diedBefore?: string;
}

export interface DeadGroup {
  type: string;
  error: string;
  events: number;
  firstDiedAt: string;
  lastDiedAt: string;
  exampleId: string;
  filter: DeadFilter;
}

export interface ReplayAnswer {
  dryRun: boolean;
  events: number;
  left?: number;
  nextStartInSeconds?: number;
}

export interface HandlerResult {
  handler: string;
  result: 'success' | 'transient error' | 'unrecoverable error';
  failed: number;
  error: string | null;
}

export interface QueueBrief {
  id: number;
  eventId: string;
  type: string;
  status: 'PENDING' | 'PROCESSING';
  attempts: number;
  crashes: number;
  priority: number;
  aggregateType?: string | null;
  aggregateId?: string | null;
  tenantId?: string | null;
  orderingKey?: string | null;
  dedupeKey?: string | null;
  lastError: string | null;
  occurredAt?: string;
  createdAt: string;
  updatedAt: string;
  availableAt: string;
  processingStartedAt?: string | null;
  leaseUntil?: string | null;
  quarantinedAt?: string | null;
  owner: string | null;
}

export interface QueueLogEntry {
  seq: number;
  id: number;
  status: 'COMPLETED' | 'COMPLETED_WITH_ERRORS' | 'FAILED';
  eventId?: string;
  type?: string;
  decodeError?: string;
  attempts: number;
  crashes: number;
  createdAt: string;
  processingStartedAt: string | null;
  finalizedAt: string;
  results: HandlerResult[];
}

export type QueueEvent = History & ((QueueBrief & Content & { results: HandlerResult[] }) | (QueueLogEntry & Partial<Content>));

export interface QueueFilter {
  ids?: number[];
  types?: string[];
  statuses?: string[];
  stuckFor?: string;
  quarantined?: boolean;
}

export interface StoredEvent extends Content {
  position: number;
  id: string;
  type: string;
  tags: string[];
  correlationId: string | null;
  causationId: string | null;
  occurredAt: string;
  storedAt: string;
}

/// An event that a publisher did not take.
export interface RelayDeadLetter {
  topic: string;
  publisher: string;
  position: number;
  error: string;
  failedAt: string;
  event: StoredEvent | null; // removed by hand since
}

export interface Projection {
  name: string;
  version: number;
  status: PairState;
  live: boolean;
  position: number;
  head: number;
  lagEvents: number;
  lagSeconds: number;
  owner: string | null;
  failures: number;
  lastError: string | null;
  skipped: number;
}

export interface LogLine {
  id: string;
  applicationId: string;
  correlationId?: string | null;
  processName: string;
  processStatus: string;
  step?: string | null;
  details?: string | null;
  targetSystem?: string | null;
  originatingSystem?: string | null;
  userId?: string | null;
  timestamp: string;
  receivedAt: string;
}

export interface SpillFile {
  name: string;
  kind: string;
  bytes: number;
  events: number;
  waiting: number;
  foreign: number;
  damaged: number;
}

/// A logger's folder on the server's machine.
export interface SpillFolder {
  folder: string;
  error: string | null;
  waiting: number;
  inRings: number;
  bytes: number;
  deadLetters: number;
  quarantined: number;
  oldest: string | null;
  oldestSeconds: number | null;
  files: SpillFile[];
}

export interface AuditEntry {
  id: number;
  at: string;
  who: string;
  what: string;
}

export interface Page<T> {
  rows: T[];
  next: string | null;
  head?: number;
}

// ---- how requests are made ----------------------------------------------------------------------------------------

const tokenKey = 'postrider.token';
const slowest = 20_000;

export function token(): string {
  return sessionStorage.getItem(tokenKey) ?? '';
}

/// For this tab, until it is closed.
export function keepToken(value: string): void {
  if (value) sessionStorage.setItem(tokenKey, value);
  else sessionStorage.removeItem(tokenKey);
}

let onUnauthorized: () => void = () => {};
export function whenUnauthorized(call: () => void): void {
  onUnauthorized = call;
}

export function headers(): Record<string, string> {
  const own = token();
  return own ? { Authorization: `Bearer ${own}` } : {};
}

export function noAnswer(why: unknown): ApiError {
  const late = why instanceof DOMException && why.name === 'TimeoutError';
  return new ApiError({
    title: late ? 'The server takes too long' : 'The server does not answer',
    status: 0,
    code: late ? 'timeout' : 'unreachable',
    detail: late ? 'No answer within 20 seconds.' : 'The connection was refused or cut.',
    hint: 'Look whether postrider serve runs on this address; the page goes on by itself when it is back.',
  });
}

/// Of an answer that is none of the wanted ones.
export async function refusal(answer: Response): Promise<ApiError> {
  let problem: Problem = {
    title: answer.statusText || `Status ${answer.status}`,
    status: answer.status,
    code: `http_${answer.status}`,
  };
  try {
    const body = (await answer.json()) as Partial<Problem>;
    if (typeof body.title === 'string') problem = { ...problem, ...body, status: answer.status };
  } catch {
    // no problem+json: the status must do
  }
  if (answer.status === 401) onUnauthorized();
  return new ApiError(problem);
}

export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

export function withQuery(path: string, query: Query): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === '') continue;
    if (Array.isArray(value)) for (const one of value) all.append(name, String(one));
    else all.set(name, String(value));
  }
  const text = all.toString();
  return text ? `${path}?${text}` : path;
}

async function request<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const limit = AbortSignal.timeout(slowest);
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers: body === undefined ? headers() : { ...headers(), 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      cache: 'no-store',
    });
  } catch (why) {
    if (signal?.aborted) throw why;
    throw noAnswer(why);
  }
  if (!answer.ok) throw await refusal(answer);
  try {
    return (await answer.json()) as T;
  } catch (why) {
    if (signal?.aborted) throw why;
    throw noAnswer(why);
  }
}

export const get = <T>(path: string, query: Query = {}, signal?: AbortSignal) =>
  request<T>('GET', withQuery(path, query), undefined, signal);
const post = <T>(path: string, body?: unknown) => request<T>('POST', path, body);
const part = encodeURIComponent;
const pairPath = (topic: string, publisher: string) => `/api/topics/${part(topic)}/publishers/${part(publisher)}`;

type Events<T> = { events: T[]; nextCursor: string | null; head?: number };
const page = <T>(body: Events<T>): Page<T> => ({ rows: body.events, next: body.nextCursor, head: body.head });

export const api = {
  overview: (signal?: AbortSignal) => get<Overview>('/api/overview', {}, signal),
  nodes: (signal?: AbortSignal) => get<{ thisNode: NodeStatus; leases: Leader[]; standbys: Standby[] }>('/api/nodes', {}, signal),
  spill: async (signal?: AbortSignal) => (await get<{ folders: SpillFolder[] }>('/api/spill', {}, signal)).folders,
  audit: async (query: Query, signal?: AbortSignal): Promise<Page<AuditEntry>> => {
    const body = await get<{ entries: AuditEntry[]; nextCursor: string | null }>('/api/audit', query, signal);
    return { rows: body.entries, next: body.nextCursor };
  },

  pairs: async (signal?: AbortSignal) => (await get<{ pairs: Pair[] }>('/api/topics', {}, signal)).pairs,
  pair: (topic: string, publisher: string, signal?: AbortSignal) =>
    get<Pair>(pairPath(topic, publisher), {}, signal),
  pairVerb: (topic: string, publisher: string, verb: 'pause' | 'resume' | 'reset') =>
    post<{ pairs: Pair[] }>(`${pairPath(topic, publisher)}/${verb}`),
  rewind: (topic: string, publisher: string, position: number) =>
    post<{ pairs: Pair[] }>(`${pairPath(topic, publisher)}/rewind`, { position }),
  pairDead: async (topic: string, publisher: string, query: Query, signal?: AbortSignal): Promise<Page<RelayDeadLetter>> => {
    const body = await get<{ deadLetters: RelayDeadLetter[]; nextCursor: string | null }>(
      `${pairPath(topic, publisher)}/dead`,
      query,
      signal,
    );
    return { rows: body.deadLetters, next: body.nextCursor };
  },
  discardPairDead: (topic: string, publisher: string, body: { filter: { untilPosition: number }; dryRun?: boolean }) =>
    post<{ dryRun: boolean; events: number }>(`${pairPath(topic, publisher)}/dead/discard`, body),

  outboxEvents: async (query: Query, signal?: AbortSignal) =>
    page(await get<Events<OutboxBrief>>('/api/outbox/events', query, signal)),
  outboxEvent: (id: string, signal?: AbortSignal) => get<OutboxEvent>(`/api/outbox/events/${part(id)}`, {}, signal),
  outboxStuck: async (query: Query, signal?: AbortSignal) =>
    page(await get<Events<OutboxBrief>>('/api/outbox/stuck', query, signal)),
  outboxVerb: (verb: 'requeue' | 'cancel', body: { filter: OutboxFilter; dryRun?: boolean }) =>
    post<{ dryRun: boolean; events: number }>(`/api/outbox/${verb}`, body),
  dead: async (query: Query, signal?: AbortSignal) =>
    page(await get<Events<OutboxBrief>>('/api/outbox/dead', query, signal)),
  deadGroups: (signal?: AbortSignal) =>
    get<{ groups: DeadGroup[]; otherEvents: number; lookedAt: number; complete: boolean }>('/api/outbox/dead/groups', {}, signal),
  replayDead: (body: { filter: DeadFilter; dryRun?: boolean; rate?: number; limit?: number; startInSeconds?: number; action?: string }) =>
    post<ReplayAnswer>('/api/outbox/dead/replay', body),

  queueCounts: (signal?: AbortSignal) => get<QueueCounts>('/api/queue/counts', {}, signal),
  queueEvents: async (query: Query, signal?: AbortSignal) =>
    page(await get<Events<QueueBrief>>('/api/queue/events', query, signal)),
  queueStuck: async (query: Query, signal?: AbortSignal) =>
    page(await get<Events<QueueBrief>>('/api/queue/stuck', query, signal)),
  quarantine: async (query: Query, signal?: AbortSignal) =>
    page(await get<Events<QueueBrief>>('/api/queue/quarantine', query, signal)),
  queueLog: async (query: Query, signal?: AbortSignal): Promise<Page<QueueLogEntry>> => {
    const body = await get<{ entries: QueueLogEntry[]; head: number; nextCursor: string | null }>('/api/queue/log', query, signal);
    return { rows: body.entries, next: body.nextCursor, head: body.head };
  },
  queueEvent: (id: string, signal?: AbortSignal) => get<QueueEvent>(`/api/queue/events/${part(id)}`, {}, signal),
  queueVerb: (verb: 'requeue' | 'cancel' | 'release' | 'replay', body: { filter: QueueFilter; dryRun?: boolean }) =>
    post<{ dryRun: boolean; events: number }>(`/api/queue/${verb}`, body),

  storeHead: async (signal?: AbortSignal) => (await get<{ head: number }>('/api/store/head', {}, signal)).head,
  storeEvents: async (query: Query, signal?: AbortSignal) =>
    page(await get<Events<StoredEvent>>('/api/store/events', query, signal)),
  projections: async (signal?: AbortSignal) =>
    (await get<{ projections: Projection[] }>('/api/projections', {}, signal)).projections,
  projectionVerb: (name: string, version: number, verb: 'pause' | 'resume') =>
    post<Projection>(withQuery(`/api/projections/${part(name)}/${verb}`, { version })),

  logLines: async (query: Query, signal?: AbortSignal) =>
    page(await get<Events<LogLine>>('/v1/events', query, signal)),
};
