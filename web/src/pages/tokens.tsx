// The tokens of the user, and for users with a server role the users. The text of a token is shown once and not stored.
import {useSignal} from '@preact/signals';
import {change, get} from '../api/client';
import type {NewToken, NewUser, Token, Tokens as TokenList, Users} from '../api/types';
import {text_of} from '../app/format';
import {is_server_admin, is_server_viewer, me} from '../app/session';
import {visible_text} from '../ui/ansi';
import {ChoiceField, ConfirmDialog, FormDialog, SecretDialog, TextField} from '../ui/dialogs';
import {Card, ErrorNote, Page, Time, Waiting, error_text, toast, useBusy, useData} from '../ui/parts';

export function Tokens(_: {parts: string[]}) {
  const secret = useSignal<{title: string; text: string} | null>(null);
  return (
    <Page title="Users and tokens">
      <TokenCard
        show={(title, text) => {
          secret.value = {title, text};
        }}
      />
      {is_server_viewer() && (
        <UserCard
          show={(title, text) => {
            secret.value = {title, text};
          }}
        />
      )}
      {secret.value && (
        <SecretDialog
          title={secret.value.title}
          text={secret.value.text}
          close={() => {
            secret.value = null;
          }}
        >
          <p>Copy the text now. The server stores only its checksum and cannot show it again.</p>
        </SecretDialog>
      )}
    </Page>
  );
}

const kRoles = ['viewer', 'member', 'admin'];

type Show = (title: string, text: string) => void;

function TokenCard({show}: {show: Show}) {
  const loaded = useData((signal) => get<TokenList>('/v1/tokens', {}, signal), [], {every: 60000, match: () => false});
  const making = useSignal(false);
  const revoked = useSignal<Token | null>(null);
  const revoke = async (id: string) => {
    try {
      await change('DELETE', `/v1/tokens/${encodeURIComponent(id)}`);
      toast('Revoked the token');
      loaded.reload();
    } catch (fault) {
      toast(error_text(fault), 'error');
    }
  };
  return (
    <Card
      title="Tokens"
      scroll
      actions={
        <button
          onClick={() => {
            making.value = true;
          }}
        >
          New token
        </button>
      }
    >
      <ErrorNote error={loaded.error} />
      {loaded.loading && <Waiting />}
      {loaded.data &&
        (loaded.data.tokens.length === 0 ? (
          <div class="empty">No tokens yet. A program needs a token to use the server.</div>
        ) : (
          <table class="grid">
            <caption class="hidden-text">Tokens</caption>
            <thead>
              <tr>
                <th>Description</th>
                <th>User</th>
                <th>Kind</th>
                <th>Role</th>
                <th>Projects</th>
                <th>Created</th>
                <th>Last used</th>
                <th>Expires</th>
                <th>
                  <span class="hidden-text">Revoke</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {loaded.data.tokens.map((token) => (
                <tr key={token.id}>
                  <th scope="row" class="break">
                    <bdi>{visible_text(text_of(token.description)) || token.id}</bdi>
                    {me.value?.token === token.id && (
                      <>
                        {' '}
                        <span class="chip">this page</span>
                      </>
                    )}
                  </th>
                  <td>
                    <bdi>{token.user}</bdi>
                  </td>
                  <td>{token.kind}</td>
                  <td>{token.ceiling}</td>
                  <td class="break">{token.projects.join(', ') || 'all'}</td>
                  <td>
                    <Time at={token.created} />
                  </td>
                  <td>
                    <Time at={token.last_used} />
                  </td>
                  <td>
                    <Time at={token.expires} />
                  </td>
                  <td>
                    <button
                      class="danger"
                      aria-label={`Revoke ${text_of(token.description) || token.id}`}
                      onClick={() => {
                        revoked.value = token;
                      }}
                    >
                      Revoke
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      {revoked.value && (
        <ConfirmDialog
          title={`Revoke ${visible_text(text_of(revoked.value.description)) || revoked.value.id}?`}
          verb="Revoke"
          close={() => {
            revoked.value = null;
          }}
          act={async () => {
            await revoke(revoked.value!.id);
            revoked.value = null;
          }}
        >
          <p>
            {revoked.value.id === me.value?.token
              ? 'This token is the session of this page: you have to log in again.'
              : 'Programs and pages that use this token are refused from now on.'}
          </p>
        </ConfirmDialog>
      )}
      {making.value && (
        <NewTokenDialog
          close={() => {
            making.value = false;
          }}
          made={(text) => {
            making.value = false;
            show('The new token', text);
            loaded.reload();
          }}
        />
      )}
    </Card>
  );
}

function NewTokenDialog({close, made}: {close: () => void; made: (text: string) => void}) {
  const description = useSignal('');
  const ceiling = useSignal('member');
  const days = useSignal('30');
  const projects = useSignal('');
  const send = async () => {
    const answer = await change<NewToken>('POST', '/v1/tokens', {
      description: description.value,
      ceiling: ceiling.value,
      projects: projects.value.split(/[\s,]+/).filter(Boolean),
      lifetime_s: Math.round(Number(days.value) * 86400),
      ...(me.value?.address === 'local' ? {user: me.value.user} : {}),
    });
    made((answer as unknown as {text: string}).text);
  };
  return (
    <FormDialog title="New token" close={close} send={send}>
      <TextField label="Description" value={description} required />
      <ChoiceField label="Highest role" value={ceiling} choices={kRoles.map((role) => [role, role])} />
      <TextField label="Projects" value={projects} placeholder="all" />
      <TextField label="Days until it expires" value={days} type="number" min="1" max="3650" required />
    </FormDialog>
  );
}

/** Only admins of the server change users. */
function UserCard({show}: {show: Show}) {
  const is_admin = is_server_admin();
  const loaded = useData((signal) => get<Users>('/v1/users', {}, signal), [], {every: 60000, match: () => false});
  const name = useSignal('');
  const fault = useSignal<unknown>(null);
  const adding = useBusy();
  const changing = useBusy();
  const add = async () => {
    try {
      const answer = await change<NewUser>('POST', '/v1/users', {name: name.value.trim()});
      name.value = '';
      fault.value = null;
      show('The invitation', (answer as unknown as {invitation: {text: string}}).invitation.text);
      loaded.reload();
    } catch (problem) {
      fault.value = problem;
    }
  };
  const act = (method: string, path: string, body: unknown, done: string) =>
    changing.run(async () => {
      try {
        const answer = await change<{text?: string} | undefined>(method, path, body);
        if (answer?.text) show('The invitation', answer.text);
        else toast(done);
        loaded.reload();
      } catch (problem) {
        toast(error_text(problem), 'error');
      }
    });
  return (
    <Card
      title="Users"
      scroll
      actions={
        is_admin && (
          <form
            class="row"
            onSubmit={(event) => {
              event.preventDefault();
              void adding.run(add);
            }}
          >
            <label>
              New user{' '}
              <input
                size={14}
                value={name.value}
                onInput={(e) => {
                  name.value = e.currentTarget.value;
                }}
              />
            </label>
            <button disabled={adding.busy || !name.value.trim()}>Invite</button>
          </form>
        )
      }
    >
      <ErrorNote error={fault.value ?? loaded.error} />
      {loaded.loading && <Waiting />}
      {loaded.data &&
        (loaded.data.users.length === 0 ? (
          <div class="empty">No users yet. Only the owner of the server's socket can use this server.</div>
        ) : (
          <table class="grid">
            <caption class="hidden-text">Users</caption>
            <thead>
              <tr>
                <th>User</th>
                <th>Server role</th>
                <th>Projects</th>
                <th>State</th>
                <th>Created</th>
                {is_admin && <th>Actions</th>}
              </tr>
            </thead>
            <tbody>
              {loaded.data.users.map((user) => {
                const path = `/v1/users/${encodeURIComponent(user.name)}`;
                return (
                  <tr key={user.name}>
                    <th scope="row">
                      <bdi>{user.name}</bdi>
                    </th>
                    <td>{user.server_role}</td>
                    <td class="break">
                      {Object.entries(user.projects)
                        .map(([project, role]) => `${project}: ${role}`)
                        .join(', ') || <span class="muted">none</span>}
                    </td>
                    <td>{user.disabled ? 'disabled' : 'active'}</td>
                    <td>
                      <Time at={user.created} />
                    </td>
                    {is_admin && (
                      <td class="row">
                        <button
                          disabled={changing.busy}
                          onClick={() => {
                            void act(
                              'PATCH',
                              path,
                              {disabled: !user.disabled},
                              user.disabled ? `Enabled ${user.name}` : `Disabled ${user.name}`,
                            );
                          }}
                        >
                          {user.disabled ? 'Enable' : 'Disable'}
                        </button>
                        <button
                          disabled={changing.busy}
                          onClick={() => {
                            void act('POST', `${path}/invitation`, undefined, '');
                          }}
                        >
                          New invitation
                        </button>
                      </td>
                    )}
                  </tr>
                );
              })}
            </tbody>
          </table>
        ))}
    </Card>
  );
}
