// The form for a new job. A job file beside it describes the same job: a change of one changes the other.
// A dry run shows what would happen, and a command line that submits the same job is shown.
import {signal, useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import {Failure, ask, change, get, get_once, is_unreachable, job_path, unreachable, type Query} from '../api/client';
import type {Fault, Forecast, Job, Projects} from '../api/types';
import {anything_changed, kRetryPause, limit_request, useRefresh} from '../app/live';
import {navigate, path, query_value, to} from '../app/router';
import {is_leaving} from '../app/session';
import {command_line, parse_yaml, to_file, yaml_text, type Tree} from '../app/spec_text';
import {send_tree} from '../app/upload';
import {visible_text} from '../ui/ansi';
import {crypto_id} from '../ui/job_actions';
import {Card, Copy, ErrorNote, Page, Waiting, error_text, toast, useData} from '../ui/parts';
import {Field, is_simple, resolved, spec_schema, title_of, type InvalidText, type Schema} from './fields';
import {Outcome} from './forecast';
import {project_rows} from './project_tree';
import {dropped, Files} from './submit_files';

const kFirst = ['name', 'project', 'kind', 'workers', 'image', 'folder', 'command'];

const kEmpty: Tree = {name: '', kind: 'single', command: [], folder: '/tmp'};

// The draft is kept while the user visits other pages.
const draft = signal<Tree>(kEmpty);

/** The text of the job file as the user edits it. Null: the text follows from the draft. */
const yaml = signal<string | null>(null);

/** The texts of fields that are no values, by path: the draft has the former values. */
const invalid = signal<ReadonlyMap<string, InvalidText>>(new Map());

/** The id of the job that is rerun with changes; empty for a new job. */
const drafted_from = signal('');
/** The purpose that the draft got in place of that job's. */
let drafted_purpose = '';
/** Counts the drafts, so that a new draft gets a new form. */
const drafts = signal(0);

// A submission goes on while the user visits other pages, too.

/** What the submission in progress does. Empty: none is in progress. */
const busy = signal('');

/** Counts the submissions and the uses of "Start over". A submission whose number has passed was discarded. */
let submission = 0;

/** Why the last submission of a draft failed, and the text of that draft. */
const failed = signal<{fault: unknown; text: string} | null>(null);

/** The idempotency keys of submissions without a good answer, by their texts. */
const keys = new Map<string, string>();

/** The time between two dry runs. The forecast also depends on other jobs, which change. */
const kDryRun = 60_000;

function new_draft(spec: Tree, from: string, purpose: string): void {
  draft.value = spec;
  yaml.value = null;
  invalid.value = new Map();
  drafted_from.value = from;
  drafted_purpose = purpose;
  failed.value = null;
  drafts.value++;
}

function start_over(): void {
  new_draft(kEmpty, '', '');
  dropped.value = null;
}

/** A copy of `tree` with a value at a path. Undefined removes the value, and documents that are then empty. */
function set_path(tree: Tree, path: string[], value: unknown): Tree {
  const [head, ...rest] = path;
  const copy = {...tree};
  if (rest.length) {
    const inner = set_path((copy[head!] ?? {}) as Tree, rest, value);
    if (Object.keys(inner).length) copy[head!] = inner;
    else delete copy[head!];
  } else if (value === undefined) delete copy[head!];
  else copy[head!] = value;
  return copy;
}

export function Submit(_: {parts: string[]}) {
  const loaded = useData(
    async (abort) => ({
      schemas: await spec_schema(),
      projects: (await get<Projects>('/v1/projects', {}, abort)).projects,
    }),
    [],
    {match: () => false, every: 60000},
  );
  const from = query_value('from');
  const project = query_value('project');
  const purpose = query_value('purpose');
  const load_fault = useSignal<unknown>(null);
  const drafting = useSignal(false);
  const tries = useSignal(0);
  useEffect(() => {
    load_fault.value = null;
    if (!from) {
      if (project && !drafted_from.value) draft.value = {...draft.value, project};
      return undefined;
    }
    if (drafted_from.value === from && drafted_purpose === purpose) return undefined;
    const abort = new AbortController();
    drafting.value = true;
    get_once<Job>(job_path(from), {}, abort.signal)
      .then(
        (job) => {
          if (abort.signal.aborted) return;
          const spec = structuredClone(job.spec) as unknown as Tree;
          new_draft(purpose ? set_path(spec, ['scheduling', 'purpose'], purpose) : spec, from, purpose);
        },
        (fault) => {
          if (!abort.signal.aborted) load_fault.value = fault;
        },
      )
      .finally(() => {
        if (!abort.signal.aborted) drafting.value = false;
      });
    return () => {
      abort.abort();
      drafting.value = false;
    };
  }, [from, project, purpose, tries.value]);
  return (
    <Page
      title={drafted_from.value ? 'Rerun with changes' : 'Submit a job'}
      actions={
        <button
          onClick={() => {
            submission++;
            busy.value = '';
            window.removeEventListener('beforeunload', warn_of_loss);
            keys.clear();
            start_over();
            navigate('/submit', {replace: true});
          }}
        >
          Start over
        </button>
      }
    >
      <ErrorNote
        error={load_fault.value ?? loaded.error}
        again={load_fault.value ? () => tries.value++ : loaded.reload}
      />
      {/* Without the job to rerun, the form would show and submit the former draft. */}
      {loaded.data && !drafting.value && !load_fault.value ? (
        <Form
          key={drafts.value}
          schemas={loaded.data.schemas}
          projects={project_rows(loaded.data.projects)
            .filter((row) => !row.has_children)
            .map((row) => row.project.name)}
        />
      ) : (
        !loaded.error && !load_fault.value && <Waiting />
      )}
    </Page>
  );
}

/** A part of the form that opens with `opens`, or by the user. Only the user folds it, who may be typing in it. */
function Fold({title, opens, children}: {title: string; opens: boolean; children: ComponentChildren}) {
  const details = useRef<HTMLDetailsElement>(null);
  useLayoutEffect(() => {
    if (opens) details.current!.open = true;
  }, [opens]);
  return (
    <details class="card fold" ref={details}>
      <summary>{title}</summary>
      <div class="body">{children}</div>
    </details>
  );
}

function Form({schemas, projects}: {schemas: Record<string, Schema>; projects: string[]}) {
  const spec = schemas['JobSpec']!;
  const fields = spec.properties ?? {};
  const faults = useSignal<Fault[]>([]);
  const text_faults = useSignal<Fault[]>([]);
  const reading = useSignal(false);
  const reading_timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  /** Whether the user has left the form. A new form reads the job file itself. */
  const gone = useRef(false);
  const forecast = useSignal<Forecast | null>(null);
  const refusal = useSignal<unknown>(null);
  const dry_run = useRef<AbortController | null>(null);
  const value = draft.value;
  const file_text = yaml.value ?? yaml_text(to_file(value));
  const text = JSON.stringify(value);

  const accept = (path: string[]) => {
    const rest = new Map(invalid.value);
    if (rest.delete(path.join('.'))) invalid.value = rest;
  };
  const edit = (path: string[], next: unknown) => {
    draft.value = set_path(draft.value, path, next);
    yaml.value = null;
    accept(path);
    text_faults.value = [];
    reading.value = false;
  };
  const edit_yaml = (next: string) => {
    yaml.value = next;
    reading.value = true;
    read_yaml_in(next, 300);
  };
  const read_yaml_in = (next: string, pause: number) => {
    clearTimeout(reading_timer.current);
    reading_timer.current = setTimeout(() => {
      void read_yaml(next);
    }, pause);
  };
  const read_yaml = async (next: string) => {
    const result = await read_job_file(next);
    if (yaml.value !== next) return;
    reading.value = false;
    text_faults.value = result.faults;
    if (result.unanswered && !gone.current) read_yaml_in(next, kRetryPause);
    if (!result.spec) return;
    draft.value = result.spec;
    invalid.value = new Map();
  };

  // A dry run, half a second after the last change.
  useRefresh(
    async () => {
      dry_run.current?.abort();
      const mine = new AbortController();
      dry_run.current = mine;
      await new Promise((resolve) => setTimeout(resolve, 500));
      if (mine.signal.aborted) return true;
      if (!value['name'] && !(value['command'] as unknown[])?.length) {
        forecast.value = null;
        faults.value = [];
        refusal.value = null;
        return true;
      }
      try {
        const answer = await ask<Forecast>(
          '/v1/jobs',
          with_defaults(value),
          {dry_run: true, ...(drafted_from.value ? {name_suffix: true} : {})},
          mine.signal,
        );
        if (mine.signal.aborted) return true;
        forecast.value = answer;
        faults.value = [];
        refusal.value = null;
        return true;
      } catch (fault) {
        if ((fault as Error).name === 'AbortError' || mine.signal.aborted) return true;
        forecast.value = null;
        faults.value = fault instanceof Failure ? fault.faults : [];
        refusal.value = faults.value.length ? null : fault;
        return !is_unreachable(fault);
      }
    },
    [text],
    {match: () => false, every: kDryRun},
  );
  useEffect(() => {
    // The text may not have been read yet, or may have faults, which are not kept.
    if (yaml.peek() !== null) edit_yaml(yaml.peek()!);
    return () => {
      gone.current = true;
      clearTimeout(reading_timer.current);
      dry_run.current?.abort();
    };
  }, []);
  // A browser does not give out the text of a number field that is no number: in a new form, the field is empty.
  useEffect(() => {
    const kept = [...invalid.peek()].filter(([, {text}]) => text !== '');
    if (kept.length < invalid.peek().size) invalid.value = new Map(kept);
  }, []);
  useEffect(() => {
    const guard = (event: BeforeUnloadEvent) => {
      if (draft.value['name'] && !is_leaving()) event.preventDefault();
    };
    window.addEventListener('beforeunload', guard);
    return () => window.removeEventListener('beforeunload', guard);
  }, []);

  const is_ready =
    !busy.value &&
    !reading.value &&
    !faults.value.length &&
    !text_faults.value.length &&
    !invalid.value.size &&
    !!value['name'];
  const submit = async () => {
    if (!is_ready) return;
    // The user may change the draft and the files while they are sent.
    const files = dropped.value;
    const typed = yaml.value;
    const from = drafted_from.value;
    const wanted = query_value('from');
    const mine = ++submission;
    busy.value = 'Submitting…';
    failed.value = null;
    window.addEventListener('beforeunload', warn_of_loss);
    try {
      let body = with_defaults(value);
      if (files) {
        const sent = await send_tree(String(body['project'] ?? 'default'), files.files, (part, what) => {
          // This ends the upload.
          if (mine !== submission) throw new Error('the submission was discarded');
          busy.value = `${what} ${Math.round(part * 100)} %`;
        });
        if (mine !== submission) return;
        body = {
          ...body,
          folder: body['folder'] === '/tmp' ? files.target : body['folder'],
          volumes: [
            ...((body['volumes'] as unknown[]) ?? []).filter((each) => (each as Tree)['target'] !== files.target),
            {kind: 'tree', source: sent.id, target: files.target},
          ],
        };
      }
      // A repeated submission has the same key, so that a lost answer cannot create a second job.
      const all = JSON.stringify([from, body]);
      const key = keys.get(all) ?? crypto_id();
      keys.set(all, key);
      const query = from ? {name_suffix: true, rerun_of: from} : {};
      const job = await submitted(body, query, key);
      // The user may have started over, and submitted the same job again with another key.
      if (keys.get(all) === key) keys.delete(all);
      toast(`Submitted ${job.spec.name}`);
      anything_changed();
      // What the user has changed meanwhile belongs to another submission.
      if (
        mine !== submission ||
        JSON.stringify(draft.value) !== text ||
        drafted_from.value !== from ||
        dropped.value !== files ||
        yaml.value !== typed ||
        invalid.value.size
      )
        return;
      start_over();
      if (path.value === '/submit' && query_value('from') === wanted)
        navigate(to([(job as unknown as {counts?: unknown}).counts ? 'arrays' : 'jobs', job.id]));
    } catch (fault) {
      if (mine !== submission) return;
      failed.value = {fault, text};
      toast(error_text(fault), 'error');
    } finally {
      if (mine === submission) {
        busy.value = '';
        window.removeEventListener('beforeunload', warn_of_loss);
      }
    }
  };

  const fault_of = (path: string) => faults.value.find((each) => each.field === path)?.what ?? '';
  const field = (path: string[], schema: Schema) => {
    const name = path.at(-1)!;
    let shown = resolved(schema, schemas);
    if (path.join('.') === 'project') shown = {...shown, enum: projects};
    const inner = path.reduce<unknown>((tree, key) => (tree as Tree | undefined)?.[key], value);
    return (
      <Field
        key={path.join('.')}
        name={name}
        schema={shown}
        value={inner}
        invalid={invalid.value.get(path.join('.'))}
        fault={fault_of(path.join('.'))}
        change={(next) => edit(path, next)}
        reject={(text) => {
          invalid.value = new Map(invalid.value).set(path.join('.'), text);
        }}
      />
    );
  };
  const group = (name: string) => {
    const schema = resolved(fields[name]!, schemas);
    const inner = Object.entries(schema.properties ?? {}).filter(([, each]) =>
      is_simple(resolved(each, schemas), schemas),
    );
    return <div class="fields">{inner.map(([key, each]) => field([name, key], each))}</div>;
  };
  const groups = Object.keys(fields).filter((name) => {
    const schema = resolved(fields[name]!, schemas);
    return schema.type === 'object' && schema.properties;
  });
  const others = Object.keys(fields).filter(
    (name) =>
      !kFirst.includes(name) &&
      !groups.includes(name) &&
      is_simple(resolved(fields[name]!, schemas), schemas) &&
      !['labels', 'environment', 'annotations'].includes(name),
  );
  const file_only = Object.keys(fields).filter(
    (name) => !is_simple(resolved(fields[name]!, schemas), schemas) && !groups.includes(name),
  );
  /** Whether a field with such a path has a fault. */
  const is_wrong = (has: (path: string) => boolean) =>
    faults.value.some((each) => has(each.field)) || [...invalid.value.keys()].some(has);
  const is_open = (name: string) =>
    (value[name] !== undefined &&
      Object.keys((value[name] as Tree) ?? {}).some((key) => {
        const each = (value[name] as Tree)[key];
        return (
          each !== 0 && each !== '' && !(Array.isArray(each) && !each.length) && each !== 'auto' && each !== 'train'
        );
      })) ||
    is_wrong((path) => path.startsWith(`${name}.`));
  const unplaced = faults.value.filter((each) => {
    const [head, next] = each.field.split('.');
    return (
      !fields[head!] ||
      file_only.includes(head!.replace(/\[.*/, '')) ||
      /\[/.test(each.field) ||
      (next !== undefined && !groups.includes(head!) && !['labels', 'environment'].includes(head!))
    );
  });
  const placed = faults.value.filter((each) => !unplaced.includes(each)).map((each) => each.field);
  const wrong = [...new Set([...placed, ...invalid.value.keys()])];

  return (
    <div class="submit">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
        noValidate
      >
        <Card title="Job">
          <div class="stack tight">
            <div class="fields">
              {kFirst
                .filter((name) => fields[name] && name !== 'command' && name !== 'folder')
                .map((name) => field([name], fields[name]!))}
            </div>
            {field(['command'], fields['command']!)}
            {field(['folder'], fields['folder']!)}
          </div>
        </Card>
        <Card title="Resources of each task">{group('resources')}</Card>
        <Files />
        <Card title="Environment and labels">
          <div class="fields">{['environment', 'labels'].map((name) => field([name], fields[name]!))}</div>
        </Card>
        {groups
          .filter((name) => name !== 'resources')
          .map((name) => (
            <Fold key={name} title={title_of(name)} opens={is_open(name)}>
              {resolved(fields[name]!, schemas).description && (
                <p class="muted small">{resolved(fields[name]!, schemas).description}</p>
              )}
              {group(name)}
            </Fold>
          ))}
        <Fold title="More fields" opens={is_wrong((path) => others.includes(path.split(/[.[]/)[0]!))}>
          <div class="fields">{others.map((name) => field([name], fields[name]!))}</div>
          {file_only.length > 0 && (
            <p class="muted small">
              Only the job file can set:{' '}
              {file_only.map((name) => (
                <code key={name}>{name} </code>
              ))}
            </p>
          )}
        </Fold>
      </form>
      <div class="stack side-pane">
        <Card
          title="What would happen"
          actions={
            <button
              class="primary"
              data-submit
              disabled={!is_ready}
              onClick={() => {
                void submit();
              }}
            >
              {busy.value || 'Submit'}
            </button>
          }
        >
          <div class="stack tight" aria-live="polite">
            {unplaced.map((each, i) => (
              <div key={i} class="note error">
                {each.field}: {each.what}
              </div>
            ))}
            {wrong.length > 0 && (
              <div class="note error">
                {wrong.length} {wrong.length === 1 ? 'field is' : 'fields are'} not valid: {wrong.join(', ')}
              </div>
            )}
            <ErrorNote error={failed.value?.text === text ? failed.value.fault : refusal.value} />
            {/* With an invalid text in a field, the forecast would be that of the former value. */}
            {!invalid.value.size &&
              (forecast.value ? (
                <Outcome forecast={forecast.value} />
              ) : (
                !faults.value.length && !refusal.value && <p class="muted">Give the job a name and a command.</p>
              ))}
          </div>
        </Card>
        <Card title="Job file" actions={<Copy text={file_text} />}>
          <div class="field">
            <label class="hidden-text" for="yaml">
              Job file (YAML)
            </label>
            <textarea
              id="yaml"
              class="mono"
              rows={Math.min(26, Math.max(10, file_text.split('\n').length + 1))}
              spellcheck={false}
              wrap="off"
              value={file_text}
              aria-invalid={text_faults.value.length ? 'true' : undefined}
              aria-describedby="yaml-fault"
              onInput={(event) => {
                edit_yaml(event.currentTarget.value);
              }}
            />
            <span id="yaml-fault" class="fault" role="alert">
              {text_faults.value.map((each, i) => (
                <div key={i}>
                  {each.field ? `${each.field}: ` : ''}
                  {each.what}
                </div>
              ))}
            </span>
            <span class="help">
              The form and the job file describe the same job: a change of one changes the other.{' '}
              <code>muster submit -f</code> reads this file.
            </span>
          </div>
        </Card>
        <Card title="Command line" actions={<Copy text={command_line(value)} />}>
          <pre class="mono break">{visible_text(command_line(value))}</pre>
        </Card>
      </div>
    </div>
  );
}

/** Submits a job, and returns it. A request that is not answered in time fails: the user can send it again. */
async function submitted(body: Tree, query: Query, key: string): Promise<Job> {
  const abort = new AbortController();
  // Twice the time of the request of a view: the server may ask for a pause of up to a minute first.
  const end_limit = limit_request(1, () => abort.abort());
  try {
    return await change<Job>('POST', '/v1/jobs', body, query, {'idempotency-key': key}, abort.signal);
  } catch (fault) {
    throw (fault as Error).name === 'AbortError' ? unreachable('POST') : fault;
  } finally {
    end_limit();
  }
}

function warn_of_loss(event: BeforeUnloadEvent): void {
  if (!is_leaving()) event.preventDefault();
}

function with_defaults(spec: Tree): Tree {
  const given = Object.entries(spec).filter(([key, value]) => key === 'name' || value !== '');
  return {command: [], folder: '/tmp', ...Object.fromEntries(given)};
}

/** The spec in the text of a job file, which the server reads as for `muster submit -f`; or its faults. */
async function read_job_file(text: string): Promise<{spec?: Tree; faults: Fault[]; unanswered?: boolean}> {
  try {
    const {workspace, ...tree} = await parse_yaml(text);
    const spec = await ask<Tree>('/v1/job-file', tree);
    const faults =
      workspace === undefined
        ? []
        : [{field: 'workspace', what: 'a browser cannot read this path; add the folder under Files'}];
    return {spec: {...spec, folder: spec['folder'] || '/tmp'}, faults};
  } catch (fault) {
    if (fault instanceof Failure && fault.faults.length) return {faults: fault.faults};
    return {faults: [{field: '', what: error_text(fault)}], unanswered: is_unreachable(fault)};
  }
}
