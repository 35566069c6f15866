// The frame around every page: the menu, the user, and banners about the connection to the server.
import {signal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useEffect} from 'preact/hooks';
import {Icon, Logo} from '../ui/icons';
import {Link, Toasts, now} from '../ui/parts';
import {span_text, utc} from './format';
import {clock_offset, live, lost_since} from './live';
import {path} from './router';
import {CodeQuestion, LoginDialog, is_server_admin, log_out, me, server} from './session';
import {theme, type Theme} from './settings';
import {ShortcutHelp, help_open} from './shortcuts';

const open = signal(false);

const kPages: [string, string, string][] = [
  ['/overview', 'Overview', 'overview'],
  ['/jobs', 'Jobs', 'jobs'],
  ['/sweeps', 'Arrays and sweeps', 'sweeps'],
  ['/compare', 'Compare', 'compare'],
  ['/logs', 'Search logs', 'search'],
  ['/submit', 'Submit', 'submit'],
  ['/scheduler', 'Scheduler', 'scheduler'],
  ['/projects', 'Projects', 'projects'],
  ['/nodes', 'Nodes', 'nodes'],
  ['/tokens', 'Users and tokens', 'access'],
  ['/audit', 'Audit log', 'audit'],
];

export function Shell({children}: {children: ComponentChildren}) {
  const at = path.value;
  useEffect(() => {
    open.value = false;
  }, [at]);
  const offset = clock_offset.value;
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        Skip to content
      </a>
      <div class="frame">
        <header class={`side ${open.value ? 'open' : ''}`}>
          <div class="side-top">
            <Link to="/overview" class="brand">
              <Logo />
              Muster
            </Link>
            <button
              class="menu-button"
              aria-expanded={open.value}
              aria-controls="nav"
              onClick={() => {
                open.value = !open.value;
              }}
            >
              <Icon name="menu" />
              Menu
            </button>
          </div>
          <nav id="nav" aria-label="Pages">
            {kPages.map(([to, name, icon]) => (
              <Link key={to} to={to} aria-current={at === to || at.startsWith(to + '/') ? 'page' : undefined}>
                <Icon name={icon} />
                {name}
              </Link>
            ))}
          </nav>
          <div class="foot">
            {me.value && (
              <div class="who">
                <strong>
                  <bdi>{me.value.user}</bdi>
                </strong>
                {is_server_admin() && <span class="muted"> · server admin</span>}
              </div>
            )}
            <label class="small">
              Theme{' '}
              <select
                value={theme.value}
                onChange={(e) => {
                  theme.value = e.currentTarget.value as Theme;
                }}
              >
                <option value="auto">System</option>
                <option value="light">Light</option>
                <option value="dark">Dark</option>
              </select>
            </label>
            <label class="small">
              <input
                type="checkbox"
                checked={utc.value}
                onChange={(e) => {
                  utc.value = e.currentTarget.checked;
                }}
              />
              Times in UTC
            </label>
            <div class="row">
              <button
                class="link small"
                onClick={() => {
                  help_open.value = true;
                }}
              >
                Shortcuts (?)
              </button>
              {me.value && me.value.address !== 'local' && (
                <button
                  class="link small"
                  onClick={() => {
                    void log_out();
                  }}
                >
                  Log out
                </button>
              )}
            </div>
            {server.value && (
              <span class="muted">
                Muster {server.value.version}
                {server.value.engine ? ` · ${server.value.engine}` : ''}
              </span>
            )}
          </div>
        </header>
        <div class="grow">
          <div role="status" aria-live="polite">
            {live.value === 'lost' && (
              <div class="banner">
                <span class="pulse" aria-hidden="true">
                  ●
                </span>
                <span>
                  The connection to the server was lost
                  {/* Hidden from screen readers, which would read the banner again each second. */}
                  <span aria-hidden="true">
                    {lost_since.value ? ` ${span_text(now.value - lost_since.value)} ago` : ''}
                  </span>
                  . The page shows the last known state and reconnects by itself.
                </span>
              </div>
            )}
            {Math.abs(offset) > 120000 && (
              <div class="banner">
                <span>
                  The clock of this machine is {span_text(Math.abs(offset))} {offset > 0 ? 'behind' : 'ahead of'} the
                  server's clock. Ages on this page are wrong by this difference.
                </span>
              </div>
            )}
          </div>
          <main id="main" class="main" tabIndex={-1}>
            {children}
          </main>
        </div>
      </div>
      <Toasts />
      <LoginDialog />
      <CodeQuestion />
      <ShortcutHelp />
    </>
  );
}
