// The notifications of a project: the addresses, with a test request to each, and the notifications that
// could not be delivered. docs/notifications.md describes the requests.
import {useSignal} from '@preact/signals';
import {change, get, project_path} from '../api/client';
import type {
  DeadLetters,
  Happening,
  KeyedSubscription,
  PingResult,
  Retried,
  Subscription,
  Subscriptions,
} from '../api/types';
import {span_text} from '../app/format';
import {visible_text} from '../ui/ansi';
import {ConfirmDialog, SecretDialog} from '../ui/dialogs';
import {Card, ErrorNote, Link, Time, Waiting, error_text, toast, useBusy, useData} from '../ui/parts';
import {to} from '../app/router';

const kHappenings: [Happening, string][] = [
  ['started', 'starts'],
  ['requeued', 'is queued again'],
  ['succeeded', 'succeeds'],
  ['failed', 'fails'],
  ['stopped', 'is stopped'],
];
const kDefault: Happening[] = ['succeeded', 'failed', 'stopped'];

export function Notifications({project, admin}: {project: string; admin: boolean}) {
  const loaded = useData(
    (signal) => get<Subscriptions>(project_path(project, '/notifications'), {}, signal),
    [project],
    {every: 30000, match: () => false},
  );
  const issued = useSignal<KeyedSubscription | null>(null);
  return (
    <div class="stack">
      <Card title="Addresses" scroll>
        <ErrorNote error={loaded.error} />
        {loaded.loading && <Waiting />}
        {loaded.data &&
          (loaded.data.subscriptions.length === 0 ? (
            <div class="empty">
              No addresses yet. Muster sends a signed HTTP request to each address when a job of the project starts or
              ends.
            </div>
          ) : (
            <Addresses
              project={project}
              admin={admin}
              list={loaded.data.subscriptions}
              reload={loaded.reload}
              show={(key) => {
                issued.value = key;
              }}
            />
          ))}
      </Card>
      {admin && (
        <NewAddress
          project={project}
          done={(made) => {
            issued.value = made;
            loaded.reload();
          }}
        />
      )}
      <Undelivered project={project} admin={admin} />
      {issued.value && (
        <KeyDialog
          issued={issued.value}
          close={() => {
            issued.value = null;
          }}
        />
      )}
    </div>
  );
}

interface AddressesProps {
  project: string;
  admin: boolean;
  list: Subscription[];
  reload: () => void;
  show: (issued: KeyedSubscription) => void;
}

function Addresses({project, admin, list, reload, show}: AddressesProps) {
  const busy = useSignal('');
  const results = useSignal<Record<string, PingResult>>({});
  const removed = useSignal<Subscription | null>(null);
  const renewed = useSignal<Subscription | null>(null);
  const act = async (id: string, work: () => Promise<void>) => {
    busy.value = id;
    try {
      await work();
    } finally {
      busy.value = '';
    }
  };
  const path = (id: string, action = '') => project_path(project, `/notifications/${id}${action}`);
  const test = (id: string) =>
    act(id, async () => {
      const result = await change<PingResult>('POST', path(id, '/test'));
      results.value = {...results.value, [id]: result};
      reload();
    }).catch((fault: unknown) => toast(error_text(fault), 'error'));
  const rotate = (id: string) =>
    act(id, async () => {
      const issued = await change<KeyedSubscription>('POST', path(id, '/rotate'));
      renewed.value = null;
      show(issued);
    });
  const remove = (id: string) =>
    act(id, async () => {
      await change('DELETE', path(id));
      removed.value = null;
      reload();
    });
  return (
    <>
      <table class="grid">
        <caption class="hidden-text">Addresses that are notified</caption>
        <thead>
          <tr>
            <th>Address</th>
            <th>Events</th>
            <th>Jobs</th>
            <th>Added</th>
            {admin && <th>Actions</th>}
          </tr>
        </thead>
        <tbody>
          {list.map((each) => (
            <tr key={each.id}>
              <th scope="row" class="mono break">
                <bdi>{visible_text(each.url)}</bdi>
                {each.gone && (
                  <div class="fault small">
                    The address answered 410 (gone) on <Time at={each.gone} full />. Muster sends nothing to it until a
                    test arrives.
                  </div>
                )}
                {results.value[each.id] && <TestResult result={results.value[each.id]!} />}
              </th>
              <td>
                {each.on.join(', ')}
                {each.with_lines && <div class="muted small">with the last lines of failed jobs</div>}
                {each.members && <div class="muted small">with each member of arrays and sweeps</div>}
              </td>
              <td>
                <bdi>{visible_text(selection_of(each))}</bdi>
              </td>
              <td>
                <Time at={each.created} />{' '}
                <span class="muted small">
                  by <bdi>{each.created_by}</bdi>
                </span>
              </td>
              {admin && (
                <td class="nowrap">
                  <button
                    disabled={!!busy.value}
                    aria-label={`Send a test to ${each.url}`}
                    onClick={() => {
                      void test(each.id);
                    }}
                  >
                    {busy.value === each.id ? 'Sending…' : 'Send a test'}
                  </button>{' '}
                  <button
                    disabled={!!busy.value}
                    aria-label={`New key for ${each.url}`}
                    onClick={() => {
                      renewed.value = each;
                    }}
                  >
                    New key
                  </button>{' '}
                  <button
                    class="danger"
                    disabled={!!busy.value}
                    aria-label={`Remove ${each.url}`}
                    onClick={() => {
                      removed.value = each;
                    }}
                  >
                    Remove
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {renewed.value && (
        <ConfirmDialog
          title="Replace the key?"
          verb="Replace"
          close={() => {
            renewed.value = null;
          }}
          act={() => rotate(renewed.value!.id)}
        >
          <p class="break">
            From now on a new key signs what Muster sends to {visible_text(renewed.value.url)}. The receiver rejects it
            until it has the new key.
          </p>
        </ConfirmDialog>
      )}
      {removed.value && (
        <ConfirmDialog
          title="Remove the address?"
          verb="Remove"
          close={() => {
            removed.value = null;
          }}
          act={() => remove(removed.value!.id)}
        >
          <p class="break">
            Muster stops notifying {visible_text(removed.value.url)}, and deletes the notifications that wait to be sent
            to it.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

function selection_of({job, labels}: Subscription): string {
  const words = Object.entries(labels).map(([name, value]) => (value ? `${name}=${value}` : name));
  if (job) words.unshift(job);
  return words.length ? words.join(', ') : 'all';
}

function TestResult({result}: {result: PingResult}) {
  if (result.arrived)
    return (
      <div class="small" role="status">
        The test arrived: status {result.status} after {result.took_ms} ms.
      </div>
    );
  return (
    <div class="fault small" role="status">
      The test failed: {visible_text(result.fault)}. {visible_text(result.advice)}
    </div>
  );
}

function NewAddress({project, done}: {project: string; done: (made: KeyedSubscription) => void}) {
  const url = useSignal('');
  const job = useSignal('');
  const on = useSignal<Happening[]>(kDefault);
  const with_lines = useSignal(false);
  const members = useSignal(false);
  const fault = useSignal<unknown>(null);
  const {busy, run} = useBusy();
  const add = async () => {
    try {
      const made = await change<KeyedSubscription>('POST', project_path(project, '/notifications'), {
        url: url.value.trim(),
        on: on.value,
        ...(job.value.trim() ? {job: job.value.trim()} : {}),
        ...(with_lines.value ? {with_lines: true} : {}),
        ...(members.value ? {members: true} : {}),
      });
      url.value = '';
      job.value = '';
      fault.value = null;
      done(made);
    } catch (problem) {
      fault.value = problem;
    }
  };
  return (
    <Card title="Add an address">
      <form
        class="stack tight"
        onSubmit={(event) => {
          event.preventDefault();
          void run(add);
        }}
      >
        <div class="fields">
          <div class="field">
            <label for="note-url">Address</label>
            <input
              id="note-url"
              type="url"
              required
              placeholder="https://hooks.example.com/muster"
              value={url.value}
              onInput={(e) => {
                url.value = e.currentTarget.value;
              }}
            />
          </div>
          <div class="field">
            <label for="note-job">Only jobs named</label>
            <input
              id="note-job"
              placeholder="train-* (empty: all jobs)"
              value={job.value}
              onInput={(e) => {
                job.value = e.currentTarget.value;
              }}
            />
          </div>
        </div>
        <fieldset class="row">
          <legend>When a job of the project …</legend>
          {kHappenings.map(([each, text]) => (
            <label key={each}>
              <input
                type="checkbox"
                checked={on.value.includes(each)}
                onChange={(e) => {
                  on.value = e.currentTarget.checked ? [...on.value, each] : on.value.filter((other) => other !== each);
                }}
              />{' '}
              {text}
            </label>
          ))}
        </fieldset>
        <label>
          <input
            type="checkbox"
            checked={with_lines.value}
            onChange={(e) => {
              with_lines.value = e.currentTarget.checked;
            }}
          />{' '}
          Also send the last lines of failed jobs. They may contain confidential data.
        </label>
        <label>
          <input
            type="checkbox"
            checked={members.value}
            onChange={(e) => {
              members.value = e.currentTarget.checked;
            }}
          />{' '}
          Also send the events of each member of an array and each trial of a sweep, not only the end of the whole.
        </label>
        <ErrorNote error={fault.value} />
        <div>
          <button class="primary" disabled={busy || !url.value.trim() || on.value.length === 0}>
            Add
          </button>
        </div>
      </form>
    </Card>
  );
}

function KeyDialog({issued, close}: {issued: KeyedSubscription; close: () => void}) {
  return (
    <SecretDialog title="The signing key" text={issued.key} close={close}>
      <p class="break">
        Muster signs its requests to {visible_text(issued.subscription.url)} with this key. Give the key to the receiver
        now: it is shown only once.
      </p>
    </SecretDialog>
  );
}

function Undelivered({project, admin}: {project: string; admin: boolean}) {
  const loaded = useData((signal) => get<DeadLetters>(project_path(project, '/dead-letters'), {}, signal), [project], {
    every: 30000,
    match: () => false,
  });
  const list = loaded.data?.deliveries ?? [];
  const {busy, run} = useBusy();
  const retry = (ids: string[]) =>
    run(async () => {
      try {
        const {retried} = await change<Retried>('POST', project_path(project, '/dead-letters/retry'), {ids});
        toast(`${retried} ${retried === 1 ? 'notification is' : 'notifications are'} sent again`);
        loaded.reload();
      } catch (fault) {
        toast(error_text(fault), 'error');
      }
    });
  return (
    <Card
      title="Not delivered"
      scroll
      actions={
        admin &&
        list.length > 0 && (
          <button
            disabled={busy}
            onClick={() => {
              void retry([]);
            }}
          >
            Send all again
          </button>
        )
      }
    >
      <ErrorNote error={loaded.error} />
      {loaded.loading && <Waiting />}
      {loaded.data &&
        (list.length === 0 ? (
          <div class="empty">No notification failed in the last 7 days. Muster may still retry some.</div>
        ) : (
          <table class="grid">
            <caption class="hidden-text">Notifications that were not delivered</caption>
            <thead>
              <tr>
                <th>Time</th>
                <th>Event</th>
                <th>Job</th>
                <th class="num">Tries</th>
                <th class="num">Tried for</th>
                <th>Error</th>
                {admin && (
                  <th>
                    <span class="hidden-text">Send again</span>
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {list.map((each) => (
                <tr key={each.id}>
                  <td>
                    <Time at={each.created} />
                  </td>
                  <td>{each.object ? `${each.object} ${each.event}` : each.event}</td>
                  <th scope="row">
                    <Link to={to(['jobs'], {project, text: each.job})}>
                      <bdi>{each.job}</bdi>
                    </Link>
                  </th>
                  <td class="num">{each.attempts}</td>
                  <td class="num">{each.dead ? span_text(Date.parse(each.dead) - Date.parse(each.created)) : ''}</td>
                  <td class="break">
                    <bdi>{visible_text(each.fault)}</bdi>
                  </td>
                  {admin && (
                    <td>
                      <button
                        disabled={busy}
                        aria-label={`Send ${each.event} of ${each.job} again`}
                        onClick={() => {
                          void retry([each.id]);
                        }}
                      >
                        Send again
                      </button>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        ))}
    </Card>
  );
}
