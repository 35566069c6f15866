// The user of the page, and the dialog that asks for a new code when the session has expired. The page
// behind the dialog keeps the input of its forms; waiting requests are sent again after the login.
import {signal, useSignal} from '@preact/signals';
import type {ServerInfo, WhoAmI} from '../api/types';
import {change, get, is_unreachable, logged_in, logged_out} from '../api/client';
import {Dialog, error_text, toast} from '../ui/parts';
import {anything_changed, kRetryPause} from './live';

export const me = signal<WhoAmI | null>(null);
export const server = signal<ServerInfo | null>(null);

/** Why the code of the address was refused; the login dialog shows it. */
const first_fault = signal('');

/** Logs in with the `#code=...` of the address that `muster ui` printed, and removes it from the address. */
export async function use_code_of_address(): Promise<void> {
  const code = /^#code=(.+)$/.exec(location.hash)?.[1];
  if (!code) return;
  history.replaceState(null, '', location.pathname + location.search);
  try {
    me.value = await change<WhoAmI>('POST', '/v1/ui/session', {code: decodeURIComponent(code)});
  } catch (fault) {
    first_fault.value = error_text(fault);
  }
}

/**
 * Loads the user and the server, and repeats this until the server answers: without the user's roles, the page has no
 * button that needs one.
 */
export async function load_session(): Promise<void> {
  for (;;) {
    try {
      me.value = await get<WhoAmI>('/v1/whoami');
      server.value = await get<ServerInfo>('/v1/info');
      return;
    } catch (fault) {
      if (!is_unreachable(fault)) throw fault;
      await new Promise((resolve) => setTimeout(resolve, kRetryPause));
    }
  }
}

export function is_server_admin(): boolean {
  return me.value?.server_role === 'admin';
}

const kRoleOrder: Record<string, number> = {none: 0, viewer: 1, member: 2, admin: 3};

/** The user's role in a project. A role in a project above counts as well: `parents` are their names. */
export function role_in(project: string, parents: string[] = []): string {
  if (is_server_admin()) return 'admin';
  let best = 'none';
  for (const name of [project, ...parents]) {
    const role = me.value?.projects[name] ?? 'none';
    if ((kRoleOrder[role] ?? 0) > (kRoleOrder[best] ?? 0)) best = role;
  }
  return best;
}

export async function log_out(): Promise<void> {
  try {
    await change('POST', '/v1/logout');
    me.value = null;
    logged_out.value = true;
  } catch (fault) {
    toast(`You are still logged in: ${error_text(fault)}`, 'error');
  }
}

export function LoginDialog() {
  const code = useSignal('');
  const fault = useSignal(first_fault.value);
  const busy = useSignal(false);
  if (!logged_out.value) return null;
  const was_here = me.value !== null;
  const submit = async (event: Event) => {
    event.preventDefault();
    busy.value = true;
    try {
      const before = me.value?.user;
      const answer = await change<WhoAmI>('POST', '/v1/ui/session', {code: code.value.trim().replace(/^.*#code=/, '')});
      // A new user must not see what the page still shows of the user before.
      if (before && before !== answer.user) {
        location.reload();
        return;
      }
      me.value = answer;
      code.value = '';
      fault.value = '';
      logged_in();
      anything_changed();
    } catch (problem) {
      fault.value = error_text(problem);
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog title={was_here ? 'Your session has expired' : 'Log in to Muster'} onClose={() => {}} closable={false}>
      {was_here && <p>Your input is kept. Log in again to continue.</p>}
      <p>
        Run <code>muster ui</code> and paste the code or the address that it prints. An invitation, or a token from{' '}
        <code>muster token create</code>, works as well.
      </p>
      <form class="stack tight" onSubmit={submit}>
        <div class="field">
          <label for="login-code">Code or token</label>
          <input
            id="login-code"
            type="password"
            autocomplete="off"
            autoFocus
            value={code.value}
            aria-invalid={fault.value ? 'true' : undefined}
            aria-describedby="login-fault"
            onInput={(e) => {
              code.value = e.currentTarget.value;
            }}
          />
          <span id="login-fault" class="fault" role="alert">
            {fault.value}
          </span>
        </div>
        <div class="actions">
          <button class="primary" disabled={busy.value || !code.value.trim()}>
            Log in
          </button>
        </div>
      </form>
    </Dialog>
  );
}
