// The artifacts of a job, with a download of each file.
import {get, job_path, with_query} from '../../api/client';
import type {ArtifactList, Job} from '../../api/types';
import {bytes_text, count_text, has_ended, text_of} from '../../app/format';
import {visible_text} from '../../ui/ansi';
import {Icon} from '../../ui/icons';
import {Card, ErrorNote, Time, Waiting, useData, useFirst} from '../../ui/parts';

export function Files({job}: {job: Job}) {
  const loaded = useData((signal) => get<ArtifactList>(job_path(job.id, 'artifacts'), {}, signal), [job.id], {
    match: (change) => change.id === job.id,
    // The stream does not report the files that a running job writes.
    ...(has_ended(job.phase) ? {} : {every: 15_000}),
  });
  const list = loaded.data?.artifacts ?? [];
  const listed = useFirst(list, 500);
  const total = list.reduce((sum, each) => sum + each.bytes, 0);
  return (
    <Card
      title="Artifacts"
      scroll
      actions={
        list.length > 0 && (
          <span class="muted">
            {loaded.data?.truncated && 'the first '}
            {count_text(list.length)} {list.length === 1 ? 'entry' : 'entries'}, {bytes_text(total)}
          </span>
        )
      }
    >
      <ErrorNote error={loaded.error} />
      {loaded.loading && <Waiting />}
      {loaded.data && list.length === 0 && (
        <div class="empty">
          No artifacts. The files that a job writes to its artifact folder appear here (
          <code>muster submit --artifacts</code>).
        </div>
      )}
      {list.length > 0 && (
        <table class="grid">
          <caption class="hidden-text">Artifacts</caption>
          <thead>
            <tr>
              <th>Path</th>
              <th>Kind</th>
              <th class="num">Size</th>
              <th>Changed</th>
              <th>
                <span class="hidden-text">Download</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {listed.shown.map((each) => {
              const path = text_of(each.path);
              return (
                <tr key={path}>
                  <th scope="row" class="mono break">
                    <bdi>{visible_text(path)}</bdi>
                  </th>
                  <td>{each.kind}</td>
                  <td class="num">{each.kind === 'file' ? bytes_text(each.bytes) : ''}</td>
                  <td>
                    <Time at={each.modified} />
                  </td>
                  <td>
                    {each.kind === 'file' && (
                      <a
                        class="button"
                        download={path.split('/').at(-1)}
                        href={with_query(job_path(job.id, 'artifact'), {path})}
                        aria-label={`Download ${path}`}
                      >
                        <Icon name="download" />
                      </a>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {listed.more}
      {loaded.data?.truncated && (
        <div class="empty">
          The job has more artifacts: <code>muster artifacts list</code> shows all of them.
        </div>
      )}
    </Card>
  );
}
