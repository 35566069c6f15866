// Starts the page and lists its views.
import {useSignal} from '@preact/signals';
import {render, type ComponentType} from 'preact';
import {useEffect} from 'preact/hooks';
import {start_live} from './app/live';
import {navigate, path, start_router} from './app/router';
import {load_session, start_session, use_code_of_address} from './app/session';
import {start_settings} from './app/settings';
import {Shell} from './app/shell';
import {start_shortcuts} from './app/shortcuts';
import {ErrorBoundary} from './ui/error_boundary';
import {ErrorNote, Link, Page, Waiting, error_text, toast} from './ui/parts';

type View = ComponentType<{parts: string[]}>;

/** The view of each first segment of the path. Its code is loaded when the view is first opened. */
const kViews: Record<string, () => Promise<View>> = {
  overview: async () => (await import('./pages/overview')).Overview,
  jobs: async () => (await import('./pages/jobs')).Jobs,
  nodes: async () => (await import('./pages/nodes')).Nodes,
  scheduler: async () => (await import('./pages/scheduler')).Scheduler,
  audit: async () => (await import('./pages/audit')).Audit,
  projects: async () => (await import('./pages/projects')).Projects,
  submit: async () => (await import('./pages/submit')).Submit,
  compare: async () => (await import('./pages/compare')).Compare,
  logs: async () => (await import('./pages/log_search')).LogSearch,
  sweeps: async () => (await import('./pages/sweeps')).Sweeps,
  arrays: async () => (await import('./pages/arrays')).Arrays,
  schedules: async () => (await import('./pages/schedules')).Schedules,
  tokens: async () => (await import('./pages/tokens')).Tokens,
};

function Views() {
  const parts = path.value.split('/').filter(Boolean).map(decode);
  const name = parts[0] ?? 'overview';
  const view = useSignal<View | null>(null);
  const shown = useSignal('');
  const fault = useSignal<unknown>(null);
  useEffect(() => {
    const load = kViews[name];
    fault.value = null;
    if (!load) return;
    let gone = false;
    load().then(
      (loaded) => {
        if (!gone) {
          view.value = loaded;
          shown.value = name;
        }
      },
      (problem) => {
        if (!gone) fault.value = problem;
      },
    );
    return () => {
      gone = true;
    };
  }, [name]);
  if (!kViews[name])
    return (
      <Page title="There is no such page">
        <p>
          No page has this address. <Link to="/jobs">Go to the list of jobs.</Link>
        </p>
      </Page>
    );
  if (fault.value)
    return (
      <Page title="The page could not be loaded">
        <ErrorNote error={fault.value} />
        <p>
          The server may have been updated.{' '}
          <a href={location.href} onClick={() => location.reload()}>
            Load the page again.
          </a>
        </p>
      </Page>
    );
  const Shown = view.value;
  if (!Shown || shown.value !== name) return <Waiting />;
  return (
    <ErrorBoundary key={name} at={path.value}>
      <Shown parts={parts.slice(1)} />
    </ErrorBoundary>
  );
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function start(): Promise<void> {
  start_settings();
  start_router();
  start_shortcuts();
  start_session();
  // Before navigate(), which would drop the code from the address.
  const logged_in = use_code_of_address();
  if (path.value === '/') navigate('/overview', {replace: true});
  await logged_in;
  // The first view is opened after the stream: it would repeat all requests that precede the stream.
  const load = () => {
    load_session().catch((fault) => toast(error_text(fault), 'error'));
  };
  const live = start_live(load);
  load();
  await live;
  render(
    <Shell>
      <Views />
    </Shell>,
    document.getElementById('app')!,
  );
}

void start();
