// Sends the files that a user drops on the page as the tree of a job: a manifest, and chunks of 1 MiB,
// which are named by their SHA-256. Only chunks that the server lacks are sent. As with `muster submit`,
// .git, .idea, .pytest_cache and files that .gitignore files exclude are left out.
import {change, get_once, project_path, send, Failure} from '../api/client';

export interface Dropped {
  path: string;
  file: File;
}

const kChunk = 1 << 20;
const kMostFiles = 200_000;
const too_many_files = () => new Error('the folder has more than 200,000 files: choose a smaller folder');
const kNeverSent = new Set(['.git', '.idea', '.pytest_cache']);

interface Rule {
  pattern: RegExp;
  keep: boolean;
  folders: boolean;
}

/** A line of the .gitignore in `folder`. Null for a comment, an empty line, and a pattern that is not valid. */
function rule_of(line: string, folder: string): Rule | null {
  let text = line.replace(/\r$/, '').replace(/(?<!\\)\s+$/, '');
  if (!text || text.startsWith('#')) return null;
  const keep = text.startsWith('!');
  if (keep) text = text.slice(1);
  const folders = text.endsWith('/');
  if (folders) text = text.slice(0, -1);
  const anchored = text.includes('/');
  if (text.startsWith('/')) text = text.slice(1);
  let pattern = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (c === '*') {
      if (text.startsWith('**/', i) && (i === 0 || text[i - 1] === '/')) {
        pattern += '(?:.*/)?';
        i += 2;
      } else if (text.slice(i) === '**' && text[i - 1] === '/') {
        pattern += '.*';
        i += 1;
      } else {
        pattern += '[^/]*';
        while (text[i + 1] === '*') i++;
      }
    } else if (c === '?') pattern += '[^/]';
    else if (c === '[') {
      const end = text.indexOf(']', i + (text[i + 1] === ']' || /^\[[!^]\]/.test(text.slice(i)) ? 3 : 1));
      if (end < 0) return null;
      pattern +=
        '[' +
        text
          .slice(i + 1, end)
          .replace(/^!/, '^')
          .replaceAll('\\', '\\\\') +
        ']';
      i = end;
    } else if (c === '\\' && i + 1 < text.length) {
      i++;
      pattern += text[i]!.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    } else pattern += c.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  }
  const base = folder ? folder.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '/' : '';
  try {
    return {pattern: new RegExp(`^${base}${anchored ? '' : '(?:.*/)?'}${pattern}$`), keep, folders};
  } catch {
    return null;
  }
}

/** The paths without the excluded ones. `texts`: the .gitignore files by their folder. Pure. */
export function kept(paths: string[], texts: Map<string, string>): string[] {
  const rules = [...texts]
    .sort((a, b) => a[0].length - b[0].length)
    .flatMap(([folder, text]) =>
      text
        .split('\n')
        .map((line) => rule_of(line, folder))
        .filter((rule): rule is Rule => rule !== null),
    );
  const known = new Map<string, boolean>();
  const left_out = (path: string, is_folder: boolean): boolean => {
    const before = known.get(path);
    if (before !== undefined) return before;
    const slash = path.lastIndexOf('/');
    let out = slash > 0 && left_out(path.slice(0, slash), true);
    if (!out && !path.includes('/') && kNeverSent.has(path)) out = true;
    if (!out) for (const rule of rules) if ((!rule.folders || is_folder) && rule.pattern.test(path)) out = !rule.keep;
    known.set(path, out);
    return out;
  };
  return paths.filter((path) => !left_out(path, false));
}

async function entries_of(entry: FileSystemEntry, prefix: string, out: Dropped[]): Promise<void> {
  const path = prefix ? `${prefix}/${entry.name}` : entry.name;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    out.push({path, file});
  } else {
    if (!prefix.includes('/') && kNeverSent.has(entry.name)) return;
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) break;
      for (const each of some) await entries_of(each, path, out);
    }
  }
  if (out.length > kMostFiles) throw too_many_files();
}

/** The files that were dropped. A single folder is the root of the tree. */
export async function files_of(data: DataTransfer): Promise<Dropped[]> {
  const roots = [...data.items]
    .map((item) => item.webkitGetAsEntry?.())
    .filter((entry): entry is FileSystemEntry => !!entry);
  const out: Dropped[] = [];
  if (roots.length === 0) for (const file of data.files) out.push({path: file.name, file});
  for (const root of roots) await entries_of(root, '', out);
  if (roots.length === 1 && roots[0]!.isDirectory)
    for (const each of out) each.path = each.path.slice(roots[0]!.name.length + 1);
  return out;
}

export async function without_ignored(files: Dropped[]): Promise<Dropped[]> {
  const texts = new Map<string, string>();
  for (const each of files) {
    if (each.path === '.gitignore' || each.path.endsWith('/.gitignore'))
      texts.set(each.path.slice(0, -'.gitignore'.length).replace(/\/$/, ''), await each.file.text());
  }
  const keep = new Set(
    kept(
      files.map((each) => each.path),
      texts,
    ),
  );
  return files.filter((each) => keep.has(each.path));
}

async function sha256(bytes: BufferSource): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', bytes);
  return [...new Uint8Array(hash)].map((b) => b.toString(16).padStart(2, '0')).join('');
}

/** Sorts by the bytes of the paths: the server requires the entries of a manifest in this order. */
export function in_byte_order<T extends {path: string}>(entries: T[]): T[] {
  const encoder = new TextEncoder();
  const compare = (x: Uint8Array, y: Uint8Array) => {
    for (let i = 0; i < Math.min(x.length, y.length); i++) if (x[i] !== y[i]) return x[i]! - y[i]!;
    return x.length - y.length;
  };
  return entries
    .map((entry) => ({entry, bytes: encoder.encode(entry.path)}))
    .sort((a, b) => compare(a.bytes, b.bytes))
    .map(({entry}) => entry);
}

export interface Sent {
  id: string;
  files: number;
  bytes: number;
  new_bytes: number;
}

/** Sends a tree to a project and returns its id. `progress` is called with the part done, from 0 to 1. */
export async function send_tree(
  project: string,
  files: Dropped[],
  progress: (part: number, what: string) => void,
): Promise<Sent> {
  if (!crypto.subtle)
    throw new Error(
      'the browser computes checksums only on a page with TLS or on localhost: open that address of the server, or use muster submit --workspace',
    );
  if (files.length > kMostFiles) throw too_many_files();
  const folders = new Set<string>();
  for (const {path} of files)
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) folders.add(path.slice(0, at));
  const lines: {path: string; line: string}[] = [...folders].map((path) => ({path, line: `d ${path}\0\n`}));
  const sources = new Map<string, {file: Blob; begin: number; end: number}>();
  const total = Math.max(
    1,
    files.reduce((sum, each) => sum + each.file.size, 0),
  );
  let done = 0;
  for (const {path, file} of files) {
    const ids: string[] = [];
    const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
    for (let begin = 0; begin < file.size; begin += kChunk) {
      const end = Math.min(file.size, begin + kChunk);
      const id = await sha256(await file.slice(begin, end).arrayBuffer());
      ids.push(id);
      if (!sources.has(id)) sources.set(id, {file, begin, end});
      done += end - begin;
      progress(done / total / 2, 'Reading files');
    }
    // A browser cannot read the mode of a file. A script, which begins with #!, is sent as executable.
    const script = head[0] === 35 && head[1] === 33;
    lines.push({path, line: `${script ? 'x' : 'f'} ${path}\0${[file.size, ...ids].join(' ')}\n`});
  }
  const sorted = in_byte_order(lines).map((each) => each.line);
  const manifest = new TextEncoder().encode('muster-tree 1\n' + sorted.join(''));
  const id = await sha256(manifest);
  const tree = project_path(project, `/trees/${id}`);
  const bytes = files.reduce((sum, each) => sum + each.file.size, 0);
  try {
    await get_once(tree);
    progress(1, 'Files are on the server');
    return {id, files: files.length, bytes, new_bytes: 0};
  } catch (fault) {
    if (!(fault instanceof Failure) || fault.status !== 404) throw fault;
  }
  const manifest_ids: string[] = [];
  for (let begin = 0; begin < manifest.length; begin += kChunk) {
    const blob = new Blob([manifest.slice(begin, begin + kChunk)]);
    const chunk = await sha256(await blob.arrayBuffer());
    manifest_ids.push(chunk);
    sources.set(chunk, {file: blob, begin: 0, end: blob.size});
  }
  const all = [...sources.keys()];
  const missing: string[] = [];
  for (let at = 0; at < all.length; at += 10000)
    missing.push(
      ...(
        await change<{chunks: string[]}>('POST', project_path(project, '/chunks/missing'), {
          chunks: all.slice(at, at + 10000),
        })
      ).chunks,
    );
  let sent = 0;
  const new_bytes = missing.reduce((sum, each) => {
    const s = sources.get(each)!;
    return sum + s.end - s.begin;
  }, 0);
  for (let at = 0; at < missing.length; at += 3) {
    const parts: BlobPart[] = [];
    for (const chunk of missing.slice(at, at + 3)) {
      const source = sources.get(chunk)!;
      const length = new Uint8Array(4);
      new DataView(length.buffer).setUint32(0, source.end - source.begin);
      parts.push(length, source.file.slice(source.begin, source.end));
      sent += source.end - source.begin;
    }
    await send('PUT', project_path(project, '/chunks'), {
      raw: new Blob(parts),
      headers: {'content-type': 'application/octet-stream'},
    });
    progress(0.5 + sent / Math.max(1, new_bytes) / 2, 'Sending files');
  }
  await change('PUT', tree, {chunks: manifest_ids});
  return {id, files: files.length, bytes, new_bytes};
}
