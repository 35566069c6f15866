// The quota of a project beside its use. Admins can edit the quota.
import {useSignal} from '@preact/signals';
import {useEffect, useId, useRef} from 'preact/hooks';
import {change, project_path} from '../api/client';
import type {Fault, Project} from '../api/types';
import {amount_text, bytes_text} from '../app/format';
import {anything_changed} from '../app/live';
import {parse_size, size_word} from '../app/spec_text';
import {Card, ErrorNote, toast, useBusy} from '../ui/parts';

type Amount = 'gpus' | 'cpus' | 'memory';
type Name = `${'deserved' | 'limit'}.${Amount}` | 'weight' | 'priority';
/** The texts of the form. An empty amount is unlimited. */
type Texts = Record<Name, string>;

const kNames: Record<Amount, string> = {gpus: 'GPU', cpus: 'CPU', memory: 'memory'};

function texts_of({quota: {deserved, limit, weight}, priority}: Project): Texts {
  const amount = (value: number | null) => (value === null ? '' : String(value));
  const size = (value: number | null) => (value === null ? '' : size_word(value));
  return {
    'deserved.gpus': amount(deserved.gpus),
    'deserved.cpus': amount(deserved.cpus),
    'deserved.memory': size(deserved.memory_bytes),
    'limit.gpus': amount(limit.gpus),
    'limit.cpus': amount(limit.cpus),
    'limit.memory': size(limit.memory_bytes),
    weight: String(weight),
    priority: String(priority),
  };
}

/** The amount in a text, null for unlimited. Undefined if the text is not an amount. */
function amount_of(text: string, key: Amount): number | null | undefined {
  const typed = text.trim();
  if (typed === '') return null;
  const amount = key === 'memory' ? parse_size(typed) : Number(typed);
  return amount !== undefined && Number.isFinite(amount) && amount >= 0 ? amount : undefined;
}

/** The body of the request that changes the fields in which `now` differs from `before`, or the faults of these fields. */
function change_of(now: Texts, before: Texts): {body: object; faults: Fault[]} {
  const faults: Fault[] = [];
  const is_changed = (name: Name) => now[name] !== before[name];
  const share = (which: 'deserved' | 'limit') => {
    const out: Record<string, number | null> = {};
    for (const key of ['gpus', 'cpus', 'memory'] as const) {
      const name = `${which}.${key}` as const;
      if (!is_changed(name)) continue;
      const amount = amount_of(now[name], key);
      const expected = key === 'memory' ? 'memory, such as 64Gi' : `${kNames[key]}s, such as 4 or 0.5`;
      if (amount === undefined)
        faults.push({field: name, what: `'${now[name].trim()}' is not an amount of ${expected}`});
      else out[key === 'memory' ? 'memory_bytes' : key] = amount;
    }
    return Object.keys(out).length ? {[which]: out} : {};
  };
  const number = (name: 'weight' | 'priority') => {
    if (!is_changed(name)) return {};
    if (now[name].trim() === '') faults.push({field: name, what: `the ${name} is missing: give a number`});
    return {[name]: Number(now[name])};
  };
  const quota = {...share('deserved'), ...share('limit'), ...number('weight')};
  const body = {...(Object.keys(quota).length ? {quota} : {}), ...number('priority')};
  return {body, faults};
}

export function Quota({project, admin}: {project: Project; admin: boolean}) {
  const listed = texts_of(project);
  const listed_now = useRef(listed);
  listed_now.current = listed;
  const key = JSON.stringify(listed);
  /** The quota after the last change that was saved here, until the list of projects has a newer one than `former`. */
  const saved = useSignal<{texts: Texts; former: string} | null>(null);
  const shown = saved.value?.former === key ? saved.value.texts : listed;
  useEffect(() => {
    if (saved.value?.former !== key) saved.value = null;
  }, [key]);
  const draft = useSignal<Texts | null>(null);
  const based_on = useSignal(shown);
  const faults = useSignal<Fault[]>([]);
  const fault = useSignal<unknown>(null);
  const {busy, run} = useBusy();
  const id = useId();
  const value = draft.value ?? shown;
  const changed_by_others = draft.value !== null && JSON.stringify(based_on.value) !== JSON.stringify(shown);
  const edit = (name: Name, text: string) => {
    if (draft.value === null) based_on.value = shown;
    draft.value = {...value, [name]: text};
    faults.value = faults.value.filter(({field}) => field !== name);
  };
  const discard = () => {
    draft.value = null;
    faults.value = [];
    fault.value = null;
  };
  const save = async () => {
    const sent = draft.value;
    if (!sent) return;
    const {body, faults: found} = change_of(sent, based_on.value);
    faults.value = found;
    fault.value = null;
    if (found.length) return;
    try {
      const next = texts_of(await change<Project>('PATCH', project_path(project.name), body));
      saved.value = {texts: next, former: JSON.stringify(listed_now.current)};
      based_on.value = next;
      // The user may have typed more meanwhile.
      const typed = Object.entries(draft.value ?? {}).filter(([name, text]) => text !== sent[name as Name]);
      draft.value = typed.length ? {...next, ...(Object.fromEntries(typed) as Partial<Texts>)} : null;
      toast('Changed the quota');
      anything_changed();
    } catch (problem) {
      fault.value = problem;
    }
  };
  const fault_of = (name: Name) => faults.value.find(({field}) => field === name)?.what;
  /** The properties of the input of a field. */
  const input_of = (name: Name) => ({
    value: value[name],
    'aria-invalid': fault_of(name) ? ('true' as const) : undefined,
    'aria-describedby': fault_of(name) ? `${id}-${name}` : undefined,
    onInput: (event: {currentTarget: HTMLInputElement}) => edit(name, event.currentTarget.value),
  });
  const fault_note = (name: Name) =>
    fault_of(name) && (
      <div class="fault small" id={`${id}-${name}`}>
        {fault_of(name)}
      </div>
    );
  const cell = (which: 'deserved' | 'limit', key: Amount) => (
    <td>
      {admin ? (
        <>
          <input
            aria-label={`${kNames[key]} ${which === 'deserved' ? 'quota' : 'limit'}`}
            size={8}
            placeholder="unlimited"
            {...input_of(`${which}.${key}`)}
          />
          {fault_note(`${which}.${key}`)}
        </>
      ) : (
        value[`${which}.${key}`] || 'unlimited'
      )}
    </td>
  );
  const status = project.status;
  return (
    <Card title="Quota">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void run(save);
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
            Weight <input type="number" step="any" min="0" disabled={!admin} size={6} {...input_of('weight')} />
          </label>
          {fault_note('weight')}
          <label>
            Priority <input type="number" min="0" max="1000" disabled={!admin} size={6} {...input_of('priority')} />
          </label>
          {fault_note('priority')}
        </div>
        <p class="muted small">
          Quota: the amount that the project can always claim. Limit: the amount that it can never exceed. The weight
          divides unused resources among projects; projects with a larger priority get them first. An empty amount means
          unlimited.
          {project.takes_the_rest &&
            ' This project has all GPUs that are in no quota of another project, until you give it a GPU quota.'}
        </p>
        {changed_by_others && (
          <div class="note warn" role="status">
            Another user has changed this quota since you began to edit it. Save writes only the fields that you
            changed.{' '}
            <button type="button" class="link" disabled={busy} onClick={discard}>
              Discard my changes and show the new values
            </button>
          </div>
        )}
        <ErrorNote error={fault.value} />
        {admin && (
          <div class="row">
            <button class="primary" disabled={busy || !draft.value}>
              Save
            </button>
            {draft.value && (
              <button type="button" disabled={busy} onClick={discard}>
                Discard
              </button>
            )}
          </div>
        )}
      </form>
    </Card>
  );
}
