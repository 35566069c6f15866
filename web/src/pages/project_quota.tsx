// The quota of a project beside its use. Admins can edit the quota.
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

const kNames: Record<keyof Amounts, string> = {gpus: 'GPU', cpus: 'CPU', memory: 'memory'};

/** Amounts as texts. Empty: unlimited. */
const words = (share: ShareOf): Amounts => ({
  gpus: share.gpus === null ? '' : String(share.gpus),
  cpus: share.cpus === null ? '' : String(share.cpus),
  memory: share.memory_bytes === null ? '' : size_word(share.memory_bytes),
});

/** The amount in a text, null for unlimited. Throws an error that names the text. */
function amount_of(text: string, key: keyof Amounts): number | null {
  const typed = text.trim();
  if (typed === '') return null;
  const amount = key === 'memory' ? parse_size(typed) : Number(typed);
  if (amount === undefined || !Number.isFinite(amount) || amount < 0)
    throw new Error(
      `'${typed}' is not an amount of ${key === 'memory' ? 'memory, such as 64Gi' : `${kNames[key]}s, such as 4 or 0.5`}`,
    );
  return amount;
}

function number_of(text: string, name: string): number {
  if (text.trim() === '') throw new Error(`${name} is missing: give a number`);
  return Number(text);
}

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
  const changed_by_others = draft.value !== null && based_on.value !== JSON.stringify(shown);
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
      if (a.gpus !== b.gpus) out['gpus'] = amount_of(a.gpus, 'gpus');
      if (a.cpus !== b.cpus) out['cpus'] = amount_of(a.cpus, 'cpus');
      if (a.memory !== b.memory) out['memory_bytes'] = amount_of(a.memory, 'memory');
      return out;
    };
    try {
      const body: Record<string, unknown> = {};
      const quota: Record<string, unknown> = {};
      const deserved = part(now.deserved, before.deserved);
      const limit = part(now.limit, before.limit);
      if (Object.keys(deserved).length) quota['deserved'] = deserved;
      if (Object.keys(limit).length) quota['limit'] = limit;
      if (now.weight !== before.weight) quota['weight'] = number_of(now.weight, 'the weight');
      if (Object.keys(quota).length) body['quota'] = quota;
      if (now.priority !== before.priority) body['priority'] = number_of(now.priority, 'the priority');
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
          aria-label={`${kNames[key]} ${which === 'deserved' ? 'quota' : 'limit'}`}
          size={8}
          value={value[which][key]}
          placeholder="unlimited"
          onInput={(e) => edit({...value, [which]: {...value[which], [key]: e.currentTarget.value}})}
        />
      ) : (
        value[which][key] || 'unlimited'
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
                <th class="num">Used</th>
                <th class="num">Requested</th>
                <th class="num">Fair share</th>
                <th class="num">Quota in force</th>
                <th>Quota</th>
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
          Quota: the amount that the project can always claim. Limit: the amount that it can never exceed. The weight
          divides unused resources among projects; projects with a larger priority get them first. An empty field means
          unlimited.
          {project.takes_the_rest &&
            ' This project has all GPUs that are in no quota of another project, until you give it a GPU quota.'}
        </p>
        {changed_by_others && (
          <div class="note warn" role="status">
            Another user has changed this quota since you began to edit it. Save writes only the fields that you
            changed.{' '}
            <button
              type="button"
              class="link"
              onClick={() => {
                draft.value = null;
              }}
            >
              Discard my changes and show the new values
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
