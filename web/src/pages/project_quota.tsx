// The quota of one project beside its use, edited by those who may.
import {useSignal} from '@preact/signals';
import {change, project_path} from '../api/client';
import type {Project, Share as ShareOf} from '../api/types';
import {amount_text, bytes_text} from '../app/format';
import {anything_changed} from '../app/live';
import {parse_size, size_word} from '../app/spec_text';
import {Card, ErrorNote, toast} from '../ui/parts';

interface Amounts {
  gpus: string;
  cpus: string;
  memory: string;
}

const words = (share: ShareOf): Amounts => ({
  gpus: share.gpus === null ? '' : String(share.gpus),
  cpus: share.cpus === null ? '' : String(share.cpus),
  memory: share.memory_bytes === null ? '' : size_word(share.memory_bytes),
});

export function Quota({project, admin}: {project: Project; admin: boolean}) {
  const shown = {
    deserved: words(project.quota.deserved),
    limit: words(project.quota.limit),
    weight: String(project.quota.weight),
    priority: String(project.priority),
  };
  const draft = useSignal<typeof shown | null>(null);
  const based_on = useSignal('');
  const fault = useSignal<unknown>(null);
  const value = draft.value ?? shown;
  const others = draft.value !== null && based_on.value !== JSON.stringify(shown);
  const edit = (next: typeof shown) => {
    if (draft.value === null) based_on.value = JSON.stringify(shown);
    draft.value = next;
  };
  const save = async (event: Event) => {
    event.preventDefault();
    const now = draft.value;
    if (!now) return;
    const before = JSON.parse(based_on.value) as typeof shown;
    const part = (a: Amounts, b: Amounts) => {
      const out: Record<string, number | null> = {};
      if (a.gpus !== b.gpus) out['gpus'] = a.gpus.trim() === '' ? null : Number(a.gpus);
      if (a.cpus !== b.cpus) out['cpus'] = a.cpus.trim() === '' ? null : Number(a.cpus);
      if (a.memory !== b.memory) {
        const size = a.memory.trim() === '' ? null : parse_size(a.memory);
        if (size === undefined) throw new Error(`'${a.memory}' is not a size such as 64Gi`);
        out['memory_bytes'] = size;
      }
      return out;
    };
    try {
      const body: Record<string, unknown> = {};
      const quota: Record<string, unknown> = {};
      const deserved = part(now.deserved, before.deserved);
      const limit = part(now.limit, before.limit);
      if (Object.keys(deserved).length) quota['deserved'] = deserved;
      if (Object.keys(limit).length) quota['limit'] = limit;
      if (now.weight !== before.weight) quota['weight'] = Number(now.weight);
      if (Object.keys(quota).length) body['quota'] = quota;
      if (now.priority !== before.priority) body['priority'] = Number(now.priority);
      await change('PATCH', project_path(project.name), body);
      draft.value = null;
      fault.value = null;
      toast('Changed the quota');
      anything_changed();
    } catch (problem) {
      fault.value = problem;
    }
  };
  const cell = (which: 'deserved' | 'limit', key: keyof Amounts) => (
    <td>
      {admin ? (
        <input
          aria-label={`${which} ${key}`}
          size={8}
          value={value[which][key]}
          placeholder={which === 'limit' ? 'no limit' : 'all'}
          onInput={(e) => edit({...value, [which]: {...value[which], [key]: e.currentTarget.value}})}
        />
      ) : (
        value[which][key] || (which === 'limit' ? 'no limit' : 'all')
      )}
    </td>
  );
  const status = project.status;
  return (
    <Card title="Quota">
      <form
        class="stack"
        onSubmit={(event) => {
          void save(event);
        }}
      >
        <div class="scroll">
          <table class="grid">
            <caption class="hidden-text">Quota and use</caption>
            <thead>
              <tr>
                <th>Resource</th>
                <th class="num">Allocated</th>
                <th class="num">Requested</th>
                <th class="num">Fair share</th>
                <th class="num">Deserved in force</th>
                <th>Deserved</th>
                <th>Limit</th>
              </tr>
            </thead>
            <tbody>
              <tr>
                <th scope="row">GPUs</th>
                <td class="num">{amount_text(status.allocated.gpus)}</td>
                <td class="num">{amount_text(status.requested.gpus)}</td>
                <td class="num">{amount_text(status.fair_share.gpus)}</td>
                <td class="num">{amount_text(status.deserved.gpus)}</td>
                {cell('deserved', 'gpus')}
                {cell('limit', 'gpus')}
              </tr>
              <tr>
                <th scope="row">CPUs</th>
                <td class="num">{amount_text(status.allocated.cpus)}</td>
                <td class="num">{amount_text(status.requested.cpus)}</td>
                <td class="num">{amount_text(status.fair_share.cpus)}</td>
                <td class="num">{amount_text(status.deserved.cpus)}</td>
                {cell('deserved', 'cpus')}
                {cell('limit', 'cpus')}
              </tr>
              <tr>
                <th scope="row">Memory</th>
                <td class="num">{bytes_text(status.allocated.memory_bytes)}</td>
                <td class="num">{bytes_text(status.requested.memory_bytes)}</td>
                <td class="num">{bytes_text(status.fair_share.memory_bytes) || '∞'}</td>
                <td class="num">{bytes_text(status.deserved.memory_bytes) || '∞'}</td>
                {cell('deserved', 'memory')}
                {cell('limit', 'memory')}
              </tr>
            </tbody>
          </table>
        </div>
        <div class="row">
          <label>
            Weight{' '}
            <input
              type="number"
              step="any"
              min="0"
              disabled={!admin}
              size={6}
              value={value.weight}
              onInput={(e) => edit({...value, weight: e.currentTarget.value})}
            />
          </label>
          <label>
            Priority{' '}
            <input
              type="number"
              min="0"
              max="1000"
              disabled={!admin}
              size={6}
              value={value.priority}
              onInput={(e) => edit({...value, priority: e.currentTarget.value})}
            />
          </label>
        </div>
        <p class="muted small">
          Deserved: what the project can always claim. Limit: what it never exceeds. The weight shares what others leave
          unused. An empty field means all resources, or no limit.
        </p>
        {others && (
          <div class="note warn" role="status">
            Somebody else has changed this quota since you began. Saving changes only the fields that you changed.{' '}
            <button
              type="button"
              class="link"
              onClick={() => {
                draft.value = null;
              }}
            >
              Show the present values
            </button>
          </div>
        )}
        <ErrorNote error={fault.value} />
        {admin && (
          <div class="row">
            <button class="primary" disabled={!draft.value}>
              Save
            </button>
            {draft.value && (
              <button
                type="button"
                onClick={() => {
                  draft.value = null;
                  fault.value = null;
                }}
              >
                Discard
              </button>
            )}
          </div>
        )}
      </form>
    </Card>
  );
}
