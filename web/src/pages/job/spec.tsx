// The specification of a job: as a table, a job file, a command line, and the difference to another job.
import {useSignal} from '@preact/signals';
import {get, job_path} from '../../api/client';
import type {Job} from '../../api/types';
import {query_value, set_query} from '../../app/router';
import {command_line, flat, to_file, yaml_text, type Tree} from '../../app/spec_text';
import {visible_text} from '../../ui/ansi';
import {Card, Copy, ErrorNote, Scroll, useData} from '../../ui/parts';

export function Spec({job}: {job: Job}) {
  const view = query_value('view') || 'form';
  const {origin} = job;
  const other = query_value('with') || (view === 'diff' && origin?.kind === 'rerun' ? (origin.id ?? origin.name) : '');
  const file = to_file(job.spec as unknown as Tree);
  const yaml = yaml_text(file);
  return (
    <div class="stack">
      <div class="row">
        <div class="group" role="group" aria-label="View">
          {[
            ['form', 'Table'],
            ['yaml', 'Job file'],
            ['command', 'Command'],
            ['diff', 'Difference'],
          ].map(([key, name]) => (
            <button
              key={key}
              aria-pressed={view === key}
              onClick={() => set_query({view: key === 'form' ? null : key!})}
            >
              {name}
            </button>
          ))}
        </div>
        {view === 'yaml' && <Copy text={yaml} />}
        {view === 'command' && <Copy text={command_line(job.spec as unknown as Tree)} />}
      </div>
      {view === 'form' && (
        <Card title="Specification" scroll>
          <table class="grid">
            <caption class="hidden-text">Fields that differ from their default</caption>
            <thead>
              <tr>
                <th>Field</th>
                <th>Value</th>
              </tr>
            </thead>
            <tbody>
              {Object.entries(flat(file)).map(([name, value]) => (
                <tr key={name}>
                  <th scope="row" class="mono nowrap">
                    <bdi>{visible_text(name)}</bdi>
                  </th>
                  <td class="break mono">
                    <bdi>{visible_text(value)}</bdi>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Card>
      )}
      {view === 'yaml' && (
        <Card title="Job file">
          <pre class="mono">{visible_lines(yaml)}</pre>
        </Card>
      )}
      {view === 'command' && (
        <Card title="The command line that submits the same job">
          <pre class="mono">{visible_lines(command_line(job.spec as unknown as Tree))}</pre>
        </Card>
      )}
      {view === 'diff' && <Difference job={job} other={other} />}
    </div>
  );
}

export function visible_lines(text: string): string {
  return text.split('\n').map(visible_text).join('\n');
}

function Difference({job, other}: {job: Job; other: string}) {
  const name = useSignal(other);
  const loaded = useData((signal) => (other ? get<Job>(job_path(other), {}, signal) : Promise.resolve(null)), [other], {
    match: (change) => change.id === other || change.name === other,
  });
  const mine = flat(to_file(job.spec as unknown as Tree));
  const theirs = loaded.data ? flat(to_file(loaded.data.spec as unknown as Tree)) : {};
  const keys = [...new Set([...Object.keys(theirs), ...Object.keys(mine)])].filter((key) => mine[key] !== theirs[key]);
  return (
    <Card title="Difference to another job">
      <div class="stack">
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            set_query({with: name.value.trim()});
          }}
        >
          <label>
            Other job{' '}
            <input
              value={name.value}
              placeholder="name or ID"
              onInput={(e) => {
                name.value = e.currentTarget.value;
              }}
            />
          </label>
          <button>Compare</button>
        </form>
        <ErrorNote error={loaded.error} />
        {loaded.data &&
          (keys.length === 0 ? (
            <p>The specifications are the same.</p>
          ) : (
            <Scroll label="Differences">
              <table class="grid">
                <caption class="hidden-text">Fields that differ</caption>
                <thead>
                  <tr>
                    <th>Field</th>
                    <th>
                      <bdi>{loaded.data.spec.name}</bdi>
                    </th>
                    <th>
                      <bdi>{job.spec.name}</bdi> (this job)
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {keys.map((key) => (
                    <tr key={key}>
                      <th scope="row" class="mono">
                        <bdi>{visible_text(key)}</bdi>
                      </th>
                      <td class="mono break">
                        <del>{visible_text(theirs[key] ?? '')}</del>
                      </td>
                      <td class="mono break">
                        <ins>{visible_text(mine[key] ?? '')}</ins>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          ))}
      </div>
    </Card>
  );
}
