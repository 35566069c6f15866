// The audit log: which user changed what, newest first.
import {useSignal} from '@preact/signals';
import {useMemo} from 'preact/hooks';
import {get, get_once} from '../api/client';
import type {AuditPage} from '../api/types';
import {query_value} from '../app/router';
import {visible_text} from '../ui/ansi';
import {Card, ErrorNote, Page, Time, Waiting, error_text, toast, useData} from '../ui/parts';
import {AuditRecords, kAuditPage} from './audit_records';
import {DelayedInput} from './delayed_input';

export function Audit(_: {parts: string[]}) {
  return (
    <Page title="Audit log">
      <div class="filters" role="search">
        <DelayedInput name="user" label="User" />
        <DelayedInput name="project" label="Project" />
        <DelayedInput name="action" label="Action, such as job.stop" search />
      </div>
      <AuditTable user={query_value('user')} project={query_value('project')} action={query_value('action')} />
    </Page>
  );
}

export function AuditTable({user, project, action}: {user?: string; project?: string; action?: string}) {
  const query = {user, project, action, limit: kAuditPage};
  const key = JSON.stringify(query);
  const kept = useMemo(
    () =>
      new AuditRecords(
        // Older records are loaded without a signal, once at a click.
        async (before, signal) =>
          (await (signal ? get : get_once)<AuditPage>('/v1/audit', {...query, before}, signal)).records,
      ),
    [key],
  );
  const loads = useSignal(0);
  void loads.value;
  const loaded = useData(
    async (signal) => {
      await kept.refresh(signal);
      return {key};
    },
    [key],
    {interval: 2000, every: 15_000},
  );
  if (loaded.data?.key !== key) return loaded.error ? <ErrorNote error={loaded.error} /> : <Waiting />;
  const {records, end} = kept;
  const load_more = async () => {
    try {
      await kept.load_older();
      loads.value++;
    } catch (fault) {
      toast(error_text(fault), 'error');
    }
  };
  return (
    <Card title="Changes" scroll>
      <ErrorNote error={loaded.error} />
      {records.length === 0 ? (
        <div class="empty">{user || action ? 'No change matches the filters.' : 'No change is recorded.'}</div>
      ) : (
        <table class="grid">
          <caption class="hidden-text">Audit log</caption>
          <thead>
            <tr>
              <th>Time</th>
              <th>User</th>
              <th>Action</th>
              <th>Target</th>
              <th>Project</th>
              <th>Changes</th>
              <th>From</th>
            </tr>
          </thead>
          <tbody>
            {records.map((record) => (
              <tr key={record.number}>
                <td>
                  <Time at={record.time} />
                </td>
                <td>
                  <bdi>{record.user}</bdi>
                </td>
                <td class="mono nowrap">{record.action}</td>
                <td class="break target">
                  <bdi>{visible_text(record.target)}</bdi>
                </td>
                <td>
                  <bdi>{record.project}</bdi>
                </td>
                <td class="break small">
                  {record.changes.map((each, i) => {
                    const c = each as {field: string; before?: string; after?: string};
                    return (
                      <div key={i}>
                        <span class="mono">{c.field}</span>:{' '}
                        {c.before ? (
                          <>
                            <bdi>{visible_text(String(c.before))}</bdi> →{' '}
                          </>
                        ) : (
                          ''
                        )}
                        <bdi>{visible_text(String(c.after ?? ''))}</bdi>
                      </div>
                    );
                  })}
                </td>
                <td class="small muted" title={`token ${record.token}, request ${record.request}`}>
                  {record.address}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {!end && (
        <div class="empty">
          <button
            onClick={() => {
              void load_more();
            }}
          >
            Show older changes
          </button>
        </div>
      )}
    </Card>
  );
}
