// The address of the page is its state: a path below /ui and a query. It holds every view, filter and
// selection, so that a user can send what is on the screen to a colleague.
import {computed, signal} from '@preact/signals';

export const kBase = '/ui';

export interface Place {
  /** Below /ui, without a trailing slash: `/jobs/dist`. */
  path: string;
  query: URLSearchParams;
}

function read(): Place {
  const path = location.pathname.startsWith(kBase) ? location.pathname.slice(kBase.length) : '/';
  return {path: path.replace(/\/+$/, '') || '/', query: new URLSearchParams(location.search)};
}

export const place = signal<Place>(read());
export const path = computed(() => place.value.path);

export function href(target: string): string {
  return kBase + target;
}

/** A path from its parts, each escaped, with a query of the non-empty values. */
export function to(parts: string[], query: Record<string, string | number | undefined | null> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  }
  const text = search.toString();
  return '/' + parts.map(encodeURIComponent).join('/') + (text ? '?' + text : '');
}

export function navigate(target: string, options: {replace?: boolean} = {}): void {
  const before = place.value.path;
  const url = kBase + target;
  if (options.replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  place.value = read();
  if (place.value.path !== before) {
    window.scrollTo(0, 0);
    // The new page gets the focus, so that a screen reader reads its heading.
    queueMicrotask(() => document.getElementById('main')?.focus({preventScroll: true}));
  }
}

/** Changes parts of the query; null and '' remove a part. */
export function set_query(changes: Record<string, string | null>, options: {push?: boolean} = {}): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  navigate(place.value.path + (text ? '?' + text : ''), {replace: !options.push});
}

export function query_value(name: string): string {
  return place.value.query.get(name) ?? '';
}

export function start_router(): void {
  window.addEventListener('popstate', () => {
    place.value = read();
  });
  // A plain click on a link of the page changes the view without a new document.
  document.addEventListener('click', (event) => {
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    const link = (event.target as Element | null)?.closest?.('a');
    if (!link || link.target || link.hasAttribute('download')) return;
    const url = new URL(link.href, location.href);
    if (url.origin !== location.origin || !(url.pathname + '/').startsWith(kBase + '/')) return;
    if (url.hash && url.pathname === location.pathname && url.search === location.search) return;
    event.preventDefault();
    navigate(url.pathname.slice(kBase.length) + url.search);
  });
}
