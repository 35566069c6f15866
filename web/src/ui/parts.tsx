// The components that every page uses, and useData(), which loads their data.
import {signal, useSignal} from '@preact/signals';
import type {ComponentChildren, RefObject} from 'preact';
import {useEffect, useId, useRef} from 'preact/hooks';
import {Failure, is_unreachable, logged_out} from '../api/client';
import type {Fault} from '../api/types';
import {href} from '../app/router';
import {clock_text, count_text, day_text, has_ended, millis, span_text, time_text, utc} from '../app/format';
import {useRefresh, type Following} from '../app/live';
import {Icon, PhaseShape} from './icons';

/** The current time, updated each second while the page is visible. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

export function Page({
  title,
  children,
  actions,
  lead,
}: {
  title: ComponentChildren;
  children: ComponentChildren;
  actions?: ComponentChildren;
  lead?: ComponentChildren;
}) {
  const ref = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${ref.current?.textContent ?? ''} – Muster`;
  });
  return (
    <div class="page">
      <div class="page-head">
        {lead}
        <h1 ref={ref}>{title}</h1>
        {actions && <div class="row">{actions}</div>}
      </div>
      {children}
    </div>
  );
}

export function Card({
  title,
  children,
  actions,
  scroll,
  id,
}: {
  title?: ComponentChildren;
  children: ComponentChildren;
  actions?: ComponentChildren;
  scroll?: boolean;
  id?: string;
}) {
  const own = useId();
  return (
    <section class="card" id={id} aria-labelledby={title ? own : undefined}>
      {title && (
        <header>
          <h2 id={own}>{title}</h2>
          {actions && <div class="row">{actions}</div>}
        </header>
      )}
      {scroll ? (
        <Scroll label={typeof title === 'string' ? title : 'table'}>{children}</Scroll>
      ) : (
        <div class="body">{children}</div>
      )}
    </section>
  );
}

/** A region that scrolls sideways. The keyboard reaches it while its content is wider than the region. */
export function Scroll({label, children}: {label: string; children: ComponentChildren}) {
  const ref = useRef<HTMLDivElement>(null);
  const scrolls = useSignal(false);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const check = () => {
      scrolls.value = element.scrollWidth > element.clientWidth + 1;
    };
    const observer = new ResizeObserver(check);
    observer.observe(element);
    if (element.firstElementChild) observer.observe(element.firstElementChild);
    check();
    return () => observer.disconnect();
  }, []);
  return (
    <div class="scroll" ref={ref} {...(scrolls.value ? {tabIndex: 0, role: 'group', 'aria-label': label} : {})}>
      {children}
    </div>
  );
}

export function Link({to, children, ...rest}: {to: string; children: ComponentChildren; [name: string]: unknown}) {
  return (
    <a href={href(to)} {...rest}>
      {children}
    </a>
  );
}

export function Phase({
  job,
}: {
  job: {phase: string; suspended?: boolean; stop_requested?: boolean; eviction?: unknown};
}) {
  const word =
    job.stop_requested && !has_ended(job.phase)
      ? 'Stopping'
      : job.suspended
        ? 'Suspended'
        : job.eviction
          ? 'Evicting'
          : job.phase;
  return (
    <span class={`badge ${job.suspended ? 'stopped' : job.phase.toLowerCase()}`}>
      <PhaseShape phase={job.suspended ? 'Stopped' : job.phase} />
      {word}
    </span>
  );
}

/** A time: of today the time of day, else the date as well. The tooltip has the full time, local and in UTC. */
export function Time({at, full}: {at: string | number | undefined; full?: boolean}) {
  const time = typeof at === 'number' ? at : millis(at);
  if (at === undefined || Number.isNaN(time)) return <span class="muted">–</span>;
  const in_utc = utc.value;
  const today = day_text(Date.now(), in_utc) === day_text(time, in_utc);
  const text = full
    ? time_text(time, in_utc)
    : today
      ? clock_text(time, in_utc)
      : `${day_text(time, in_utc)} ${clock_text(time, in_utc, false)}`;
  return (
    <time
      class="tnum nowrap"
      dateTime={new Date(time).toISOString()}
      title={`${time_text(time, in_utc)}; ${time_text(time, !in_utc)}`}
    >
      {text}
    </time>
  );
}

export function Age({at}: {at: string | undefined}) {
  const time = millis(at);
  if (Number.isNaN(time)) return <span class="muted">–</span>;
  return (
    <time class="tnum nowrap" dateTime={new Date(time).toISOString()} title={time_text(time, utc.value)}>
      {span_text(now.value - time)}
    </time>
  );
}

export function ErrorNote({error, again}: {error: unknown; again?: () => void}) {
  if (!error) return null;
  const failure = error instanceof Failure ? error : null;
  return (
    <div class="note error" role="alert">
      <div>{(error as Error).message}</div>
      {failure?.faults.map((fault, i) => (
        <div key={i}>{fault_text(fault)}</div>
      ))}
      {failure?.advice && <div class="advice">{failure.advice}</div>}
      {again && <button onClick={again}>Try again</button>}
    </div>
  );
}

export interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  loading: boolean;
  reload: () => void;
}

/**
 * Loads the data of a view, at first and after changes. The former data stay until the new ones arrive; when `depends`
 * changes, only with `keep`.
 */
export function useData<T>(
  load: (signal: AbortSignal) => Promise<T>,
  depends: unknown[],
  options: Following & {keep?: boolean} = {},
): Loaded<T> {
  const data = useSignal<T | undefined>(undefined);
  const error = useSignal<unknown>(null);
  const turn = useSignal(0);
  const key = JSON.stringify(depends);
  const shown = useRef('');
  const abort = useRef<AbortController | null>(null);
  useRefresh(
    async () => {
      abort.current?.abort();
      const mine = new AbortController();
      abort.current = mine;
      if (shown.current !== key && !options.keep) {
        data.value = undefined;
        error.value = null;
      }
      try {
        const value = await load(mine.signal);
        if (mine.signal.aborted) return true;
        shown.current = key;
        data.value = value;
        error.value = null;
        return true;
      } catch (fault) {
        if ((fault as Error).name === 'AbortError') return true;
        const answered = !is_unreachable(fault);
        // While the server restarts, a banner reports it, and the former data stay visible.
        if (!answered && data.value !== undefined) return false;
        // The object was deleted, or the user has lost the right to see it.
        if (fault instanceof Failure && fault.status === 404) data.value = undefined;
        error.value = fault;
        return answered;
      }
    },
    [key, turn.value, options.every],
    options,
  );
  useEffect(() => () => abort.current?.abort(), []);
  return {
    data: data.value,
    error: error.value,
    loading: data.value === undefined && !error.value,
    reload: () => {
      turn.value++;
    },
  };
}

/** Does one piece of work at a time: `run` does nothing while an earlier call is under way, such as after a double click. */
export function useBusy(): {busy: boolean; run: (work: () => Promise<void>) => Promise<void>} {
  const busy = useSignal(false);
  const run = async (work: () => Promise<void>) => {
    if (busy.value) return;
    busy.value = true;
    try {
      await work();
    } finally {
      busy.value = false;
    }
  };
  return {busy: busy.value, run};
}

/** The first rows of a long table, and a button that shows more rows. */
export function useFirst<T>(rows: T[], first = 200): {shown: T[]; more: ComponentChildren} {
  const count = useSignal(first);
  const rest = rows.length - count.value;
  return {
    shown: rest > 0 ? rows.slice(0, count.value) : rows,
    more: rest > 0 && (
      <div class="empty">
        <button
          onClick={() => {
            count.value += 5 * first;
          }}
        >
          Show more
        </button>{' '}
        {count_text(rest)} {rest === 1 ? 'row is' : 'rows are'} not shown.
      </div>
    ),
  };
}

export function Waiting() {
  return (
    <div class="empty" role="status">
      Loading…
    </div>
  );
}

/** A modal dialog of the browser: it keeps the focus inside, and returns it when it closes. */
export function Dialog({
  title,
  onClose,
  children,
  wide,
  closable = true,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
  closable?: boolean;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement as HTMLElement | null;
    if (dialog && !dialog.open) dialog.showModal();
    return () => {
      if (dialog?.open) dialog.close();
      before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={wide ? 'wide' : ''}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (closable) onClose();
      }}
      onClose={(event) => {
        const dialog = event.currentTarget;
        if (!closable && dialog.isConnected && logged_out.value) dialog.showModal();
      }}
    >
      <div class="box">
        <div class="row">
          <h2 id={id} class="grow">
            {title}
          </h2>
          {closable && (
            <button class="quiet" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          )}
        </div>
        {children}
      </div>
    </dialog>
  );
}

/** Links to the parts of a page. On a narrow screen, the link to the current part is scrolled into view. */
export function Tabs({
  label,
  tabs,
  current,
  target,
}: {
  label: string;
  tabs: [string, string][];
  current: string;
  target: (key: string) => string;
}) {
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    const [bar, tab] = [ref.current, ref.current?.querySelector<HTMLElement>('[aria-current]')];
    if (bar && tab) bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
  }, [current]);
  return (
    <nav class="tabs" aria-label={label} ref={ref}>
      {tabs.map(([key, name]) => (
        <Link key={key} to={target(key)} aria-current={current === key ? 'page' : undefined}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

interface Message {
  id: number;
  kind: 'good' | 'error' | 'plain';
  text: string;
}
const messages = signal<Message[]>([]);
let next_message = 1;

/** Shows a short message at the edge of the page for some seconds. */
export function toast(text: string, kind: Message['kind'] = 'good'): void {
  const id = next_message++;
  messages.value = [...messages.value.slice(-4), {id, kind, text}];
  setTimeout(
    () => {
      messages.value = messages.value.filter((each) => each.id !== id);
    },
    kind === 'error' ? 12000 : 5000,
  );
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {messages.value.map((each) => (
        <div key={each.id} class={`toast ${each.kind}`}>
          <span class="grow">{each.text}</span>
          <button
            class="quiet"
            aria-label="Dismiss"
            onClick={() => {
              messages.value = messages.value.filter((other) => other.id !== each.id);
            }}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}

/** "workers: must be at least 1"; a fault of the whole request has no field. */
function fault_text({field, what}: Fault): string {
  return field ? `${field}: ${what}` : what;
}

/** An error in one line: the message, the faults of its fields, and what to do. */
export function error_text(fault: unknown): string {
  if (fault instanceof Failure) {
    const faults = fault.faults.map(fault_text).join('; ');
    return [fault.message, faults, fault.advice].filter(Boolean).join(' – ');
  }
  return (fault as Error).message;
}

/** A part of a bar. Preact sets its width on the style object: the content policy forbids style attributes. */
export function Share({of, kind}: {of: number; kind: string}) {
  return <i class={kind} style={{width: `${Math.max(0, Math.min(100, of * 100))}%`}} />;
}

/** A button that copies a text. */
export function Copy({text, label = 'Copy'}: {text: string; label?: string}) {
  const result = useSignal('');
  const copy = async (beside: HTMLElement) => {
    let copied = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without TLS, or without the permission, a browser has no clipboard for scripts.
      copied = copy_by_selection(text, beside);
    }
    result.value = copied ? 'Copied' : 'Not copied: select the text';
    setTimeout(() => {
      result.value = '';
    }, 1500);
  };
  return (
    <button
      type="button"
      onClick={(event) => {
        void copy(event.currentTarget);
      }}
    >
      {result.value || label}
    </button>
  );
}

/** The text is selected next to `beside`: outside of an open dialog, nothing can be selected. */
function copy_by_selection(text: string, beside: HTMLElement): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  beside.after(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  beside.focus();
  return copied;
}

/** The width and height of an element, updated when its layout changes. */
export function useSize(ref: RefObject<HTMLElement | null>): {width: number; height: number} {
  const size = useSignal({width: 0, height: 0});
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      if (!ref.current) return;
      size.value = {width: element.clientWidth, height: element.clientHeight};
    });
    observer.observe(element);
    size.value = {width: element.clientWidth, height: element.clientHeight};
    return () => observer.disconnect();
  }, []);
  return size.value;
}
