// The user of the page, and the dialog that asks for a new code when the session has expired. The page
// behind the dialog keeps the input of its forms; waiting requests are sent again after the login.
import {signal, useSignal} from '@preact/signals';
import type {PageLogin, ServerInfo, WhoAmI} from '../api/types';
import {Failure, change, get, is_unreachable, logged_in, logged_out, send} from '../api/client';
import {Dialog, error_text, toast} from '../ui/parts';
import {anything_changed, kRetryPause} from './live';
import {kBase} from './router';

export const me = signal<WhoAmI | null>(null);
export const server = signal<ServerInfo | null>(null);

/** Why the code of the address was refused; the login dialog shows it. */
const first_fault = signal('');

/** The code of the address and the user whose session it opens, until the user has decided whether to log in with it. */
const offered = signal<{code: string; user: string} | null>(null);

/** Sends the name of a user who logs in to the other tabs: they have the same cookie, and therefore a new user. */
let tabs: BroadcastChannel | null = null;

let leaving = false;

/** Whether the page is being replaced because the user has changed: what it holds belongs to the former user. */
export function is_leaving(): boolean {
  return leaving;
}

/** Loads a new page, without the drafts, files and waiting requests of this one. */
function open_anew(address: string): void {
  leaving = true;
  location.replace(address);
}

const own_address = (): string => location.pathname + location.search;

/**
 * When another tab logs in, this one has its session, too: a page of another user is loaded anew, and requests that wait for
 * a login are sent again.
 */
export function start_session(): void {
  tabs = new BroadcastChannel('muster.login');
  tabs.onmessage = ({data}) => {
    if (me.value && me.value.user !== data) open_anew(own_address());
    else if (logged_out.value) {
      logged_in();
      anything_changed();
    }
  };
}

const kSession = '/v1/ui/session';

async function exchange(code: string): Promise<WhoAmI> {
  const answer = await change<WhoAmI>('POST', kSession, {code} satisfies PageLogin);
  tabs?.postMessage(answer.user);
  return answer;
}

/** The user whose session a code would open. */
async function user_of(code: string): Promise<WhoAmI> {
  return await change<WhoAmI>('POST', kSession, {code, check: true} satisfies PageLogin);
}

/** The user of the browser's session, if it has a valid one. */
async function present_user(): Promise<WhoAmI | null> {
  try {
    const answer = await send('GET', '/v1/whoami', {login: 'fail', retries: 'user'});
    return (await answer.json()) as WhoAmI;
  } catch (fault) {
    if (fault instanceof Failure && fault.status === 401) return null;
    throw fault;
  }
}

/**
 * Logs in with the `#code=...` of the address that `muster ui` printed, and removes it from the address. The page asks
 * first: a link may contain a code of its author, and the user who follows the link would work in the author's account.
 *
 * Two kinds of codes need no question, because their author gains nothing: a code of the present user, and, without a
 * session, a code of the owner of the server's unix socket, who may do everything on the server. `muster ui` on the user's
 * own machine makes a code of the second kind.
 */
export async function use_code_of_address(): Promise<void> {
  const text = /^#code=(.+)$/.exec(location.hash)?.[1];
  if (!text) return;
  history.replaceState(null, '', own_address());
  let before: WhoAmI | null | undefined;
  try {
    const code = decodeURIComponent(text);
    me.value = before = await present_user();
    const other = await user_of(code);
    if (before ? before.user === other.user : other.token === '') me.value = await exchange(code);
    else offered.value = {code, user: other.user};
  } catch (fault) {
    first_fault.value = error_text(fault);
    // With a session, the login dialog is not shown.
    if (before !== null) toast(first_fault.value, 'error');
  }
}

let loads = 0;

/**
 * Loads the user and the server, and repeats this until the server answers: without the user's roles, the page has no
 * button that needs one. Called again when the roles may have changed; the last call counts.
 */
export async function load_session(): Promise<void> {
  const mine = ++loads;
  while (mine === loads) {
    try {
      const user = await get<WhoAmI>('/v1/whoami');
      if (mine !== loads) return;
      // Another tab has logged in as another user.
      if (me.value && me.value.user !== user.user) {
        open_anew(own_address());
        return;
      }
      me.value = user;
      const info = await get<ServerInfo>('/v1/info');
      if (mine === loads) server.value = info;
      return;
    } catch (fault) {
      if (mine !== loads) return;
      if (!is_unreachable(fault)) throw fault;
      await new Promise((resolve) => setTimeout(resolve, kRetryPause));
    }
  }
}

export function is_server_admin(): boolean {
  return me.value?.server_role === 'admin';
}

const kRoleOrder: Record<string, number> = {none: 0, viewer: 1, member: 2, admin: 3};

/** Whether a role permits to submit, change and stop jobs. */
export function is_member(role: string): boolean {
  return (kRoleOrder[role] ?? 0) >= kRoleOrder['member']!;
}

/** Whether the user sees what concerns the whole server: all nodes, the users, the audit log. */
export function is_server_viewer(): boolean {
  return (me.value?.server_role ?? 'none') !== 'none';
}

/**
 * The user's role in a project. A role on the server or in a project above counts as well: `parents` are their names. The
 * server has limited all of these roles to the ceiling and the projects of the token.
 */
export function role_in(project: string, parents: string[] = []): string {
  let best: string = me.value?.server_role ?? 'none';
  for (const name of [project, ...parents]) {
    const role = me.value?.projects[name] ?? 'none';
    if ((kRoleOrder[role] ?? 0) > (kRoleOrder[best] ?? 0)) best = role;
  }
  return best;
}

export async function log_out(): Promise<void> {
  try {
    await send('POST', '/v1/logout', {login: 'fail'});
  } catch (fault) {
    // Without a session, the user is logged out already.
    if (!(fault instanceof Failure && fault.status === 401)) {
      toast(`You are still logged in: ${error_text(fault)}`, 'error');
      return;
    }
  }
  open_anew(`${kBase}/`);
}

export function LoginDialog() {
  const code = useSignal('');
  const fault = useSignal(first_fault.value);
  const busy = useSignal(false);
  if (!logged_out.value || offered.value) return null;
  const was_here = me.value !== null;
  const submit = async (event: Event) => {
    event.preventDefault();
    busy.value = true;
    try {
      const before = me.value?.user;
      const answer = await exchange(code.value.trim().replace(/^.*#code=/, ''));
      // A new user must neither see nor send what the page holds of the user before.
      if (before && before !== answer.user) {
        open_anew(own_address());
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

/** Asks whether the page shall log in with the code of the address. */
export function CodeQuestion() {
  const fault = useSignal('');
  const busy = useSignal(false);
  if (!offered.value) return null;
  const {code, user} = offered.value;
  const present = me.value?.user;
  const refuse = () => {
    offered.value = null;
  };
  const accept = async () => {
    busy.value = true;
    try {
      const answer = await exchange(code);
      offered.value = null;
      if (present) {
        open_anew(own_address());
        return;
      }
      me.value = answer;
      logged_in();
      anything_changed();
    } catch (problem) {
      fault.value = error_text(problem);
      busy.value = false;
    }
  };
  return (
    <Dialog title={`Log in as ${user}?`} onClose={refuse}>
      <p>
        The address that you opened contains a code that logs this browser in to <bdi class="mono">{location.host}</bdi>{' '}
        as <bdi class="mono">{user}</bdi>. What you then do here is done under that account.
        {present && (
          <>
            {' '}
            You are logged in as <bdi class="mono">{present}</bdi>.
          </>
        )}
      </p>
      <p>
        Log in only if you ran <code>muster ui</code> yourself, or if an admin of the server gave you the address for
        this account, and not after a link on a web page or in a message.
      </p>
      <span class="fault" role="alert">
        {fault.value}
      </span>
      <div class="actions">
        <button autoFocus onClick={refuse}>
          {present ? `Stay logged in as ${present}` : 'Do not log in'}
        </button>
        <button
          class="primary"
          disabled={busy.value}
          onClick={() => {
            void accept();
          }}
        >
          Log in as {user}
        </button>
      </div>
    </Dialog>
  );
}
