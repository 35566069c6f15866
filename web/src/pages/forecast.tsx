// The result of a dry run: where a job would start, or why it would wait.
import type {Forecast} from '../api/types';
import {amount_text, text_of} from '../app/format';
import {visible_text} from '../ui/ansi';
import {Time} from '../ui/parts';

export function Outcome({forecast}: {forecast: Forecast}) {
  const after = forecast.after.status;
  const quota = after.deserved.gpus;
  return (
    <>
      {forecast.starts_now ? (
        <div class="note good">
          <strong>The job would start now.</strong>{' '}
          {forecast.placing
            .slice(0, 6)
            .map(
              (each) => `${each.task} on ${each.node}${each.devices.length ? `, GPU ${each.devices.join(', ')}` : ''}`,
            )
            .join('; ')}
          {forecast.placing.length > 6 && ` and ${forecast.placing.length - 6} more tasks`}
        </div>
      ) : (
        <div class="note warn">
          <strong>The job would wait:</strong> <bdi>{visible_text(forecast.reason)}</bdi>.
          {forecast.may_start && (
            <>
              {' '}
              It may start at <Time at={forecast.may_start} full />.
            </>
          )}
        </div>
      )}
      {forecast.details.length > 0 && (
        <ul class="ticked">
          {forecast.details.map((each, i) => (
            <li key={i} class="break">
              <bdi>{visible_text(text_of(each))}</bdi>
            </li>
          ))}
        </ul>
      )}
      {forecast.evictions.length > 0 && (
        <div class="note warn">
          To start the job, Muster would evict:{' '}
          {forecast.evictions.map((each, i) => (
            <div key={i}>
              <bdi>{visible_text(text_of(each))}</bdi>
            </div>
          ))}
          {forecast.hides_evictions && <div>and jobs that you may not see</div>}
        </div>
      )}
      <p class="small muted">
        Project {forecast.after.name} would then use {amount_text(after.allocated.gpus)} GPUs; its quota is{' '}
        {quota === null ? 'unlimited' : amount_text(quota)}.
      </p>
    </>
  );
}
