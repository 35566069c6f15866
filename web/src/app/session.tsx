// Who uses the page, and the sheet that asks for a new code when the session has expired. The page
// below the sheet keeps everything that was typed; waiting requests are sent again after the login.
import {signal, useSignal} from '@preact/signals';
import type {ServerInfo, WhoAmI} from '../api/types';
import {change, get, logged_in, logged_out} from '../api/client';
import {Dialog, error_text} from '../ui/parts';
import {anything_changed} from './live';

export const me = signal<WhoAmI | null>(null);
export const server = signal<ServerInfo | null>(null);

/** `#code=...` of the address that `muster ui` printed: used once and removed from the address. */
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

const first_fault = signal('');

export async function load_session(): Promise<void> {
  me.value = await get<WhoAmI>('/v1/whoami');
  server.value = await get<ServerInfo>('/v1/info');
}

export function is_server_admin(): boolean {
  return me.value?.server_role === 'admin';
}

const kRanks: Record<string, number> = {none: 0, viewer: 1, member: 2, admin: 3};

/** The caller's role in a project; a role in a parent counts, so parents are given as well. */
export function role_in(project: string, parents: string[] = []): string {
  if (is_server_admin()) return 'admin';
  let best = 'none';
  for (const name of [project, ...parents]) {
    const role = me.value?.projects[name] ?? 'none';
    if ((kRanks[role] ?? 0) > (kRanks[best] ?? 0)) best = role;
  }
  return best;
}

export function may_administer(project: string, parents: string[] = []): boolean {
  return role_in(project, parents) === 'admin';
}

export async function log_out(): Promise<void> {
  await change('POST', '/v1/logout');
  me.value = null;
  logged_out.value = true;
}

export function LoginSheet() {
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
      // Another user must not see what the previous one had on the page.
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
      {was_here && <p>Nothing that you typed is lost. Log in again to continue.</p>}
      <p>
        Run <code>muster ui</code> and paste the code or the address that it prints. A token of{' '}
        <code>muster token create</code> or an invitation is accepted as well.
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
