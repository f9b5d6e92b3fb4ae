// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, noAnswer, type Page } from './api';
import { live, type LiveState } from './live';

const asError = (why: unknown): ApiError => (why instanceof ApiError ? why : noAnswer(why));

/// It is not about what was asked for, and passes: no answer, or the server has no database.
export const away = (error: ApiError): boolean => error.problem.status === 0 || error.problem.status >= 500;

export function useLive(): LiveState {
  const [now, setNow] = useState(live.state);
  useEffect(() => live.subscribe(() => setNow(live.state())), []);
  return now;
}

export interface Resource<T> {
  data: T | null;
  error: ApiError | null;
  reload: () => void;
}

/// Reads at once, then every `every` milliseconds while the page is seen. What was there stays while it is read
/// again, and beside an error.
export function useResource<T>(read: (signal: AbortSignal) => Promise<T>, keys: unknown[], every = 0): Resource<T> {
  const [state, setState] = useState<{ data: T | null; error: ApiError | null }>({ data: null, error: null });
  const [turn, setTurn] = useState(0);
  const shown = useRef<string>('');
  const reading = useRef(read);
  reading.current = read;
  const key = JSON.stringify(keys);
  useEffect(() => {
    const end = new AbortController();
    let next: ReturnType<typeof setTimeout> | undefined;
    if (shown.current !== key) setState({ data: null, error: null });
    shown.current = key;
    const look = async () => {
      let failed = false;
      if (!document.hidden || !every) {
        try {
          const data = await reading.current(end.signal);
          if (!end.signal.aborted) setState({ data, error: null });
        } catch (why) {
          if (end.signal.aborted) return;
          const error = asError(why);
          failed = away(error);
          setState((before) => ({ ...before, error }));
        }
      }
      // Something that is read once is read again after a failure that passes by itself.
      if (!end.signal.aborted && (every || failed)) next = setTimeout(() => void look(), every || 3000);
    };
    void look();
    return () => {
      clearTimeout(next);
      end.abort();
    };
  }, [key, every, turn]);
  return { ...state, reload: useCallback(() => setTurn((n) => n + 1), []) };
}

export interface Pages<T> {
  rows: T[];
  error: ApiError | null;
  loading: boolean;
  more: boolean;
  full: boolean; // as many as a page keeps
  head: number | null;
  loadMore: () => void;
  reload: () => void;
}

const mostRows = 20_000;
const emptyPagesInARow = 20;

/// A list that is read page by page as it is scrolled. Nothing beyond `mostRows` is kept.
export function usePages<T>(
  read: (cursor: string | null, signal: AbortSignal) => Promise<Page<T>>,
  keys: unknown[],
): Pages<T> {
  const key = JSON.stringify(keys);
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<{ rows: T[]; next: string | null; head: number | null; error: ApiError | null; loading: boolean }>({
    rows: [],
    next: null,
    head: null,
    error: null,
    loading: true,
  });
  const now = useRef(state);
  now.current = state;
  const reading = useRef(read);
  reading.current = read;
  const end = useRef(new AbortController());
  const busy = useRef(false);

  const fetchPage = useCallback(async (fresh: boolean) => {
    if (busy.current && !fresh) return;
    busy.current = true;
    const { signal } = end.current;
    setState((before) => ({ ...before, loading: true, error: null }));
    try {
      let cursor = fresh ? null : now.current.next;
      let page: Page<T> = { rows: [], next: null };
      // A search looks at a bounded number of rows: a page may be empty and not the last.
      for (let i = 0; i < emptyPagesInARow; ++i) {
        page = await reading.current(cursor, signal);
        cursor = page.next;
        if (page.rows.length > 0 || cursor === null) break;
      }
      if (signal.aborted) return;
      setState((before) => ({
        rows: fresh ? page.rows : before.rows.concat(page.rows),
        next: page.next,
        head: page.head ?? null,
        error: null,
        loading: false,
      }));
    } catch (why) {
      if (signal.aborted) return;
      setState((before) => ({ ...before, error: asError(why), loading: false }));
    }
    busy.current = false;
  }, []);

  const shown = useRef(key);
  useEffect(() => {
    end.current.abort();
    end.current = new AbortController();
    if (shown.current !== key) setState({ rows: [], next: null, head: null, error: null, loading: true });
    shown.current = key;
    void fetchPage(true);
    return () => end.current.abort();
  }, [key, turn]);

  const full = state.rows.length >= mostRows;
  return {
    ...state,
    more: state.next !== null && !full,
    full,
    loadMore: useCallback(() => {
      if (now.current.next !== null && now.current.rows.length < mostRows) void fetchPage(false);
    }, []),
    reload: useCallback(() => setTurn((n) => n + 1), []),
  };
}
