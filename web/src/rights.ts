// SPDX-License-Identifier: Apache-2.0
// What one may do here, as the server says it. The server decides each time; this only spares one the question.
import { useEffect, useState } from 'preact/hooks';
import { get } from './api';

interface Me {
  name: string;
  role: string;
  token: boolean; // needed on this server
  changes: { method: string; path: string; role: string; allowed: boolean }[];
}

let me: Me | null = null; // nobody knows: nothing is held back
const listeners = new Set<() => void>();

/// At the start, and whenever another token or another server may say something else.
export async function readRights(): Promise<void> {
  try {
    me = await get<Me>('/api/me');
  } catch {
    me = null; // an older server, or none: it says itself what it refuses
  }
  for (const call of listeners) call();
}

export function useMe(): Me | null {
  const [now, setNow] = useState(me);
  useEffect(() => {
    const look = () => setNow(me);
    look();
    listeners.add(look);
    return () => void listeners.delete(look);
  }, []);
  return now;
}

/// Why a route ("/api/outbox/requeue") would be refused; nothing when it would not, as far as one knows.
export function useRefusal(path: string): string | undefined {
  const now = useMe();
  const change = now?.changes.find((one) => one.path === path);
  if (!now || !change || change.allowed) return undefined;
  return `This needs the role ${change.role}; the token of ${now.name} has the role ${now.role}.`;
}
