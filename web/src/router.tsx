// SPDX-License-Identifier: Apache-2.0
// Every view is an address under /ui, so that it can be sent to somebody.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

export interface Place {
  parts: string[]; // behind /ui, decoded
  query: URLSearchParams;
}

const changed = 'postrider:place';

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function place(): Place {
  const parts = location.pathname.split('/').slice(2).filter(Boolean).map(decoded);
  return { parts, query: new URLSearchParams(location.search) };
}

export function go(to: string, replace = false): void {
  if (to === location.pathname + location.search) return;
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  dispatchEvent(new Event(changed));
}

export function usePlace(): Place {
  const [now, setNow] = useState(place);
  useEffect(() => {
    const look = () => setNow(place());
    addEventListener('popstate', look);
    addEventListener(changed, look);
    return () => {
      removeEventListener('popstate', look);
      removeEventListener(changed, look);
    };
  }, []);
  return now;
}

export function to(...parts: (string | number)[]): string {
  return ['/ui', ...parts.map((one) => encodeURIComponent(one))].join('/');
}

/// The same view with other parameters.
export function query(values: Record<string, string | null | undefined>): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) all.set(name, value);
  const text = all.toString();
  return location.pathname + (text ? `?${text}` : '');
}

type LinkProps = { href: string; children: ComponentChildren } & Omit<JSX.HTMLAttributes<HTMLAnchorElement>, 'href'>;

export function Link({ href, children, ...rest }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(href);
  };
  return (
    <a {...rest} href={href} onClick={follow}>
      {children}
    </a>
  );
}
