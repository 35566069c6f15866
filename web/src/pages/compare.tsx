// /compare?jobs=ID,ID compares these jobs; /compare lets the user choose them.
import {query_value, set_query, to} from '../app/router';
import {useData, Card, ErrorNote, Link, Page, Phase, Waiting} from '../ui/parts';
import {Comparison} from './comparison';
import {fetch_rows} from './job_rows';
import {useSignal} from '@preact/signals';

export function Compare(_: {parts: string[]}) {
  const ids = query_value('jobs').split(',').filter(Boolean);
  return (
    <Page
      title="Compare"
      actions={
        ids.length > 0 && (
          <button onClick={() => set_query({jobs: null, metric: null, axis: null}, {push: true})}>
            Choose other jobs
          </button>
        )
      }
    >
      {ids.length ? <Comparison ids={ids} /> : <Choose />}
    </Page>
  );
}

function Choose() {
  const loaded = useData((signal) => fetch_rows({sort: '-submitted', limit: 50}, signal), [], {interval: 2000});
  const chosen = useSignal<string[]>([]);
  return (
    <Card
      title="Choose jobs to compare"
      scroll
      actions={
        chosen.value.length < 2 ? (
          <button class="primary" disabled>
            Choose at least 2 jobs
          </button>
        ) : (
          <Link class="button primary" to={to(['compare'], {jobs: chosen.value.join(',')})}>
            Compare {chosen.value.length} jobs
          </Link>
        )
      }
    >
      <ErrorNote error={loaded.error} />
      {loaded.loading && <Waiting />}
      {loaded.data && (
        <table class="grid">
          <caption class="hidden-text">The newest jobs</caption>
          <thead>
            <tr>
              <th>
                <span class="hidden-text">Choose</span>
              </th>
              <th>Job</th>
              <th>Project</th>
              <th>Phase</th>
            </tr>
          </thead>
          <tbody>
            {loaded.data.rows
              .filter((row) => row.object === 'job')
              .map((row) => (
                <tr key={row.id}>
                  <td>
                    <input
                      type="checkbox"
                      aria-label={`Compare ${row.name}`}
                      checked={chosen.value.includes(row.id)}
                      onChange={(e) => {
                        chosen.value = e.currentTarget.checked
                          ? [...chosen.value, row.id].slice(-50)
                          : chosen.value.filter((id) => id !== row.id);
                      }}
                    />
                  </td>
                  <th scope="row">
                    <Link to={to(['jobs', row.id])}>
                      <bdi>{row.name}</bdi>
                    </Link>
                  </th>
                  <td>
                    <bdi>{row.project}</bdi>
                  </td>
                  <td>
                    <Phase job={row} />
                  </td>
                </tr>
              ))}
          </tbody>
        </table>
      )}
      <p class="muted small body">
        This table has the newest jobs. To compare older ones, select them in the <Link to="/jobs">list of jobs</Link>{' '}
        and choose Compare there.
      </p>
    </Card>
  );
}
