// The files that are sent with a job: the user drops them on the page, or chooses a folder.
import {signal, useSignal} from '@preact/signals';
import {useRef} from 'preact/hooks';
import {files_of, without_ignored, type Dropped} from '../app/upload';
import {Card, ErrorNote} from '../ui/parts';

/** The chosen files, the number of files that were left out, and the path of the files in the tasks. */
export const dropped = signal<{files: Dropped[]; left_out: number; target: string} | null>(null);

export function Files() {
  const over = useSignal(false);
  const fault = useSignal<unknown>(null);
  const busy = useSignal(false);
  const input = useRef<HTMLInputElement>(null);
  /** The number of choices of the user. Only the files of the last choice count, also if others are read later. */
  const turn = useRef(0);
  const take = async (read: () => Promise<Dropped[]>) => {
    const mine = ++turn.current;
    busy.value = true;
    fault.value = null;
    try {
      const all = await read();
      const files = await without_ignored(all);
      if (mine !== turn.current) return;
      if (!files.length)
        throw new Error(
          all.length
            ? `no file is left to send: .gitignore excludes all ${all.length} files`
            : 'the folder has no files: choose another folder',
        );
      dropped.value = {files, left_out: all.length - files.length, target: dropped.value?.target ?? '/workspace'};
    } catch (problem) {
      if (mine === turn.current) fault.value = problem;
    } finally {
      if (mine === turn.current) busy.value = false;
    }
  };
  const now = dropped.value;
  return (
    <Card title="Files">
      <div
        class={`drop ${over.value ? 'over' : ''}`}
        onDragOver={(event) => {
          event.preventDefault();
          over.value = true;
        }}
        onDragLeave={() => {
          over.value = false;
        }}
        onDrop={(event) => {
          event.preventDefault();
          over.value = false;
          const data = event.dataTransfer;
          if (data) void take(() => files_of(data));
        }}
      >
        {now ? (
          <div class="stack tight">
            <div>
              <strong>
                {now.files.length} {now.files.length === 1 ? 'file' : 'files'}
              </strong>{' '}
              ({Math.ceil(now.files.reduce((sum, each) => sum + each.file.size, 0) / 1024)} KiB){' '}
              {now.files.length === 1 ? 'is' : 'are'} sent with the job
              {now.left_out > 0 &&
                `; ${now.left_out} ${now.left_out === 1 ? 'is' : 'are'} left out (.gitignore, .git, .idea, .pytest_cache)`}
              .
            </div>
            <label>
              Path in the tasks{' '}
              <input
                value={now.target}
                onInput={(event) => {
                  dropped.value = {...now, target: event.currentTarget.value};
                }}
              />
            </label>
            <div>
              <button
                type="button"
                onClick={() => {
                  turn.current++;
                  busy.value = false;
                  dropped.value = null;
                }}
              >
                Remove the files
              </button>
            </div>
          </div>
        ) : (
          <div class="stack tight">
            <span>
              {busy.value ? 'Reading the files…' : 'Drop a folder or files here. Each task gets a copy of them.'}
            </span>
            <div>
              <button type="button" onClick={() => input.current?.click()}>
                Choose a folder
              </button>
              <input
                ref={input}
                type="file"
                class="hidden-text"
                aria-label="Folder to send"
                tabIndex={-1}
                multiple
                {...{webkitdirectory: true}}
                onChange={(event) => {
                  const files = [...(event.currentTarget.files ?? [])];
                  // A browser reports no change if the same folder is chosen again.
                  event.currentTarget.value = '';
                  void take(async () =>
                    files.map((file) => ({
                      path: file.webkitRelativePath
                        ? file.webkitRelativePath.slice(file.webkitRelativePath.indexOf('/') + 1)
                        : file.name,
                      file,
                    })),
                  );
                }}
              />
            </div>
          </div>
        )}
        <ErrorNote error={fault.value} />
      </div>
    </Card>
  );
}
