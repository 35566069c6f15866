// The members of a project with their roles, and the names of its secrets.
import {useSignal} from '@preact/signals';
import {change, get, project_path} from '../api/client';
import type {Members, Secrets} from '../api/types';
import {ConfirmDialog} from '../ui/dialogs';
import {Card, ErrorNote, Time, Waiting, error_text, toast, useData} from '../ui/parts';

const kRoles = ['viewer', 'member', 'admin'];

export function MemberCard({project, admin}: {project: string; admin: boolean}) {
  const loaded = useData((signal) => get<Members>(project_path(project, '/members'), {}, signal), [project], {
    every: 30000,
    match: () => false,
  });
  const name = useSignal('');
  const role = useSignal('member');
  /** Resolves to whether the server has made the change. */
  const act = async (method: string, user: string, body: unknown, done: string): Promise<boolean> => {
    let made = false;
    try {
      await change(method, project_path(project, `/members/${encodeURIComponent(user)}`), body);
      made = true;
      toast(done);
    } catch (fault) {
      toast(error_text(fault), 'error');
    }
    // After an error as well: a selection of a role that was refused shows the role in force again.
    loaded.reload();
    return made;
  };
  const add = async () => {
    const sent = name.value;
    const user = sent.trim();
    // The user may have typed the next name meanwhile.
    if ((await act('PUT', user, {role: role.value}, `Added ${user}`)) && name.value === sent) name.value = '';
  };
  return (
    <Card title="Members" scroll>
      <ErrorNote error={loaded.error} />
      {loaded.loading && <Waiting />}
      {loaded.data &&
        (loaded.data.members.length === 0 ? (
          <div class="empty">
            No members yet. Only server admins and members of the projects above can use this project.
          </div>
        ) : (
          <table class="grid">
            <caption class="hidden-text">Members</caption>
            <thead>
              <tr>
                <th>User</th>
                <th>Role</th>
                <th>
                  <span class="hidden-text">Remove</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {loaded.data.members.map((member) => (
                <tr key={member.user}>
                  <th scope="row">
                    <bdi>{member.user}</bdi>
                  </th>
                  <td>
                    {admin ? (
                      <select
                        aria-label={`Role of ${member.user}`}
                        value={member.role}
                        onChange={(e) => {
                          void act(
                            'PUT',
                            member.user,
                            {role: e.currentTarget.value},
                            `Changed the role of ${member.user}`,
                          );
                        }}
                      >
                        {kRoles.map((each) => (
                          <option key={each} selected={each === member.role}>
                            {each}
                          </option>
                        ))}
                      </select>
                    ) : (
                      member.role
                    )}
                  </td>
                  <td>
                    {admin && (
                      <button
                        class="danger"
                        aria-label={`Remove ${member.user}`}
                        onClick={() => {
                          void act('DELETE', member.user, undefined, `Removed ${member.user}`);
                        }}
                      >
                        Remove
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      {admin && (
        <form
          class="row body"
          onSubmit={(event) => {
            event.preventDefault();
            void add();
          }}
        >
          <label>
            User{' '}
            <input
              value={name.value}
              onInput={(e) => {
                name.value = e.currentTarget.value;
              }}
            />
          </label>
          <label>
            Role{' '}
            <select
              value={role.value}
              onChange={(e) => {
                role.value = e.currentTarget.value;
              }}
            >
              {kRoles.map((each) => (
                <option key={each} selected={each === role.value}>
                  {each}
                </option>
              ))}
            </select>
          </label>
          <button disabled={!name.value.trim()}>Add</button>
        </form>
      )}
    </Card>
  );
}

export function SecretCard({project, admin}: {project: string; admin: boolean}) {
  const loaded = useData((signal) => get<Secrets>(project_path(project, '/secrets'), {}, signal), [project], {
    every: 30000,
    match: () => false,
  });
  const name = useSignal('');
  const value = useSignal('');
  const deleted = useSignal('');
  /** Resolves to whether the server has made the change. */
  const act = async (method: string, secret: string, body: unknown, done: string): Promise<boolean> => {
    try {
      await change(method, project_path(project, `/secrets/${encodeURIComponent(secret)}`), body);
    } catch (fault) {
      toast(error_text(fault), 'error');
      return false;
    }
    toast(done);
    loaded.reload();
    return true;
  };
  const store = async () => {
    const sent = {name: name.value, value: value.value};
    const secret = sent.name.trim();
    if (!(await act('PUT', secret, {value: sent.value}, `Stored ${secret}`))) return;
    // The user may have typed the next secret meanwhile.
    if (name.value === sent.name) name.value = '';
    if (value.value === sent.value) value.value = '';
  };
  return (
    <Card title="Secrets" scroll>
      <ErrorNote error={loaded.error} />
      {loaded.loading && <Waiting />}
      {loaded.data &&
        (loaded.data.secrets.length === 0 ? (
          <div class="empty">No secrets yet. Jobs of the project can use secrets as variables or files.</div>
        ) : (
          <table class="grid">
            <caption class="hidden-text">Secrets, without their values</caption>
            <thead>
              <tr>
                <th>Name</th>
                <th>Created</th>
                <th>Changed</th>
                <th>By</th>
                <th>
                  <span class="hidden-text">Delete</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {loaded.data.secrets.map((secret) => (
                <tr key={secret.name}>
                  <th scope="row" class="mono">
                    <bdi>{secret.name}</bdi>
                  </th>
                  <td>
                    <Time at={secret.created} />
                  </td>
                  <td>
                    <Time at={secret.changed} />
                  </td>
                  <td>
                    <bdi>{secret.changed_by}</bdi>
                  </td>
                  <td>
                    {admin && (
                      <button
                        class="danger"
                        aria-label={`Delete ${secret.name}`}
                        onClick={() => {
                          deleted.value = secret.name;
                        }}
                      >
                        Delete
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      <p class="muted small body">Jobs can use the values of secrets. The page and the API never show them.</p>
      {deleted.value && (
        <ConfirmDialog
          title={`Delete secret ${deleted.value}?`}
          verb="Delete"
          close={() => {
            deleted.value = '';
          }}
          act={async () => {
            await act('DELETE', deleted.value, undefined, `Deleted ${deleted.value}`);
            deleted.value = '';
          }}
        >
          <p>The value is deleted permanently. New jobs that use the secret are refused.</p>
        </ConfirmDialog>
      )}
      {admin && (
        <form
          class="row body"
          onSubmit={(event) => {
            event.preventDefault();
            void store();
          }}
        >
          <label>
            Name{' '}
            <input
              class="mono"
              value={name.value}
              onInput={(e) => {
                name.value = e.currentTarget.value;
              }}
            />
          </label>
          <label>
            Value{' '}
            <input
              type="password"
              autocomplete="off"
              value={value.value}
              onInput={(e) => {
                value.value = e.currentTarget.value;
              }}
            />
          </label>
          <button disabled={!name.value.trim() || !value.value}>Store</button>
        </form>
      )}
    </Card>
  );
}
