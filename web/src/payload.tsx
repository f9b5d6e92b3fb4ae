// SPDX-License-Identifier: Apache-2.0
// An event's payload for people. It is text from strangers: every piece becomes a text node, nothing becomes markup.
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Content } from './api';
import { CopyButton } from './ui';

const mostHighlighted = 200_000; // characters
const mostShown = 1_000_000;
const token = /"(?:\\.|[^"\\])*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/// Indented, with the numbers exactly as they were written: parsing would round what is longer than a double.
function pieces(text: string): ComponentChildren[] {
  const tokens = text.match(token) ?? [];
  const all: ComponentChildren[] = [];
  let depth = 0;
  let plain = '';
  const line = () => (plain += '\n' + '  '.repeat(depth));
  const colored = (kind: string, word: string) => {
    if (plain) all.push(plain);
    plain = '';
    all.push(<span class={kind}>{word}</span>);
  };
  tokens.forEach((word, i) => {
    const next = tokens[i + 1];
    if (word === '{' || word === '[') {
      plain += word;
      ++depth;
      if (next !== '}' && next !== ']') line();
    } else if (word === '}' || word === ']') {
      --depth;
      const before = tokens[i - 1];
      if (before !== '{' && before !== '[') line();
      plain += word;
    } else if (word === ',') {
      plain += word;
      line();
    } else if (word === ':') {
      plain += ': ';
    } else if (word.startsWith('"')) {
      colored(next === ':' ? 'j-key' : 'j-text', word);
    } else {
      colored(/^[-0-9]/.test(word) ? 'j-number' : 'j-word', word);
    }
  });
  if (plain) all.push(plain);
  return all;
}

export function Json({ text }: { text: string }) {
  const shown = useMemo(() => {
    if (text.length > mostHighlighted) return text.slice(0, mostShown);
    try {
      JSON.parse(text);
    } catch {
      return text;
    }
    return pieces(text);
  }, [text]);
  return (
    <pre class="code" tabIndex={0}>
      {shown}
      {text.length > mostShown && <em>{`\n… ${text.length - mostShown} more characters`}</em>}
    </pre>
  );
}

export function Payload({ content }: { content: Partial<Content> }) {
  const text = content.payload ?? content.payloadBase64;
  if (text === undefined) return <p class="muted">No payload.</p>;
  return (
    <>
      <div class="card-head">
        <h2>Payload {content.payloadKind === 'bytes' && <small class="muted">bytes, as base64</small>}</h2>
        <CopyButton label="Copy payload" text={() => text} />
      </div>
      <Json text={text} />
    </>
  );
}

export function Headers({ headers }: { headers: Content['headers'] | undefined }) {
  if (!headers || (typeof headers === 'object' && Object.keys(headers).length === 0)) {
    return <p class="muted">No headers.</p>;
  }
  if (typeof headers === 'string') return <pre class="code">{headers}</pre>;
  return (
    <dl class="facts">
      {Object.entries(headers).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <code>{typeof value === 'string' ? value : JSON.stringify(value)}</code>
          </dd>
        </div>
      ))}
    </dl>
  );
}
