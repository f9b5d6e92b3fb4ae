// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, noAnswer } from './api';
import { ago, time } from './format';
import { useRefusal } from './rights';
import { visible } from './visible';

export function Page({ title, lead, actions, children }: {
  title: string;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = visible(`${title} · Postrider`);
  }, [title]);
  return (
    <>
      <header class="page-head">
        <div>
          <h1 tabIndex={-1} id="page-title">
            {title}
          </h1>
          {lead && <p class="muted">{lead}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

export function Card({ title, aside, children }: { title?: ComponentChildren; aside?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="card">
      {(title || aside) && (
        <div class="card-head">
          {title && <h2>{title}</h2>}
          {aside && <div class="actions">{aside}</div>}
        </div>
      )}
      {children}
    </section>
  );
}

export function Figure({ label, value, note, tone }: { label: string; value: string; note?: ComponentChildren; tone?: 'bad' | 'warn' | 'words' }) {
  return (
    <div class={`figure ${tone ?? ''}`}>
      <dt>{label}</dt>
      <dd>
        <span class="value" title={value}>{value}</span>
        {note && <span class="note">{note}</span>}
      </dd>
    </div>
  );
}

const tones: Record<string, string> = {
  ACTIVE: 'good', DONE: 'good', COMPLETED: 'good', success: 'good', alive: 'good', healthy: 'good', live: 'good',
  PAUSED: 'warn', RETRY: 'warn', PROCESSING: 'info', COMPLETED_WITH_ERRORS: 'warn', 'transient error': 'warn',
  FAILED: 'bad', DEAD: 'bad', 'unrecoverable error': 'bad', gone: 'bad', unhealthy: 'bad', quarantined: 'bad',
};

/// Says it in words; the colour only helps.
export function Badge({ text }: { text: string }) {
  return <span class={`badge ${tones[text] ?? 'info'}`}>{text.replaceAll('_', ' ').toLowerCase()}</span>;
}

export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="muted">–</span>;
  return (
    <time dateTime={at} title={at}>
      {time(at)}
    </time>
  );
}

export function Ago({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="muted">–</span>;
  return (
    <time dateTime={at} title={time(at)}>
      {ago(at)}
    </time>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="strong">{title}</p>
      {children && <div class="muted">{children}</div>}
    </div>
  );
}

/// What, why, and what to do about it. A list that is not found is a part that this server does not have, which
/// `off` says more about; of one thing (`item`) it is the thing that is not there.
export function Problem({ error, retry, what, item, off }: {
  error: ApiError;
  retry?: () => void;
  what?: string;
  item?: boolean;
  off?: ComponentChildren;
}) {
  const { problem } = error;
  if (problem.status === 404 && !item) {
    return (
      <Empty title="Not available on this server">
        {off ?? 'This part is switched off in its configuration, or the server is older than this page.'}
      </Empty>
    );
  }
  return (
    <div class="problem" role="alert">
      <p class="strong">{what ? `${what}: ${problem.title}` : problem.title}</p>
      {problem.detail && problem.detail !== problem.title && <p>{problem.detail}</p>}
      {problem.errors?.map((one) => (
        <p key={one.field}>
          <code>{one.field}</code> {one.detail}
        </p>
      ))}
      {problem.hint && <p class="muted">Hint: {problem.hint}</p>}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Loading() {
  return <p class="muted loading">Loading…</p>;
}

// ---- messages that come and go ------------------------------------------------------------------------------------

let say: (text: string, bad?: boolean) => void = () => {};
export const announce = (text: string, bad = false): void => say(text, bad);

export function Announcer() {
  const [message, setMessage] = useState<{ text: string; bad: boolean } | null>(null);
  useEffect(() => {
    let gone: ReturnType<typeof setTimeout>;
    say = (text, bad = false) => {
      clearTimeout(gone);
      setMessage({ text, bad });
      gone = setTimeout(() => setMessage(null), bad ? 12_000 : 6000);
    };
    return () => clearTimeout(gone);
  }, []);
  return (
    <div class="announcer" role="status" aria-live="polite">
      {message && <p class={message.bad ? 'toast bad' : 'toast'}>{message.text}</p>}
    </div>
  );
}

// ---- actions ------------------------------------------------------------------------------------------------------

/// A button for what the route `needs` does. Who may not use it can still reach it, and hears why.
export function ActButton({ needs, class: kind = '', label, type = 'button', disabled, onClick, children }: {
  needs: string;
  class?: string;
  label?: string;
  type?: 'button' | 'submit';
  disabled?: boolean;
  onClick?: () => void;
  children: ComponentChildren;
}) {
  const why = useRefusal(needs);
  if (why === undefined) {
    return (
      <button type={type} class={kind} aria-label={label} disabled={disabled} onClick={onClick}>
        {children}
      </button>
    );
  }
  return (
    <button type="button" class={`${kind} refused`} aria-label={label} aria-disabled="true" title={why} onClick={() => announce(why, true)}>
      {children}
    </button>
  );
}

// ---- questions ----------------------------------------------------------------------------------------------------

export function Dialog({ title, onClose, wide, children }: {
  title: ComponentChildren;
  onClose: () => void;
  wide?: boolean;
  children: ComponentChildren;
}) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog ref={box} class={wide ? 'wide' : undefined} aria-labelledby="dialog-title" onClose={onClose}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

/// All of one row of a table, over it: below it would be out of sight.
export function Detail({ title, onClose, children }: { title: ComponentChildren; onClose: () => void; children: ComponentChildren }) {
  return (
    <Dialog title={title} onClose={onClose} wide>
      {children}
      <div class="actions end">
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

export interface Question {
  title: string;
  text: ComponentChildren;
  verb: string;
  danger?: boolean;
  act: () => Promise<string | void>;
}

/// Asks, does, says what came of it. A failure stays in the dialog, with what to do about it.
export function Confirm({ question, onClose }: { question: Question; onClose: () => void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const act = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const said = await question.act();
      if (said) announce(said);
      onClose();
    } catch (why) {
      setError(why instanceof ApiError ? why : noAnswer(why));
      setBusy(false);
    }
  };
  return (
    <Dialog title={question.title} onClose={onClose}>
      <form onSubmit={act}>
        <div>{question.text}</div>
        {error && <Problem error={error} />}
        <div class="actions end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={question.danger ? 'danger' : 'primary'} disabled={busy}>
            {busy ? 'Working…' : question.verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function useConfirm(): [ComponentChildren, (question: Question) => void] {
  const [question, setQuestion] = useState<Question | null>(null);
  return [question && <Confirm question={question} onClose={() => setQuestion(null)} />, setQuestion];
}

export function Field({ label, name, value, placeholder, list, onInput, type = 'text', hint }: {
  label: string;
  name: string;
  value: string;
  placeholder?: string;
  list?: string[];
  type?: string;
  hint?: string;
  onInput: (value: string) => void;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      {list ? (
        <select name={name} value={value} onChange={(event) => onInput(event.currentTarget.value)}>
          {list.map((one) => (
            <option key={one} value={one}>
              {one === '' ? 'any' : one.toLowerCase().replaceAll('_', ' ')}
            </option>
          ))}
        </select>
      ) : (
        <input
          type={type}
          name={name}
          value={value}
          placeholder={placeholder}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
      {hint && <small class="muted">{hint}</small>}
    </label>
  );
}

const phone = matchMedia('(max-width: 48rem)'); // as style.css has it

/// Many fields, which on a phone would push what they are for out of sight: there they are folded, unless `open`.
export function Foldable({ title, open, children }: { title: string; open: boolean; children: ComponentChildren }) {
  const [narrow, setNarrow] = useState(phone.matches);
  useEffect(() => {
    const look = () => setNarrow(phone.matches);
    phone.addEventListener('change', look);
    return () => phone.removeEventListener('change', look);
  }, []);
  if (!narrow) return <>{children}</>;
  return (
    <details class="fold" open={open}>
      <summary>{title}</summary>
      {children}
    </details>
  );
}

export function CopyButton({ text, label }: { text: () => string; label: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      announce('Copied');
    } catch {
      announce('The browser did not allow copying; select the text instead.', true);
    }
  };
  return (
    <button type="button" onClick={copy}>
      {label}
    </button>
  );
}
